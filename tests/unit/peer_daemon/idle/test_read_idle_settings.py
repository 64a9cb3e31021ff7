"""From settings to wishes: what can be meant, and what is said where it cannot."""

from __future__ import annotations

import math
from typing import Any

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings, UseSettings
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.idle.read_idle_settings import idle_settings_of


def test_the_defaults_of_the_settings_are_those_of_the_policy() -> None:
    assert idle_settings_of(PeerSettings()) == IdleSettings()


def test_wishes_are_in_the_units_of_the_policy() -> None:
    settings = idle_settings_of(
        PeerSettings(
            idle_minutes=5, hand_back_minutes=0, yield_to=[" Blender"], in_use=UseSettings(others_cpu=40, cores=1)
        )
    )
    assert (settings.idle_s, settings.hand_back_s, settings.yield_to) == (300, 0, {"blender"})
    assert (settings.in_use.others_cpu, settings.in_use.cores) == (0.4, 1)
    assert settings.not_in_use.others_cpu == 0.25


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"idle_minutes": -1}, "idle-minutes = 0.1"),
        ({"idle_minutes": math.nan}, "idle-minutes"),
        ({"hand_back_minutes": 1e9}, "hand-back-minutes = 1440"),
        ({"others_mbit": -5}, "others-mbit = 0"),
        ({"hottest_c": 20}, "hottest-c = 40   (0: do not look)"),
        ({"keep_memory_free_mb": -1}, "keep-memory-free-mb = 0"),
        ({"keep_disk_free_mb": -1}, "keep-disk-free-mb = 0"),
        ({"in_use": UseSettings(others_cpu=0)}, "others-cpu = 1   (100: never wait for other programs)"),
        ({"not_in_use": UseSettings(cores=-2)}, "cores = 0"),
        ({"not_in_use": UseSettings(memory_mb=-2)}, "memory-mb = 0"),
        ({"yield_to": ["/usr/bin/blender"]}, 'yield-to = ["blender"]'),
        ({"hours": ["sometimes"]}, "Mon-Fri 18:00-08:00"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_could_be(wrong: dict[str, Any], fix: str) -> None:
    with pytest.raises(SettingsError) as caught:
        idle_settings_of(PeerSettings(**wrong))
    assert fix in caught.value.fix


def test_settings_under_which_nothing_would_ever_run_are_refused() -> None:
    never = UseSettings(run=False)
    with pytest.raises(SettingsError, match="no job would ever run"):
        idle_settings_of(PeerSettings(in_use=never, not_in_use=never))
