"""The three questions, as a conversation."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from axonp2p.errors import SettingsError
from axonp2p.settings import read_settings
from peer_daemon.main import cli


def test_whoever_takes_every_suggestion_has_a_sound_peer(home, type_in):
    told = json.loads(type_in("setup", "--yes", "--json"))
    settings = read_settings(home).peer
    assert settings.cores == told["cores"] >= 1
    assert settings.on_battery is False
    assert settings.trackers == []
    assert (home / "peer.key").stat().st_mode & 0o077 == 0


def test_a_wrong_answer_is_asked_again_with_an_example(home, type_in):
    said = type_in("setup", answers="9999 cores\n1 core, 64 MB memory\nSat,Sun\nhttps://lab.local:7070\n")
    assert "not 9999; such as: " in said
    assert "axon-peer run" in said
    settings = read_settings(home).peer
    assert (settings.cores, settings.memory_mb, settings.hours) == (1, 64, ["Sat,Sun"])
    assert settings.trackers == ["https://lab.local:7070"]


def test_nothing_is_overwritten_unasked(home, type_in):
    home.mkdir()
    config = home / "config.toml"
    config.write_text("[peer]\nslots = 2 # mine\n")
    with pytest.raises(SettingsError):
        type_in("setup", "--yes")
    said_no = CliRunner().invoke(cli, ["setup", "--home", str(home)], input="n\n")
    assert said_no.exit_code != 0
    assert config.read_text() == "[peer]\nslots = 2 # mine\n"
    type_in("setup", answers="y\n\n\n\n")
    assert "slots = 2 # mine\n" in config.read_text()


def test_a_tracker_may_be_given(home, type_in):
    type_in("setup", "--yes", "--tracker", "https://lab.local:7070")
    assert read_settings(home).peer.trackers == ["https://lab.local:7070"]
