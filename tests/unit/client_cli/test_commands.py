"""The command line: what there is, what is refused, and what loading it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobStore
from axonp2p.errors import AxonError, NotFound, SettingsError
from axonp2p.kinds.train.section import TrainJob
from client_cli.main import COMMANDS, cli


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Every command by its words."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {verb}", below) for verb, below in command.commands.items())
        else:
            yield name, command


ALL = dict(leaves())


@pytest.mark.parametrize("words", ALL)
def test_every_command_speaks_json_has_a_home_and_says_what_it_is_for(words: str) -> None:
    options = {option for parameter in ALL[words].params for option in parameter.opts}
    assert {"--json", "--home", "--debug"} <= options
    shown = CliRunner().invoke(cli, [*words.split(), "--help"])
    assert shown.exit_code == 0
    assert ALL[words].help


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sumbit x", "Did you mean 'submit'?"),
        ("swarm upp", "Did you mean 'up'?"),
        ("swarm up --peer 3", "--peers"),
        ("swarm up -n 0", "Invalid value"),
        ("swarm up -n 65", "Invalid value"),
        ("demo --peers 1", "Invalid value"),
        ("fetch job", "Missing option"),
        ("submit /nowhere/at/all", "does not exist"),
        ("status", "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_hint(words: str, said: str) -> None:
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 2
    assert said in done.output


def test_help_loads_nothing_that_is_slow() -> None:
    program = """
import sys
from client_cli.main import cli
cli.main(["--help"], standalone_mode=False)
slow = {"torch", "aiohttp", "rich", "asyncio", "structlog", "numpy"}
print(sorted({name.split(".")[0] for name in sys.modules} & slow))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_job_yet(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["jobs", "--home", str(tmp_path), "--json"])
    assert json.loads(done.output) == {"jobs": [], "unreadable": {}}
    assert "axon init my-job" in CliRunner().invoke(cli, ["jobs", "--home", str(tmp_path)]).output


@pytest.mark.parametrize(
    ("words", "error"), [("status nothing", NotFound), ("fetch x -o out", NotFound), ("peers", SettingsError)]
)
def test_what_is_not_there_is_an_error_of_the_family(tmp_path: Path, words: str, error: type[AxonError]) -> None:
    done = CliRunner().invoke(cli, [*words.split(), "--home", str(tmp_path)])
    assert isinstance(done.exception, error)


def test_a_swarm_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    for verb in ("status", "down"):
        assert CliRunner().invoke(cli, ["swarm", verb, "--home", str(tmp_path)]).exit_code == 0
    assert json.loads(CliRunner().invoke(cli, ["swarm", "down", "--home", str(tmp_path), "--json"]).output) == {
        "stopped": []
    }


def test_the_program_ends_with_the_code_of_its_error(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "client_cli.main", "status", "nothing", "--home", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert done.stdout == ""
    assert json.loads(done.stderr)["error"]["code"] == "AX-501"


def test_a_job_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    for job in ("line-good", "line-bad"):
        folder = store.create(new_record(job, TrainJob(name="line"), "/x", 1.0))
    for name in ("job.json", "job.json.bak"):
        (folder.path / name).write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(cli, ["jobs", "--home", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 9
    assert "line-good" in done.output
    assert "line-bad cannot be read: " in done.output
    assert "fix: " in done.output
