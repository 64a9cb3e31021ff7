"""Numbers that have a unit may be written with it: in config.toml and in the environment, alike."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings, Settings, TrackerSettings, UseSettings, parse_settings

CONFIG = Path("config.toml")


def read(toml: str = "", **environment: str) -> Settings:
    return parse_settings(toml.encode(), CONFIG, environment)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("memory-mb", "4 GiB", 4096),
        ("memory-mb", "4GB", 3815),
        ("memory-mb", "4096", 4096),
        ("upload-mbit", "20Mbit/s", 20),
        ("upload-limit-mbit", "500 kbit/s", 0.5),
        ("idle-minutes", "90 s", 1.5),
        ("hand-back-minutes", "1h", 60),
    ],
)
def test_the_file_and_the_environment_take_the_same_words(key: str, text: str, value: float) -> None:
    name = key.replace("-", "_")
    variable = {f"AXON_PEER_{name.upper()}": text}
    assert getattr(read(f'[peer]\n{key} = "{text}"\n').peer, name) == value
    assert getattr(read(**variable).peer, name) == value


def test_so_do_sections_within_sections_and_trackers() -> None:
    assert read('[peer.in-use]\nmemory-mb = "2 GiB"\n').peer.in_use.memory_mb == 2048
    tracker = read('[tracker]\nannounce-every = "5 min"\nhosted-days = "36 h"\nhosted-disk-mb = "1 GiB"\n').tracker
    assert (tracker.announce_every, tracker.hosted_days, tracker.hosted_disk_mb) == (300, 1.5, 1024)


def test_what_is_there_never_becomes_nothing() -> None:
    assert read('[peer]\nupload-mbit = "200 kbit/s"\n').peer.upload_mbit == 1


def test_what_is_no_amount_is_named_with_one_that_is() -> None:
    with pytest.raises(SettingsError) as caught:
        read('[peer]\n\nmemory-mb = "4 lb"\n')
    assert caught.value.message == (
        "config.toml, line 3: memory-mb: expected a number of MiB, or one with its unit, such as 4 GiB"
    )
    assert caught.value.fix.startswith('memory-mb = "4 GiB"')
    with pytest.raises(SettingsError, match='AXON_PEER_UPLOAD_MBIT is "fast"'):
        read(AXON_PEER_UPLOAD_MBIT="fast")


def test_every_setting_named_after_a_unit_takes_it() -> None:
    for kind in (PeerSettings, UseSettings, TrackerSettings):
        for field in msgspec.structs.fields(kind):
            if field.name.endswith(("_mb", "_mbit", "_minutes", "_days")):
                assert hasattr(field.type, "__metadata__"), field.name
