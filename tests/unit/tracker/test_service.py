"""`axon-tracker service`, for somebody for whom no systemd answers, as in a container or after sudo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from axonp2p.errors import SettingsError
from tracker.service import service

UNIT = ".config/systemd/user/axon-tracker.service"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(person))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return person


def type_in(*words: str) -> str:
    done = CliRunner().invoke(service, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_it_is_written_and_the_commands_are_named_where_nobody_answers(person: Path, tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "home")]
    said = type_in("install", *home)
    assert f'"--home" "{tmp_path}/home"' in (person / UNIT).read_text()
    assert "systemctl --user enable --now axon-tracker.service" in said
    assert type_in("status").startswith("Installed")
    assert json.loads(type_in("uninstall", "--json", *home))["removed"]
    assert not (person / UNIT).exists()
    assert type_in("status").startswith("No service is installed.   axon-tracker service install")


def test_printing_changes_nothing(person: Path) -> None:
    assert "DynamicUser=yes" in type_in("install", "--system", "--print")
    assert list(person.iterdir()) == []


def test_a_service_of_the_machine_is_not_run_from_a_persons_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", "/home/ada/.venv")
    with pytest.raises(SettingsError) as refused:
        type_in("install", "--system")
    assert "/opt/axon/bin/axon-tracker service install --system" in refused.value.fix


def test_a_service_of_the_machine_has_the_folder_that_systemd_makes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        type_in("install", "--system", "--print", "--home", str(tmp_path))
    assert "/var/lib/axon-tracker" in refused.value.cause
    assert "--home" not in refused.value.fix
