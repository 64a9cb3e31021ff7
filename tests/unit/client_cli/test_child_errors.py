"""Why a process that we started ended."""

from __future__ import annotations

from axonp2p.errors import AxonError, PortTaken
from client_cli.child_errors import last_lines, why_it_ended


def test_its_own_last_error_comes_back_as_its_class() -> None:
    log = "12:00 starting\nerror AX-602: port 7070 is taken\ncause: who listens there\nfix: --listen :0\n"
    error = why_it_ended("the tracker", log, "/h/tracker/output.log")
    assert type(error) is PortTaken
    assert error.exit_code == 6
    assert error.message == "the tracker did not start: port 7070 is taken"
    assert error.cause == "who listens there"
    assert "--port" in error.fix


def test_other_advice_is_passed_on() -> None:
    assert why_it_ended("x", "error AX-605: no sandbox\nfix: apt install bubblewrap\n", "log").fix.startswith("apt")


def test_an_error_without_advice_leads_to_the_log() -> None:
    error = why_it_ended("peer otter", "error AX-605: no sandbox\n", "/h/output.log")
    assert error.cause == ""
    assert "/h/output.log" in error.fix


def test_without_an_error_the_last_lines_are_the_cause() -> None:
    error = why_it_ended("peer otter", "one\n\n\x1b[31mtwo\n", "/h/output.log")
    assert type(error) is AxonError
    assert error.cause.endswith("one\n\N{REPLACEMENT CHARACTER}[31mtwo")


def test_an_unknown_code_is_an_error_all_the_same() -> None:
    assert type(why_it_ended("x", "error AX-999: hm\n", "log")) is AxonError


def test_last_lines_are_few() -> None:
    assert last_lines("\n".join(str(number) for number in range(100))).split()[0] == "92"
