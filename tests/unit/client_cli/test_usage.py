"""What every command has: -h, a summary that fits, wrong usage as JSON, and a reader that goes away."""

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
from axonp2p.errors import UsageWrong, WouldOverwrite
from client_cli.main import COMMANDS, cli
from client_cli.options import keep_existing
from peer_daemon.main import COMMANDS as PEER_COMMANDS
from peer_daemon.main import cli as peer_cli
from tests.laboratory.paper_job import STATES

NOBODY = "https://127.0.0.1:1"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_short_and_long_help(name: str) -> None:
    above = click.Context(cli, **cli.context_settings)
    command = cli.get_command(above, name)
    assert command is not None
    assert click.Context(command, parent=above).help_option_names == ["-h", "--help"]


def test_h_is_understood_by_the_peers_program_too() -> None:
    assert CliRunner().invoke(peer_cli, ["-h"]).exit_code == 0
    assert CliRunner().invoke(peer_cli, ["status", "-h"]).exit_code == 0


@pytest.mark.parametrize(("group", "count"), [(cli, len(COMMANDS)), (peer_cli, len(PEER_COMMANDS))])
def test_summaries_fit_and_none_is_cut_off(group: click.Group, count: int) -> None:
    lines = CliRunner().invoke(group, ["-h"]).output.splitlines()
    listed = lines[lines.index("Commands:") + 1 :]
    assert len(listed) == count  # one line each
    assert all(len(line) <= 79 and not line.endswith("...") for line in listed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submit", "--json"], "Missing argument 'FOLDER'."),
        (["sumbit", "--json"], "No such command 'sumbit'. Did you mean 'submit'?"),
        (["swarm", "up", "-n", "0", "--json"], "Invalid value for '-n' / '--peers'"),
    ],
)
def test_wrong_usage_is_json_for_programs(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axon", *words])
    assert run_group(cli, "axon") == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["code"] == UsageWrong.code
    assert said in error["message"]
    assert error["fix"].endswith("--help")


def test_wrong_usage_of_the_peers_program_is_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axon-peer", "run", "--memory", "4 lb", "--json-logs"])
    assert run_group(peer_cli, "axon-peer") == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["fix"]) == ("AX-621", "axon-peer run --help")
    assert "'4 lb' is no size; such as 4GiB, 4GB" in error["message"]


def test_wrong_usage_is_shown_with_the_usage_to_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axon", "submit"])
    assert run_group(cli, "axon") == 2
    assert capsys.readouterr().err.startswith("Usage: axon submit")


@pytest.mark.parametrize(
    "words",
    [["client_cli.main", "version"], ["client_cli.main", "-h"], ["peer_daemon.main", "service", "install", "--print"]],
)
def test_a_reader_that_went_away_ends_the_program_with_141(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-m", *words], stdout=writing, timeout=60)
    finally:
        os.close(writing)
    assert done.returncode == 141


def test_every_command_has_a_summary_of_its_own() -> None:
    context = click.Context(cli)
    found = [command for name in COMMANDS if (command := cli.get_command(context, name))]
    assert all(command.short_help for command in found)
    assert len({command.short_help for command in found}) == len(COMMANDS)


def test_nothing_is_overwritten_unless_that_is_asked_for(tmp_path: Path) -> None:
    there, empty, full = tmp_path / "file", tmp_path / "empty", tmp_path / "full"
    there.touch()
    empty.mkdir()
    (full / "below").mkdir(parents=True)
    keep_existing([tmp_path / "nothing", empty], overwrite=False)
    keep_existing([there, full], overwrite=True)
    for paths, said in (([there], "file would"), ([full], "full would"), ([there, full], "file and 1 more would")):
        with pytest.raises(WouldOverwrite, match=said) as error:
            keep_existing(paths, overwrite=False)
        assert "--overwrite" in error.value.fix


def test_fetch_and_report_keep_what_is_there(tmp_path: Path) -> None:
    job, out = STATES["finished"](tmp_path / "home"), tmp_path / "out"
    job.folder.model.write_bytes(b"weights")
    words = ["fetch", job.folder.path.name, "-o", str(out), "--home", str(tmp_path / "home"), "--tracker", NOBODY]
    runner = CliRunner()
    assert runner.invoke(cli, words).exit_code == 0
    (out / "model.safetensors").write_bytes(b"mine")
    assert isinstance(runner.invoke(cli, words).exception, WouldOverwrite)
    assert (out / "model.safetensors").read_bytes() == b"mine"
    assert runner.invoke(cli, [*words, "--overwrite"]).exit_code == 0
    assert (out / "model.safetensors").read_bytes() == b"weights"
    (out / "report.html").touch()
    report = ["report", job.folder.path.name, "--out", str(out / "report.html"), "--home", str(tmp_path / "home")]
    assert isinstance(runner.invoke(cli, report).exception, WouldOverwrite)
