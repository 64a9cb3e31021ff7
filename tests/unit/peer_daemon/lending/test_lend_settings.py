from __future__ import annotations

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings
from peer_daemon.lending.lend_settings import limits_to_lend, priority_of


def test_jobs_stand_behind_all_other_programs_unless_the_owner_says_otherwise() -> None:
    assert priority_of(PeerSettings()) == "idle"
    assert priority_of(PeerSettings(priority="low")) == "low"
    with pytest.raises(SettingsError, match='priority = "urgent"') as wrong:
        limits_to_lend(PeerSettings(priority="urgent"))
    assert wrong.value.fix == 'priority = "idle"'
