"""The command line of a tracker as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from axonp2p.command_group import run_group
from axonp2p.errors import NotFound, UsageWrong
from tracker.main import main


def test_what_a_tracker_keeps_is_for_its_owner_alone(tmp_path: Path):
    usual = os.umask(0o022)
    try:
        CliRunner().invoke(main, ["status", "--home", str(tmp_path)])
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(usual)


@pytest.mark.parametrize(
    ("words", "said", "fix"),
    [
        (["--json"], "No such option '--json'", "axon-tracker --help"),
        (["bakup", "--json"], "No such command 'bakup'. Did you mean 'backup'?", "axon-tracker --help"),
        (["backup", "--json"], "Missing argument 'FILE'.", "axon-tracker backup --help"),
        (["run", "--json-logs", "--lisen", "x"], "No such option '--lisen'", "axon-tracker run --help"),
    ],
)
def test_wrong_usage_is_json_for_programs(
    words: list[str], said: str, fix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["axon-tracker", *words])
    assert run_group(main, "axon-tracker") == UsageWrong.exit_code
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["code"] == "AX-621"
    assert said in error["message"]
    assert error["fix"] == fix


def test_an_error_of_a_command_is_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["axon-tracker", "status", "--home", str(tmp_path), "--json"])
    assert run_group(main, "axon-tracker") == NotFound.exit_code
    assert json.loads(capsys.readouterr().err)["error"]["code"] == NotFound.code


def test_summaries_fit_in_the_order_of_use():
    lines = CliRunner().invoke(main, ["-h"]).output.splitlines()
    listed = lines[lines.index("Commands:") + 1 :]
    assert [line.split()[0] for line in listed] == list(main.commands)
    assert all(len(line) <= 79 and not line.endswith("...") for line in listed)


def test_a_reader_that_went_away_ends_the_program_with_141():
    reading, writing = os.pipe()
    os.close(reading)
    words = ["service", "install", "--print"]
    try:
        done = subprocess.run([sys.executable, "-m", "tracker.program", *words], stdout=writing, timeout=60)
    finally:
        os.close(writing)
    assert done.returncode == 141


def test_every_command_but_run_speaks_json():
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        leaves = command.commands.values() if isinstance(command, click.Group) else [command]
        for leaf in leaves:
            options = {option for parameter in leaf.params for option in parameter.opts}
            assert {"--home", "--debug"} <= options
            assert ("--json" in options) is (name != "run")
