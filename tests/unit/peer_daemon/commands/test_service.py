"""`axon-peer service`, in a home without a service manager."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from peer_daemon.main import cli

UNIT = ".config/systemd/user/axon-peer.service"


@pytest.fixture
def person(tmp_path, monkeypatch):
    """Somebody for whom no systemd answers, as in a container or after sudo."""
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(person))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return person


def test_it_is_written_and_the_commands_are_named_where_nobody_answers(person, type_in):
    said = type_in("service", "install")
    assert (person / UNIT).exists()
    assert "Not started: " in said
    assert "systemctl --user enable --now axon-peer.service" in said
    assert type_in("service", "status").startswith("Installed")
    told = json.loads(type_in("service", "uninstall", "--json"))
    assert told["removed"]
    assert not (person / UNIT).exists()
    assert type_in("service", "status").startswith("No service is installed")
    assert type_in("service", "uninstall").startswith("No service was installed")


def test_printing_changes_nothing(person, home, type_in):
    said = type_in("service", "install", "--print")
    assert str(home) in said
    assert list(person.iterdir()) == []


def test_a_peer_is_a_persons_and_never_runs_as_root(person):
    done = CliRunner().invoke(cli, ["service", "install", "--system", "--print"])
    assert done.exit_code == 2
    assert "--system" in done.output
