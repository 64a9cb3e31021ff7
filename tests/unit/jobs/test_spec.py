"""job.toml: what it may say, and how a mistake in it is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.job_file_keys import COMMON
from axonp2p.jobs.spec import NeedSpec, need_in_words, need_of, parse_spec, read_spec
from axonp2p.kinds.train.section import SECTION, TrainJob, TrainSpec
from axonp2p.peers.capability import Need, read_need
from axonp2p.reservation.token import LONGEST_S

FULL = """\
# A comment
name = "digits"
kind = "train"
task = "task.py"
data = ["digits.csv.gz", "more/*.csv"]

[need]
peers = 6
min-peers = 2
cores = 2
memory = "1.5 GiB"
gpu-memory = "512 MiB"
packages = ["scikit-learn>=1.4"]
max-rtt = "0.1 s"

[train]
rounds = 20
steps = 10
batch = 16
seed = 3
compression = "2-bit"
density = 0.02
exchange-every = 5
seconds = 30
overlap = false
outer-learning-rate = 0.7
outer-momentum = "auto"
aggregation = "multi-krum"
hostile = 0
"""


def wrong(text: str) -> tuple[str, str]:
    """Message and fix, for a file that is not right."""
    with pytest.raises(JobFileWrong) as caught:
        parse_spec(text, "my-job/job.toml")
    assert caught.value.exit_code == 9
    return caught.value.message, caught.value.fix


def test_every_key_is_read() -> None:
    assert parse_spec(FULL, "job.toml") == TrainJob(
        name="digits",
        data=["digits.csv.gz", "more/*.csv"],
        need=NeedSpec(
            peers=6, min_peers=2, cores=2, memory=1536, gpu_memory=512, packages=["scikit-learn>=1.4"], max_rtt=100
        ),
        train=TrainSpec(
            rounds=20,
            steps=10,
            batch=16,
            seed=3,
            compression="2-bit",
            density=0.02,
            exchange_every=5,
            seconds=30.0,
            overlap=False,
            outer_learning_rate=0.7,
            outer_momentum=None,
            aggregation="multi-krum",
            hostile=0,
        ),
    )


@pytest.mark.parametrize(("written", "share"), [('"auto"', 0.05), ('"off"', 0.0), ("0.2", 0.2)])
def test_checks_are_a_share_or_a_word(written: str, share: float) -> None:
    assert parse_spec(f'name = "x"\n[train]\nchecks = {written}', "job.toml").train.checks == share


@pytest.mark.parametrize("written", ["0", "0.9", '"some"', "true"])
def test_other_checks_are_refused(written: str) -> None:
    message, fix = wrong(f'name = "x"\n[train]\nchecks = {written}')
    assert "checks: expected" in message
    assert fix in ('checks = "auto"', "checks = 0.05")


def test_all_wrong_entries_of_a_list_are_named_and_the_others_kept() -> None:
    message, fix = wrong('name = "x"\ndata = ["../a.csv", "b.csv", "/etc/passwd", 3]')
    for problem in ('"../a.csv": it must not', '"/etc/passwd": it must be relative', "expected str, got int (3)"):
        assert problem in message
    assert fix == 'data = ["b.csv"]'
    assert wrong('name = "x"\ndata = ["../a.csv"]')[1] == 'data = ["data.csv"]'


def test_only_the_name_is_required() -> None:
    spec = parse_spec('name = "x"', "job.toml")
    assert spec == TrainJob(name="x")
    assert (spec.need.peers, spec.need.min_peers, spec.need.memory, spec.need.max_rtt) == (4, 1, 1024, 250)


def test_need_of_is_the_map_that_a_query_carries() -> None:
    assert need_of(parse_spec(FULL, "")) == {
        "kind": "train",
        "cores": 2,
        "memory_mb": 1536,
        "gpu_memory_mb": 512,
        "packages": ["scikit-learn>=1.4"],
        "disk_mb": 0,
        "gflops": 0.0,
        "datasets": [],
        "upload_mbit": 0,
        "download_mbit": 0,
        "uptime_s": 0,
    }


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ('peers = "4"', 'peers: expected int, got str ("4")', "peers = 4"),
        ('peers = "many"', 'peers: expected int, got str ("many")', "peers = 4"),
        ("peers = true", "peers: expected int, got bool (true)", "peers = 4"),
        ("peers = 4.5", "peers: expected int, got float (4.5)", "peers = 4"),
        ("peers = 0", "peers: expected 1 to 64, got 0", "peers = 1"),
        ("peers = 65", "peers: expected 1 to 64, got 65", "peers = 64"),
        ("min-peers = 9", "min-peers: 9 is more than peers, which is 4", "min-peers = 4"),
        ("memory = true", "memory: expected int or text with a unit, got bool (true)", 'memory = "1 GiB"'),
        (
            'memory = "1 lb"',
            'memory: expected a size such as 512 MiB, 4 GiB or 4 GB, got str ("1 lb")',
            'memory = "1 GiB"',
        ),
        ("max-rtt = 0", "max-rtt: expected 1 to 60000 ms, got 0", 'max-rtt = "250 ms"'),
        ('packages = "numpy"', 'packages: expected a list, got str ("numpy")', 'packages = ["numpy"]'),
        ('packages = ["no way!"]', "packages: expected a requirement", 'packages = ["scikit-learn>=1.4"]'),
        (
            f'packages = ["numpy{",".join(f"!=2.{number}" for number in range(9))}"]',
            "packages: expected a requirement of at most 8 clauses",
            'packages = ["scikit-learn>=1.4"]',
        ),
        ("packages = [3]", "packages: expected a requirement", 'packages = ["scikit-learn>=1.4"]'),
        ("min_peers = 2", "min_peers: unknown key. Did you mean min-peers?", "write min-peers"),
        ("gpu_mem = 2", "gpu_mem: unknown key. Did you mean gpu-memory?", "write gpu-memory"),
        ("rounds = 2", "rounds: unknown key. Did you mean rounds, in [train]?", "write rounds, in [train]"),
        ("task = 2", "task: unknown key. Did you mean task, above every section?", "write task, above every section"),
        ("zzz = 2", "zzz: unknown key.", "remove it; docs/jobs.md lists every key"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(line: str, message: str, fix: str) -> None:
    said, mended = wrong(f'name = "x"\n\n[need]\n# four of them\n{line}\n')
    assert said.startswith(f"my-job/job.toml, line 5: {message}"), said
    assert mended == fix


@pytest.mark.parametrize(
    ("lines", "message", "fix"),
    [
        ('compression = "2 bit"', 'compression: expected one of "auto", "none", ', 'compression = "2-bit"'),
        ("compression = 2", 'compression: expected one of "auto", "none", ', 'compression = "2-bit"'),
        ("exchange-every = 0", "exchange-every: expected 1 to 2147483648, got 0", "exchange-every = 1"),
        ('exchange-every = "often"', 'exchange-every: expected int, got str ("often")', "exchange-every = 10"),
        ("exchange-every = 11", "exchange-every: 11 is more than steps, which is 10", "exchange-every = 10"),
        ("outer-momentum = 1", "outer-momentum: expected 0 to below 1, got 1", "outer-momentum = 0.9"),
        ('overlap = "yes"', 'overlap: expected true or false, got str ("yes")', "overlap = true"),
        ('compression = "2-bit"\ndensity = 0', "density: expected above 0 to 1, got 0", "density = 0.02"),
        ("density = 0.1", "density: it needs a number of bits, and compression is auto", 'compression = "2-bit"'),
        ('aggregation = "krum"', 'aggregation: expected one of "mean", "median", ', 'aggregation = "multi-krum"'),
        ("hostile = 1", "hostile: the mean tolerates no liars", 'aggregation = "centred-clipping"'),
        (
            'aggregation = "median"\nhostile = 2',
            "hostile: median needs 5 peers, and min-peers is 1",
            "min-peers = 5",
        ),
        (
            'aggregation = "median"\ncompression = "2-bit"\ndensity = 0.1',
            "density: median judges each value by itself",
            'aggregation = "centred-clipping"',
        ),
        ("epochs = 5", "epochs: Axon counts steps:", "rounds = 20   (one epoch of N samples"),
        ("save_every = 3", "save_every: it is called checkpoint here", "checkpoint = 5"),
        ("shuffle = true", "shuffle: that is said in task.py", "leave it out here"),
        (
            "learning_rate = 0.1",
            "learning_rate: the learning rate is that of the task's own",
            "in task.py: def optimizer",
        ),
        ("lr_scheduler = 4", "lr_scheduler: a schedule is a method of class Task", "in task.py: def schedule"),
        ("max_grad_norm = 1", "max_grad_norm: it is called clip-gradients here", "clip-gradients = 1.0"),
        ('best = "accuracy"', 'best: expected "max" or "min" and the name of a metric', 'best = "max accuracy"'),
        ('best = "val_loss"', 'best: expected "max" or "min"', 'best = "min val_loss"'),
        ("best = 3", 'best: expected "max" or "min" and the name of a metric, got int (3)', 'best = "min loss"'),
        ("stop-after = -1", "stop-after: expected 0 to 1000000, got -1", "stop-after = 0"),
        ("patience = 5", "patience: it is called stop-after here", "stop-after = 10"),
        ('monitor = "loss"', "monitor: it is called best here", 'best = "max accuracy"'),
        ("clip-gradients = -1", "clip-gradients: expected 0 to 1e+09, got -1", "clip-gradients = 1.0"),
        ("compresion = 4", "compresion: unknown key. Did you mean compression?", "write compression"),
    ],
)
def test_a_mistake_about_the_exchange_is_named_as_well(lines: str, message: str, fix: str) -> None:
    said, mended = wrong(f'name = "x"\n[train]\n{lines}\n')
    assert message in said
    assert mended.startswith(fix)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name: a job needs a name"),
        ('name = "two words"', "line 1: name: expected at most 59 letters"),
        (f'name = "{"x" * 60}"', "line 1: name: expected at most 59 letters"),
        ("name = 3", "line 1: name: expected str, got int (3)"),
        ('name = "x"\nkind = "infer"', 'line 2: kind: expected one of "train", "run", "map", got str ("infer")'),
        ('name = "x"\ntask = "../task.py"', 'line 2: task: "../task.py": it must not have'),
        ('name = "x"\ndata = ["/etc/passwd"]', 'line 2: data: "/etc/passwd": it must be relative'),
        ('name = "x"\n[ned]\npeers = 3', "line 2: ned: unknown key. Did you mean [need]?"),
        ('name = "x"\nneed = 3', "line 2: need: expected a section, got 3"),
        ('name = "x"\n\n[[train]]\nsteps = 3', "line 3: train: expected a section"),
        ('name = "x"\nneed.peers = 0', "line 2: peers: expected 1 to 64"),
        ('name = "x"\nneed = { peers = 0 }', "line 2: peers: expected 1 to 64"),
        ('name = "x"\n"peers" = 3', "line 2: peers: unknown key. Did you mean peers, in [need]?"),
        ('name = "x"\n[train]\nseed = -1', "line 3: seed: expected 0 to"),
        ('name = "x"\n[train\n', "line 2: not TOML"),
        ('name = "x"\nname = "y"', "line 2: not TOML"),
        ('name = "x', "line 1: not TOML"),
        ('name = "x"\n[need]\n' + ".".join(["packages"] * 500) + " = 1", "line 3: packages: expected at most 8"),
        ('name = "x"\n[train]\nrounds = 0x' + "f" * 5000, "line 3: rounds: expected whole numbers of at most 64 bits"),
    ],
)
def test_other_mistakes(text: str, message: str) -> None:
    said, fix = wrong(text)
    assert message in said
    assert fix


def mistake_in(text: str) -> JobFileWrong | None:
    try:
        parse_spec(text, "job.toml")
    except JobFileWrong as error:
        return error
    return None


@given(st.text(max_size=200))
def test_any_text_is_a_job_or_a_named_mistake(text: str) -> None:
    if error := mistake_in(text):
        assert re.match(r"job\.toml(, line \d+)?: ", error.message)
        assert error.fix


VALUES = st.one_of(
    st.integers(-5, 2**60),
    st.booleans(),
    st.floats(allow_nan=False),
    st.text("ab1 .", max_size=5).map(repr),
    st.just("[]"),
    # What TOML's reader takes, or ends by, and no person can be shown.
    st.sampled_from(["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, '"' + "9" * 5000 + '"', "1e999999", "nan"]),
    st.sampled_from(["[0x" + "f" * 5000 + "]", "[" * 90 + "]" * 90, "{a=" * 90 + "1" + "}" * 90, "2025-01-01"]),
)


@given(
    st.sampled_from([(section, key) for section, keys in {**COMMON, "train": SECTION.rules}.items() for key in keys]),
    VALUES,
)
def test_any_value_of_any_key_is_read_or_a_named_mistake_at_its_line(place: tuple[str, str], value: object) -> None:
    section, key = place
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    head = "" if key == "name" else 'name = "x"\n'
    text = head + (f"[{section}]\n" if section else "") + f"{key} = {shown}\n"
    if error := mistake_in(text):
        assert f"line {text.count(chr(10))}: " in error.message
        assert error.fix


def test_peers_are_reserved_for_a_day_unless_the_job_says_less() -> None:
    assert parse_spec('name = "x"', "job.toml").need.reserve == LONGEST_S
    assert parse_spec('name = "x"\n[need]\nreserve = "2 h"', "job.toml").need.reserve == 7200
    for wrong in ('"25 h"', '"1 min"'):
        with pytest.raises(JobFileWrong, match="line 3: reserve: expected 600 to 86400 s"):
            parse_spec(f'name = "x"\n[need]\nreserve = {wrong}', "job.toml")
    with pytest.raises(JobFileWrong, match="says nothing of a need"):
        need_in_words(["reserve=2 h"])


def test_what_a_peer_must_offer_can_be_asked_for_in_full() -> None:
    spec = parse_spec(
        """
        name = "x"
        [need]
        disk = "4 GiB"
        gflops = 20
        datasets = ["imagenet-64"]
        upload = "10 Mbit"
        download = "1 Gbit"
        uptime = "2 h"
        """,
        "job.toml",
    )
    need = read_need(need_of(spec))
    assert (need.disk_mb, need.gflops, need.datasets) == (4096, 20.0, ["imagenet-64"])
    assert (need.upload_mbit, need.download_mbit, need.uptime_s) == (10, 1000, 7200)


def test_a_need_can_be_typed_in_words() -> None:
    need = read_need(need_in_words(["cores=4", "memory=8 GiB", "packages=numpy,torch>=2", "gflops=1.5", "uptime=90"]))
    assert need == Need(cores=4, memory_mb=8192, packages=["numpy", "torch>=2"], gflops=1.5, uptime_s=90)
    assert read_need(need_in_words([])) == Need()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("cores", "says nothing of a need"),
        ("peers=3", "says nothing of a need"),
        ("coers=3", "Did you mean cores?"),
        ("cores=many", "expected int"),
        ("cores=" + "9" * 5000, "expected int"),
        ("datasets=../x", "names of at most 64"),
    ],
)
def test_a_wrong_word_is_named(word: str, message: str) -> None:
    with pytest.raises(JobFileWrong) as caught:
        need_in_words([word])
    assert message in caught.value.message
    assert caught.value.fix


def test_a_folder_without_a_job_file(tmp_path: Path) -> None:
    with pytest.raises(JobFileWrong, match="cannot be read") as caught:
        read_spec(tmp_path / "nowhere")
    assert "axon init" in caught.value.fix


def test_a_folder_with_a_job_file(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(FULL)
    assert read_spec(tmp_path).name == "digits"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'name = "x"\n# \xff\n', "line 2: not UTF-8"), (b"#" * 70_000, "more than 65536 bytes")],
)
def test_a_job_file_that_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "job.toml").write_bytes(content)
    with pytest.raises(JobFileWrong, match=message):
        read_spec(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "cores = " + "9" * 5000,
        "cores = 0x" + "f" * 5000,
        "cores = '" + "9" * 5000 + "'",
        "packages = [0x" + "f" * 5000 + "]",
        "packages = [{a = 0x" + "f" * 5000 + "}]",
        "a." * 30_000 + "a = 1",
    ],
    ids=["digits", "hexadecimal digits", "digits in a text", "in a list", "in a table", "parts of a key"],
)
def test_numbers_and_keys_without_end_are_a_named_mistake(line: str) -> None:
    with pytest.raises(JobFileWrong):
        parse_spec(f'name = "a"\n[need]\n{line}\n', "job.toml")


def test_packages_that_the_job_brings_along() -> None:
    found = parse_spec(
        'name = "x"\n[packages]\ninstall = ["imagehash==4.3.2", "lark[nearley]>=1"]', "job.toml"
    ).packages
    assert found.install == ["imagehash==4.3.2", "lark[nearley]>=1"]
    assert found.wanted
    assert parse_spec('name = "x"\n[packages]\nlock = "pylock.toml"', "job.toml").packages.lock == "pylock.toml"
    assert not parse_spec('name = "x"', "job.toml").packages.wanted


@pytest.mark.parametrize(
    ("lines", "message", "fix"),
    [
        ('install = "lark"', "line 3: install: expected a list", 'install = ["lark"]'),
        ('install = ["lark ="]', "line 3: install: expected a requirement", 'install = ["imagehash==4.3.2"]'),
        ('install = ["a @ https://x/a.whl"]', "line 3: install: a package comes from an index", "imagehash"),
        ('install = ["Torch>=2"]', "line 3: install: Torch is never sent", 'packages = ["Torch>=2"] under [need]'),
        ('install = ["nvidia-nccl-cu13"]', "line 3: install: nvidia-nccl-cu13 is never sent", "remove it"),
        ('install = ["a"]\nlock = "l.toml"', "line 4: lock: a lock names all packages", "remove install"),
        ('instal = ["a"]', "line 3: instal: unknown key. Did you mean install?", "write install"),
        ('lock = "../pylock.toml"', "line 3: lock:", "lock ="),
    ],
)
def test_a_mistake_about_packages_is_named(lines: str, message: str, fix: str) -> None:
    with pytest.raises(JobFileWrong) as told:
        parse_spec(f'name = "x"\n[packages]\n{lines}', "job.toml")
    assert message in told.value.message
    assert fix in told.value.fix
