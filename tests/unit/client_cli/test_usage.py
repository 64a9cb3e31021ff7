"""What every command has: -h, a summary that fits, wrong usage as JSON, and a reader that goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from axonp2p.command_group import run_group
from axonp2p.errors import UsageWrong
from client_cli.main import COMMANDS, cli
from peer_daemon.main import cli as peer_cli


@pytest.mark.parametrize("name", COMMANDS)
def test_short_and_long_help_say_the_same(name: str) -> None:
    short, long = (CliRunner().invoke(cli, [name, word]) for word in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)


def test_h_is_understood_by_the_peers_program_too() -> None:
    assert CliRunner().invoke(peer_cli, ["-h"]).exit_code == 0
    assert CliRunner().invoke(peer_cli, ["status", "-h"]).exit_code == 0


def test_summaries_fit_and_none_is_cut_off() -> None:
    lines = CliRunner().invoke(cli, ["-h"]).output.splitlines()
    listed = lines[lines.index("Commands:") + 1 :]
    assert len(listed) == len(COMMANDS)  # one line each
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


def test_wrong_usage_is_shown_with_the_usage_to_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axon", "submit"])
    assert run_group(cli, "axon") == 2
    assert capsys.readouterr().err.startswith("Usage: axon submit")


def test_a_reader_that_went_away_ends_the_program_with_141() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-m", "client_cli.main", "version"], stdout=writing, timeout=60)
    finally:
        os.close(writing)
    assert done.returncode == 141


def test_every_command_has_a_summary_of_its_own() -> None:
    context = click.Context(cli)
    found = [command for name in COMMANDS if (command := cli.get_command(context, name))]
    assert all(command.short_help for command in found)
    assert len({command.short_help for command in found}) == len(COMMANDS)
