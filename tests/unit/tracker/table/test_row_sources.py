from __future__ import annotations

import pytest

from axonp2p.errors import TooOften
from axonp2p.table.tracker_client import announce
from axonp2p.wire.envelope import sign
from tests.fakes import NOW, key_of, make_row
from tests.unit.tracker.conftest import Running
from tracker.table.row_sources import RowSources
from tracker.table.table_index import REMEMBERED_S

HOME, OTHER = "198.51.100.7", "2001:db8::/56"
ADA, BEN, CLEO = key_of("ada"), key_of("ben"), key_of("cleo")


def test_one_source_has_so_many_rows_and_others_have_theirs():
    sources = RowSources(b"secret", most=2)
    for place in range(2):
        sources.check(None, HOME)
        sources.came(place, HOME)
    with pytest.raises(TooOften, match="too many from one address: 2 peers were announced from 198"):
        sources.check(None, HOME)
    sources.check(1, HOME)  # a renewal
    sources.check(None, OTHER)
    assert (sources.count(HOME), sources.count(OTHER)) == (2, 0)


def test_a_row_counts_where_it_came_from_last():
    sources = RowSources(b"secret", most=1)
    for _ in range(3):
        sources.came(5, HOME)
    assert sources.count(HOME) == 1
    sources.came(5, OTHER)
    assert (sources.count(HOME), sources.count(OTHER)) == (0, 1)
    sources.came(0, HOME)
    with pytest.raises(TooOften):
        sources.check(5, HOME)  # known, but from elsewhere
    with pytest.raises(TooOften):
        sources.check(9, HOME)  # known, but from another tracker


def test_what_is_forgotten_makes_room():
    sources = RowSources(b"secret", most=1)
    sources.came(3, HOME)
    sources.forget([3, 3, 0, 99])
    assert sources.count(HOME) == 0
    sources.check(None, HOME)


async def test_a_tracker_takes_only_so_many_peers_of_one_address(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lab.tracker.table, "_sources", RowSources(b"secret", most=2))
    await lab.announce(ADA, BEN)
    with pytest.raises(TooOften, match=r"2 peers were announced from 127\.0\.0\.1"):
        await lab.announce(CLEO)
    await lab.announce(ADA, sequence=2)
    await lab.announce(ADA, sequence=3, capability=None)
    with pytest.raises(TooOften):  # a withdrawn row is remembered
        await lab.announce(CLEO)
    lab.clock.time = NOW + REMEMBERED_S + 1
    await lab.tracker.table.sweep(lab.clock.now())
    await announce(lab.caller, sign(CLEO, make_row(CLEO, now=lab.clock.now())))
