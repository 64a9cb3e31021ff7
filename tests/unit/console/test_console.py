from __future__ import annotations

import json
import resource
import stat
from pathlib import Path

import pytest

from axonp2p.console import error_json, error_text, printable, run_program
from axonp2p.errors import AxonError, JobFailed, NotFound, PortTaken


def fail(error: BaseException):
    def body() -> None:
        raise error

    return body


def test_a_body_that_ends_well_gives_its_own_code():
    assert run_program(lambda: None, debug=False) == 0
    assert run_program(lambda: 7, debug=False) == 7


def test_an_error_is_told_in_the_fixed_shape(capsys: pytest.CaptureFixture[str]):
    error = PortTaken("port 7070 is taken", cause="it is used", fix="--listen HOST:0")
    assert run_program(fail(error), debug=False) == 6
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error AX-602: port 7070 is taken\ncause: it is used\nfix: --listen HOST:0\n"


def test_a_traceback_comes_only_with_debug(capsys: pytest.CaptureFixture[str]):
    run_program(fail(NotFound("no job x")), debug=False)
    assert "Traceback" not in capsys.readouterr().err
    run_program(fail(NotFound("no job x")), debug=True)
    assert "Traceback" in capsys.readouterr().err


def test_a_traceback_of_the_library_says_what_why_and_what_to_do():
    whole = JobFailed("2 peers are left", cause="otter: cut off", fix="axon peers")
    assert str(whole) == "2 peers are left\ncause: otter: cut off\nfix: axon peers"
    assert str(JobFailed("2 peers are left")) == "2 peers are left"


def test_lines_without_content_are_left_out():
    assert error_text(NotFound("no job x")) == "error AX-501: no job x"


def test_an_error_as_json(capsys: pytest.CaptureFixture[str]):
    assert run_program(fail(NotFound("no job x", fix="axon jobs")), debug=False, as_json=True) == 5
    assert json.loads(capsys.readouterr().err) == {
        "error": {
            "code": "AX-501",
            "message": "no job x",
            "cause": "",
            "fix": "axon jobs",
            "docs": "docs/errors.md#codes",
        }
    }
    assert "\n" not in error_json(AxonError("two\nlines"))


def test_an_unexpected_error_leaves_a_report_for_its_owner_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_program(fail(ZeroDivisionError("by zero")), debug=False, report_folder=tmp_path) == 70
    (report,) = tmp_path.iterdir()
    err = capsys.readouterr().err
    assert err.startswith("error AX-001: axon made a mistake: ZeroDivisionError: by zero\n")
    assert str(report) in err
    assert "Traceback" not in err
    assert "ZeroDivisionError: by zero" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_a_report_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_program(fail(ZeroDivisionError()), debug=False, report_folder=tmp_path / "missing") == 70
    assert "no report could be written" in capsys.readouterr().err


def test_ctrl_c_and_exits_keep_their_codes():
    assert run_program(fail(KeyboardInterrupt()), debug=False) == 130
    with pytest.raises(SystemExit):
        run_program(fail(SystemExit(3)), debug=False)


def test_what_strangers_wrote_cannot_move_the_cursor():
    assert "\x1b" not in error_text(AxonError("peer \x1b[2Jotter", fix="\x9b31m"))
    assert printable("plain\tü\n") == "plain\tü\n"


def test_a_program_may_open_as_many_files_as_the_system_lets_it():
    """A tracker with a shell's 1,024 would be shut by so many connections."""
    usual, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    seen: list[tuple[int, int]] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        run_program(lambda: seen.append(resource.getrlimit(resource.RLIMIT_NOFILE)), debug=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, hard))
    assert seen == [(hard, hard)]
