"""The three questions, as a conversation."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from axonp2p.errors import SettingsError
from axonp2p.settings import read_settings
from axonp2p.wire.codec import PROTOCOL_VERSION
from peer_daemon.main import cli


def test_whoever_takes_every_suggestion_has_a_sound_peer(home, type_in):
    told = json.loads(type_in("setup", "--yes", "--json"))
    settings = read_settings(home).peer
    assert settings.cores == told["cores"] >= 1
    assert settings.on_battery is False
    assert settings.trackers == []
    assert (home / "peer.key").stat().st_mode & 0o077 == 0


def test_a_wrong_answer_is_asked_again_with_an_example(home, type_in):
    said = type_in("setup", answers="9999 cores\n1 core, 64 MiB memory\nSat,Sun\nnone\n")
    assert "not 9999; such as: " in said
    assert "axon-peer run" in said
    settings = read_settings(home).peer
    assert (settings.cores, settings.memory_mb, settings.hours) == (1, 64, ["Sat,Sun"])
    assert settings.trackers == []
    assert said.splitlines()[-1].startswith("NOT FINDABLE yet: no tracker is named")


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


NOBODY = f"https://127.0.0.1:9#{'a' * 51}q"
"""The discard port, where nothing listens."""


def test_the_tracker_is_called_and_setup_ends_with_whether_this_machine_can_be_found(home, type_in, lab):
    said = type_in("setup", answers=f"\n\n{lab.address}\n")
    assert f"tracker {lab.address.host_port} answers" in said
    assert said.splitlines()[-1].startswith("This machine can be found: while axon-peer runs, 127.0.0.1:")
    assert read_settings(home).peer.trackers == [str(lab.address)]


def test_what_a_tracker_says_of_itself_is_one_line_and_steers_no_terminal(type_in, lab):
    lab.trouble = "disk full\x1b]0;mine\x07\n     Everything is well"
    said = type_in("setup", answers=f"\n\n{lab.address}\n")
    [line] = [line for line in said.splitlines() if "it says of itself" in line]
    assert line.endswith("Everything is well")
    assert "\x1b" not in said
    assert "\x07" not in said


def test_an_address_without_its_fingerprint_is_completed_only_by_the_owners_word(home, type_in, lab):
    bare = lab.address.url
    said = type_in("setup", answers=f"\n\n{bare}\nn\n{bare}\ny\n")
    assert said.count("the address lacks #FINGERPRINT") == 2
    assert str(lab.address).partition("#")[2] in said
    assert read_settings(home).peer.trackers == [str(lab.address)]
    assert "This machine can be found" in said


def test_without_an_owner_to_ask_no_fingerprint_is_taken(home, type_in, lab):
    with pytest.raises(SettingsError, match="lacks #FINGERPRINT") as raised:
        type_in("setup", "--yes", "--tracker", lab.address.url)
    assert str(lab.address) in raised.value.cause
    assert not (home / "config.toml").exists()


def test_a_tracker_that_does_not_answer_is_kept_if_the_owner_wants(home, type_in):
    said = type_in("setup", answers=f"\n\n{NOBODY}\nn\n{NOBODY}\ny\n")
    assert said.count("tracker 127.0.0.1:9 cannot be reached (connection refused)") == 2
    assert "NOT FINDABLE yet: no tracker answers" in said
    assert read_settings(home).peer.trackers == [NOBODY]


@pytest.mark.parametrize("lab", [PROTOCOL_VERSION + 1], indirect=True)
def test_a_tracker_of_another_build_is_named(type_in, lab):
    said = type_in("setup", answers=f"\n\n{lab.address}\ny\n")
    assert f"speaks protocol {PROTOCOL_VERSION + 1}" in said


def test_a_tracker_may_be_given(home, type_in):
    told = json.loads(type_in("setup", "--yes", "--json", "--tracker", NOBODY))
    assert read_settings(home).peer.trackers == [NOBODY]
    assert list(told["no_answer"]) == [NOBODY]
