"""`[run]` of job.toml: what it may say, and how a mistake in it is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.jobs.job_file_keys import Wrong
from axonp2p.jobs.spec import NeedSpec
from axonp2p.kinds.run.messages import MOST_COPIES, MOST_VARIABLES
from axonp2p.kinds.run.section import LONGEST_COMMAND, SECTION, RunJob, RunSection, order_for, words_of
from axonp2p.wire.frame import pack_frame

PAGE = Path(__file__).parent.parent.parent.parent.parent / "docs" / "jobs.md"


def read(**keys: Any) -> RunSection:
    return RunSection(**{key: SECTION.rules[key](value) for key, value in keys.items()})


def test_each_key_has_a_rule_a_default_and_its_place_on_the_page() -> None:
    names = [field.encode_name for field in msgspec.structs.fields(RunSection)]
    assert list(SECTION.rules) == names
    assert SECTION.struct() == RunSection()
    for name in names:
        assert f"| `{name}` |" in PAGE.read_text(), name


def test_what_is_written_is_read_in_our_units() -> None:
    section = read(
        command="python fold.py --fold {index}",
        copies=8,
        env={"SEED": 7, "RATE": 0.5, "NAME": "a b"},
        outputs=["*.json", "model.safetensors"],
        restart="always",
        attempts=5,
        timeout="2 h",
        together=True,
    )
    assert section.env == {"SEED": "7", "RATE": "0.5", "NAME": "a b"}
    assert section.timeout == 7200
    assert (section.copies, section.attempts, section.restart, section.together) == (8, 5, "always", True)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("command", 3, r"expected str, got int \(3\)"),
        ("command", "", "nothing to run"),
        ("command", "python 'x", "quotes do not close"),
        ("command", "/bin/sh -c ls", "neither python nor a file of the job's folder: it must be relative"),
        ("command", "../x", "it must not have empty parts, . or .."),
        ("command", "python /etc/x.py", '"/etc/x.py" is no file of the job\'s folder'),
        ("command", "python " + "x" * LONGEST_COMMAND, "at most 2000 characters"),
        ("command", "python" + " x" * 300, "at most 256 words, got 301"),
        ("command", "python a\0b", "no character 0"),
        ("copies", 0, f"expected 1 to {MOST_COPIES}, got 0"),
        ("copies", MOST_COPIES + 1, f"expected 1 to {MOST_COPIES}"),
        ("env", "SEED=7", "expected a table"),
        ("env", {"LD_PRELOAD": "x"}, "LD_PRELOAD changes which programs or modules are loaded"),
        ("env", {"PYTHONPATH": "x"}, "PYTHONPATH changes which"),
        ("env", {"PYTHONSTARTUP": "x"}, "PYTHONSTARTUP changes which"),
        ("env", {"PYTHONHOME": "x"}, "PYTHONHOME changes which"),
        ("env", {"PATH": "x"}, "PATH changes which"),
        ("env", {"AXON_INDEX": "1"}, "AXON_INDEX is set for each copy"),
        ("env", {"RANK": "1"}, "RANK is set for each copy"),
        ("env", {"1X": "1"}, "expected a name"),
        ("env", {"X\n": "1"}, "expected a name"),
        ("env", {"X": True}, r"X: expected a text, got bool \(true\)"),
        ("env", {"X": "a\0"}, "X: expected a text"),
        ("env", {"X": "a" * 257}, "at most 256 characters"),
        ("env", {f"X{number}": "" for number in range(MOST_VARIABLES + 1)}, "at most 32 variables, got 33"),
        ("outputs", "*.json", "expected a list"),
        ("outputs", ["/etc/*"], "relative"),
        ("outputs", ["../*"], "must not have"),
        ("outputs", ["x" * 101], "at most 100 characters"),
        ("outputs", ["x"] * 17, "at most 16 entries"),
        ("restart", "sometimes", 'expected one of "never", "on-failure", "always"'),
        ("attempts", 0, "expected 1 to 100"),
        ("timeout", "soon", "expected a time such as"),
        ("timeout", "31 d", "expected 0 to"),
        ("together", 1, "expected true or false"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(key: str, value: Any, problem: str) -> None:
    with pytest.raises(Wrong, match=problem) as caught:
        SECTION.rules[key](value)
    assert caught.value.fix


def test_variables_that_change_nothing_of_loading_are_taken() -> None:
    assert read(env={"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": 2}).env == {
        "PYTHONHASHSEED": "1",
        "OMP_NUM_THREADS": "2",
    }


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("python fold.py --fold {index}", ["fold.py"]),
        ("python -u -O ./deep/fold.py x.py", ["deep/fold.py"]),
        ("python -m sweep", []),
        ("python -c 'print(1)'", []),
        ("python", []),
        ("python -u", []),
        ("python part-{index}.py", []),
        ("./solve --all", ["solve"]),
        ("python -W error x.py", []),
    ],
)
def test_the_files_that_a_command_names_travel_with_the_job(command: str, files: list[str]) -> None:
    assert SECTION.files(RunJob(name="x", run=read(command=command))) == files


def test_a_command_is_needed_and_all_together_need_as_many_peers() -> None:
    assert SECTION.files(RunJob(name="x")) == []
    with pytest.raises(Wrong, match="needs a command") as caught:
        SECTION.check_together(RunJob(name="x", need=NeedSpec(), run=RunSection()))
    assert (caught.value.section, caught.value.key) == ("run", "command")
    SECTION.check_together(RunJob(name="x", need=NeedSpec(peers=4), run=RunSection(command="python", copies=9)))
    with pytest.raises(Wrong, match="5 copies at once need as many peers, and peers is 4") as caught:
        SECTION.check_together(
            RunJob(name="x", need=NeedSpec(peers=4), run=RunSection(command="python", copies=5, together=True))
        )
    assert (caught.value.key, caught.value.fix) == ("together", "peers = 5")


def test_the_numbers_of_a_copy_stand_in_its_words() -> None:
    section = read(command="python 'a b.py' --fold={index}/{copies} {attempt} {other} '{'", copies=8)
    assert words_of(section, 3, 1) == ["python", "a b.py", "--fold=3/8", "1", "{other}", "{"]


def test_there_is_no_shell() -> None:
    assert words_of(read(command="python x.py > out; ls $HOME *"), 0, 0) == [
        *("python", "x.py", ">", "out;", "ls", "$HOME", "*")
    ]


def test_the_largest_order_fits_a_frame() -> None:
    longest = "-c" + "{attempt}" * ((LONGEST_COMMAND - 9) // 9)
    env = {f"{'X' * 62}{number:02}": "\U0001f600" * 256 for number in range(MOST_VARIABLES)}
    section = read(command=f"python {longest}", copies=MOST_COPIES, env=env)
    order = order_for("j" * 64, section, MOST_COPIES - 1, 10**6)
    assert pack_frame(order)
    assert not re.search("{attempt}", order.command[1])
    wide = read(command="python -c " + "\U0001f600" * (LONGEST_COMMAND - 10), env=env)
    assert pack_frame(order_for("j" * 64, wide, 0, 0))
