"""Packages that a job brings along, on real peers: imported there, sent once, kept for later jobs, refused by name."""

from __future__ import annotations

import json
import random
import textwrap
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import BundleSent, Event, JobFinished, PackagesResolved
from axonp2p.errors import IndexUnreachable, NobodyFits, PackagesWrong
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import fork_server
from tests.laboratory.wheel_files import write_wheel
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

GULL = b"""
    def cry():
        return "kee-ow"
"""

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip knows only the wheels in this folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def gull(index: Path, version: str = "1.0") -> None:
    """A package of two modules that needs another one, and numpy, which every peer has."""
    feathers = {"feathers.py": b"COUNT = 7\n"}
    write_wheel(index, feathers, name="feathers")
    # Bytes that cannot be made small: what is sent of them shows.
    modules = {"gull/__init__.py": textwrap.dedent(GULL.decode()).encode(), "gull/noise.bin": _noise(600_000)}
    write_wheel(index, modules, version=version, requires=["feathers", "numpy>=1", 'torch; python_version > "3"'])


def _noise(count: int) -> bytes:
    return random.Random(3).randbytes(count)


def run_job(folder: Path, command: str = "python work.py", lines: str = 'install = ["gull==1.0"]') -> Path:
    """Two copies of a program that imports the packages."""
    folder.mkdir()
    (folder / "work.py").write_text("import feathers, gull, sys\nprint(gull.cry(), feathers.COUNT, gull.__file__)\n")
    (folder / "job.toml").write_text(
        textwrap.dedent(f"""
            name = "work"
            kind = "run"
            [need]
            peers = 2
            min-peers = 2
            memory = "256 MB"
            max-rtt = "5 s"
            [run]
            command = "{command}"
            copies = 2
            [packages]
        """)
        + lines
    )
    return folder


def followed(swarm: axonp2p.Swarm, folder: Path) -> tuple[list[Event], Path]:
    """The events of the job, which finishes, and where its logs are."""
    job = swarm.submit(folder)
    seen = list(job.events())
    assert isinstance(seen[-1], JobFinished)
    return seen, job.folder / "logs"


def bytes_of(events: list[Event]) -> int:
    return sum(event.bytes for event in events if isinstance(event, BundleSent))


def test_a_second_job_with_the_same_wheels_sends_none_of_them(
    swarm: axonp2p.Swarm, index: Path, tmp_path: Path
) -> None:
    gull(index)
    first, logs = followed(swarm, run_job(tmp_path / "first"))
    said = [event for event in first if isinstance(event, PackagesResolved)]
    assert [event.wheels for event in said] == [["feathers 1.0", "gull 1.0"]]
    assert set(said[0].given) == {"numpy", "torch"}
    printed = "".join(log.read_text() for log in logs.iterdir())
    assert printed.count("kee-ow 7 /job/.wheels/") == 2
    assert 600_000 < bytes_of(first) < 1.2 * 600_000  # the client sends one copy, the peers pass it on
    second, logs = followed(swarm, run_job(tmp_path / "second"))
    assert "".join(log.read_text() for log in logs.iterdir()).count("kee-ow 7") == 2
    assert bytes_of(second) < 10_000  # job.toml and work.py


def test_a_task_imports_what_its_job_brings(swarm: axonp2p.Swarm, index: Path, tmp_path: Path) -> None:
    gull(index)
    task = "import gull\n" + TASK.replace('print("evaluated on", len(inputs))', "print(gull.cry())")
    folder = write_job(tmp_path / "job", peers=2, least=2, rounds=2, task=task)
    with (folder / "job.toml").open("a") as file:
        file.write('[packages]\ninstall = ["gull"]\n')
    _, logs = followed(swarm, folder)
    assert "kee-ow" in "".join(log.read_text() for log in logs.iterdir())


def test_a_job_that_a_tracker_carries_on_takes_its_packages_along(
    swarm: axonp2p.Swarm, index: Path, tmp_path: Path
) -> None:
    """The tracker's process runs without pip's settings of this test: it could resolve none of these."""
    gull(index)
    job = swarm.hand_over(run_job(tmp_path / "job"))
    seen = list(swarm.attach(job.id).events())
    assert isinstance(seen[-1], JobFinished)
    printed = "".join(log.read_text() for log in (job.folder / "logs").iterdir())
    assert printed.count("kee-ow 7 /job/.wheels/") == 2
    (said,) = [event for event in seen if isinstance(event, PackagesResolved)]
    assert said.wheels == ["feathers 1.0", "gull 1.0"]


def test_check_says_what_would_be_sent(processes: Processes, index: Path, tmp_path: Path) -> None:
    gull(index)
    folder, home = run_job(tmp_path / "job"), str(tmp_path / "client")
    words = ["check", str(folder), "--tracker", processes.tracker, "--home", home, "--json"]
    done = fork_server().run("client_cli.main", words, 200)
    told = json.loads(done.stdout)
    assert done.returncode == 0, told
    assert told["packages"].startswith("2 wheels, 602 KB for cp3")
    assert (told["peers_found"], told["peers_refusing"]) == (2, {})
    assert told["code"] in (0, None)  # None: on a busy machine it still ran
    if told["code"] == 0:
        assert "kee-ow 7 /job/.wheels/" in told["log"]


def test_what_there_is_no_wheel_of_is_told_before_any_peer_is_hired(
    swarm: axonp2p.Swarm, index: Path, tmp_path: Path
) -> None:
    job = swarm.submit(run_job(tmp_path / "job"))
    with pytest.raises(PackagesWrong, match=r"no wheel of gull==1.0 for Python 3\.\d+ on"):
        list(job.events())


def test_peers_whose_owners_take_no_packages_are_named(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gull(index)
    monkeypatch.setenv("AXON_PEER_WHEELS", "none")
    (tmp_path / "shy").mkdir()
    with Processes(tmp_path / "shy") as running:
        running.start_peers("wren")
        with axonp2p.Swarm(trackers=[running.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(run_job(tmp_path / "job"))
            with pytest.raises(NobodyFits, match="needs 2 peers and can have 0") as told:
                list(job.events())
    assert "takes no packages (1)" in told.value.cause
    assert "jobs.md#packages" in told.value.fix


LEARNS = """
import joblib
import scipy
from sklearn.cluster import KMeans
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_scikit_learn_comes_from_the_index_once(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    """The real one, with scipy and joblib: 45 MB that no peer has."""
    groups = "len(KMeans(2, n_init=1).fit(inputs.numpy()).cluster_centers_)"
    task = LEARNS + TASK.replace('"evaluated on", len(inputs)', f'"groups:", {groups}, scipy.__version__')
    folder = write_job(tmp_path / "job", peers=2, least=2, rounds=1, task=task)
    with (folder / "job.toml").open("a") as file:
        file.write('[packages]\ninstall = ["scikit-learn"]\n')
    try:
        first, logs = followed(swarm, folder)
    except IndexUnreachable as error:
        pytest.skip(error.message)
    assert "groups: 2 1." in "".join(log.read_text() for log in logs.iterdir())
    (said,) = [event for event in first if isinstance(event, PackagesResolved)]
    assert {wheel.split()[0] for wheel in said.wheels} >= {"scikit-learn", "scipy", "joblib"}
    assert bytes_of(first) < 1.1 * said.bytes
    second, _ = followed(swarm, folder)
    assert bytes_of(second) < 10_000
