"""Peers that are relays are found among those that trackers and the DHT show; the others are left out."""

from __future__ import annotations

import random

from axonp2p.errors import DhtSilent
from axonp2p.table.dht.records.compact import CARRIES, NOT_DIALABLE, OFFERS_WORK
from axonp2p.table.records import Rows
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.wire.envelope import sign
from peer_daemon.discovery.relay_discovery import RelayDiscovery
from tests.fakes import NEARBY, ManualClock, key_of, make_row
from tests.unit.table.dht.rows import key_number, row_of

ME, ADA, BEN, CLEO, DORA = (key_of(name) for name in ("me", "ada", "ben", "cleo", "dora"))
TRACKER = f"https://192.0.2.1:7070#{'a' * 52}"


class OneAnswer(TrackerLines):
    """A tracker that shows these rows."""

    def __init__(self, *signed):
        super().__init__(TrackerHealth([TRACKER]), ManualClock(), random.Random(1))
        self._answer = Rows(rows=list(signed), fitting=len(signed), alive=len(signed))

    async def first(self, ask, **_):
        outer = self

        class Line:
            called = "tracker lab"

            async def call(self, *_, **__):
                return outer._answer

        line = Line()
        return line, await ask(line)


async def test_only_peers_that_carry_and_can_be_dialled():
    addresses = {"addresses": ["192.0.2.9:7071"]}
    lines = OneAnswer(
        sign(ADA, make_row(ADA, carries=True, dialable=True, **addresses)),
        sign(BEN, make_row(BEN, carries=True, dialable=False, **addresses)),
        sign(CLEO, make_row(CLEO, **addresses)),
        sign(ME, make_row(ME, carries=True, **addresses)),
        sign(DORA, make_row(DORA, carries=True, dialable=True, addresses=["127.0.0.1:22", "10.0.0.1:22"])),
    )
    (found,) = await RelayDiscovery(ME.peer_id, lines, ManualClock(), NEARBY, None).find()
    assert found.peer == ADA.peer_id
    assert found.is_peer
    assert found.address.startswith("https://192.0.2.9:7071#")


async def test_the_dht_names_some_too_and_may_be_silent():
    one, other = row_of(key_number(1), flags=OFFERS_WORK | CARRIES), row_of(key_number(2), flags=CARRIES | NOT_DIALABLE)

    async def find(wanted, count):
        return [one, other, row_of(key_number(3))]

    (found,) = await RelayDiscovery(ME.peer_id, OneAnswer(), ManualClock(), NEARBY, find).find()
    assert found.peer == one.peer

    async def silent(wanted, count):
        raise DhtSilent("nobody answers")

    assert await RelayDiscovery(ME.peer_id, OneAnswer(), ManualClock(), NEARBY, silent).find() == []
