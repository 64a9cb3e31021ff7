"""config.toml is changed by a program: what the person wrote around it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import ClientSettings, PeerSettings
from axonp2p.settings_check import setting_of, value_of_words
from axonp2p.settings_file import change_settings, rewritten

THEIRS = """\
# mine
[peer]   # this machine
name = "otter"
cores = 1  # was 2

[client]
# the lab
trackers = [
    "https://a:1",  # theirs
]
lan = true
"""


def test_comments_and_order_stay() -> None:
    after = rewritten(THEIRS, {"client": {"dht": False, "lan": False, "trackers": ["https://a:1"]}})
    assert after == THEIRS.replace("lan = true", "lan = false\ndht = false")


def test_a_key_is_taken_out_and_nothing_is_made_for_one_that_is_not_there() -> None:
    assert rewritten(THEIRS, {"client": {"lan": None}}) == THEIRS.replace("lan = true\n", "")
    assert rewritten(THEIRS, {"tracker": {"relay": None}, "peer.in-use": {"run": None}}) == THEIRS


def test_a_section_written_in_a_line_is_changed_in_it() -> None:
    assert rewritten("peer = {cores = 1}\n", {"peer.in-use": {"run": False}}) == (
        "peer = {cores = 1,in-use = {run = false}}\n"
    )


def test_an_empty_file_begins_with_the_head() -> None:
    assert rewritten("", {"peer": {"cores": 2}}, head="Mine") == "# Mine\n\n[peer]\ncores = 2\n"


def test_what_is_wrong_never_gets_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(THEIRS)
    for section, key, value in (("client", "dht", "maybe"), ("client", "dth", True), ("peer", "cores", "many")):
        with pytest.raises(SettingsError):
            change_settings(tmp_path, {section: {key: value}})
    assert (tmp_path / "config.toml").read_text() == THEIRS


def test_a_file_that_is_wrong_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[client]\ndth = true\n")
    with pytest.raises(SettingsError, match=r"line 2: dth: unknown key\. Did you mean dht\?"):
        change_settings(tmp_path, {"client": {"lan": False}})
    assert (tmp_path / "config.toml").read_text() == "[client]\ndth = true\n"


def test_words_become_what_toml_has() -> None:
    def meant(kind: type, key: str, *words: str) -> object:
        return value_of_words(kind, key, words, command="set")

    assert meant(ClientSettings, "dht", "false") is False
    assert meant(ClientSettings, "trackers", "https://a:1", "https://b:2") == ["https://a:1", "https://b:2"]
    assert meant(PeerSettings, "memory-mb", "4 GiB") == 4096
    assert meant(PeerSettings, "name", "otter") == "otter"
    for words in (("maybe",), ("true", "false")):
        with pytest.raises(SettingsError) as caught:
            meant(ClientSettings, "dht", *words)
        assert caught.value.fix == "set dht true"


def test_a_key_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"trackrs: unknown key\. Did you mean trackers\?"):
        setting_of(ClientSettings, "trackrs")
    with pytest.raises(SettingsError, match=r"in-use: unknown key\."):
        setting_of(PeerSettings, "in-use")
