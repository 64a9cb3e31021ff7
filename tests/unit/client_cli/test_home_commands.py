"""Commands about this computer alone: completion, removing a job, settings, and the log of one peer."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from axonp2p.errors import AlreadyRunning, NotFound, SettingsError
from axonp2p.jobs.lifecycle import JobState
from client_cli.main import cli
from client_cli.options import job_ids
from tests.laboratory.paper_job import STATES


def axon(home: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--home", str(home)])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_axon(tmp_path: Path, shell: str) -> None:
    done = axon(tmp_path, "completion", shell)
    assert done.exit_code == 0
    assert f"_AXON_COMPLETE={shell}_complete" in done.output


def test_ids_of_jobs_are_completed(tmp_path: Path) -> None:
    STATES["finished"](tmp_path)
    command = cli.get_command(click.Context(cli), "status")
    assert command is not None
    context = click.Context(command)
    context.params["home"] = tmp_path
    assert job_ids(context, command.params[0], "dig") == ["digits-7f3a"]
    assert job_ids(context, command.params[0], "x") == []


def test_a_job_that_is_over_is_removed_when_that_is_said(tmp_path: Path) -> None:
    job = STATES["finished"](tmp_path / "home")
    outside = tmp_path / "mine"
    outside.mkdir()
    (outside / "file").touch()
    (job.folder.path / "link").symlink_to(outside)
    asked = axon(tmp_path / "home", "rm", "digits")
    assert (asked.exit_code, job.folder.path.exists()) == (2, True)  # nobody can be asked here
    done = axon(tmp_path / "home", "rm", "digits", "--yes", "--json")
    assert json.loads(done.output)["removed"] == "digits-7f3a"
    assert not job.folder.path.exists()
    assert (outside / "file").exists()


def test_a_job_that_runs_or_holds_slots_is_not_removed(tmp_path: Path) -> None:
    job = STATES["running"](tmp_path)
    assert isinstance(axon(tmp_path, "rm", "digits", "-y").exception, SettingsError)
    job.journal.change(state=JobState.FINISHED)
    with job.folder.held():
        assert isinstance(axon(tmp_path, "rm", "digits", "-y").exception, AlreadyRunning)
    job.folder.leases.touch()
    assert isinstance(axon(tmp_path, "rm", "digits", "-y").exception, SettingsError)
    assert job.folder.path.exists()


def test_settings_are_told_with_where_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text('[client]\ndht-contacts = ["127.0.0.1:1"]\n')
    monkeypatch.setenv("AXON_CLIENT_DHT", "false")
    told = json.loads(axon(tmp_path, "config", "--json").output)
    assert told["settings"]["dht-contacts"] == {"value": ["127.0.0.1:1"], "from": "config.toml"}
    assert told["settings"]["dht"] == {"value": False, "from": "AXON_CLIENT_DHT"}
    assert told["settings"]["trackers"] == {"value": [], "from": "default"}
    assert str(tmp_path / "config.toml") in axon(tmp_path, "config").output


def test_a_setting_is_changed_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\n[client]\nlan = true  # at home\n")
    assert axon(tmp_path, "config", "set", "dht", "false").exit_code == 0
    assert axon(tmp_path, "config", "set", "trackers", "https://a:1", "https://b:2").exit_code == 0
    theirs = "# mine\n[client]\nlan = true  # at home\ndht = false\n"
    assert file.read_text() == f'{theirs}trackers = ["https://a:1", "https://b:2"]\n'
    assert axon(tmp_path, "config", "get", "trackers").output == "https://a:1 https://b:2\n"
    assert axon(tmp_path, "config", "unset", "trackers").exit_code == 0
    assert file.read_text() == theirs
    assert axon(tmp_path, "config", "get", "trackers").output == "\n"
    told = json.loads(axon(tmp_path, "config", "get", "dht", "--json").output)
    assert told == {"setting": "dht", "value": False, "from": "config.toml"}


@pytest.mark.parametrize(
    ("words", "said", "fix"),
    [
        (["dht", "maybe"], 'dht is "maybe"', "axon config set dht true"),
        (["trackrs", "https://a:1"], "Did you mean trackers?", "one of trackers, dht"),
        (["trackers", "nonsense"], "'nonsense' is not an address", "https://HOST:PORT#FINGERPRINT"),
        (["dht-contacts", "nowhere"], "'nowhere' is not HOST:PORT", "HOST:PORT"),
    ],
)
def test_a_wrong_setting_is_refused_and_nothing_is_written(
    tmp_path: Path, words: list[str], said: str, fix: str
) -> None:
    error = axon(tmp_path, "config", "set", *words).exception
    assert isinstance(error, SettingsError)
    assert said in error.message
    assert fix in error.fix.replace(f" --home {tmp_path}", "")
    assert not (tmp_path / "config.toml").exists()


def test_the_environment_that_wins_is_named_when_a_setting_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXON_CLIENT_DHT", "true")
    assert "dht = true   (AXON_CLIENT_DHT says so" in axon(tmp_path, "config", "set", "dht", "false").output
    assert "dht = false" in (tmp_path / "config.toml").read_text()


def test_a_home_before_the_verb_is_the_same_home(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["config", "--home", str(tmp_path), "set", "lan", "false"])
    assert done.exit_code == 0
    assert (tmp_path / "config.toml").exists()


def test_the_log_of_one_peer(tmp_path: Path) -> None:
    job = STATES["finished"](tmp_path)
    for name in ("otter", "heron"):
        job.folder.add_log(name, f"{name} says hello\n".encode())
    assert axon(tmp_path, "logs", "digits", "ott").output.splitlines() == ["==> otter <==", "otter says hello"]
    assert set(json.loads(axon(tmp_path, "logs", "digits", "heron", "--json").output)["logs"]) == {"heron"}
    missing = axon(tmp_path, "logs", "digits", "nobody").exception
    assert isinstance(missing, NotFound)
    assert "otter" in missing.cause
