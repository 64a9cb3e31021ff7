"""`axon watch` and `axon report` on folders that lie there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from axonp2p.errors import JobFailed
from client_cli.commands.report import command as report_command
from client_cli.context import Context
from client_cli.watching.watching_job import watch
from tests.laboratory.paper_job import STATES


def watched(home: Path, state: str, *, as_json: bool = False) -> int:
    return watch(STATES[state](home).folder, Context(home, as_json), page="", in_browser=False)


def test_a_job_that_is_over_is_told_from_its_beginning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watched(tmp_path, "finished") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("submitted digits-7f3a: 20 rounds")
    assert sum(line.startswith("round=") for line in lines) == 20
    assert any(line.startswith("Done in") for line in lines)
    assert lines[-2].startswith("digits-7f3a FINISHED: 20 rounds trained in")
    assert "fetch digits-7f3a -o OUT" in lines[-1]


def test_a_job_that_failed_says_why_and_what_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watched(tmp_path, "failed") == JobFailed.exit_code
    said = capsys.readouterr().out
    assert "failed: only 2 of at least 3 peers are left" in said
    assert said.rstrip().endswith("axon resume digits-7f3a      (continues after round 9)")


def test_a_job_that_nobody_works_on_is_interrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watched(tmp_path, "running") == 0
    assert "digits-7f3a INTERRUPTED: interrupted in round 14 of 20" in capsys.readouterr().out


def test_for_programs_each_event_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched(tmp_path, "paused", as_json=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[0]["event"] == "job_submitted"
    assert told[-1]["event"] == "job_paused"
    assert all(one["at"] > 0 for one in told)


def test_a_report_can_be_written_again_and_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = STATES["failed"](tmp_path / "home")
    out, runs = tmp_path / "sent" / "why.html", tmp_path / "runs"
    words = ["digits", "--home", str(tmp_path / "home"), "--out", str(out), "--tensorboard", str(runs), "--json"]
    report_command.main(words, standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"job": "digits-7f3a", "report": str(out), "tensorboard": str(runs / "digits-7f3a")}
    assert "only 2 of at least 3 peers are left" in out.read_text()
    assert not job.folder.report.exists()
