from __future__ import annotations

import asyncio

import pytest

from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.table.dht.lan import LanPeer
from axonp2p.table.records import Announced
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.vouching import sign_vouching
from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.announcing.row_sender import Given
from peer_daemon.announcing.row_writer import Numbers, RowWriter
from peer_daemon.discovery.presence import Parts, Presence
from peer_daemon.discovery.reachability import Reachability
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lending import Lending
from tests.fakes import NOW, ManualClock, key_of, make_offer

PEER, TRACKER, OTHER = key_of("peer"), key_of("tracker"), key_of("other")
CONFIGURED = "https://192.0.2.1:7070"
LEARNT = "https://192.0.2.2:7070"


class Told:
    """Stands for the parts, and remembers what they were told."""

    def __init__(self):
        self.changes = 0
        self.trackers_know = asyncio.Event()
        self.wakes = 0
        self.nudges = 0
        self.offered: list[str] = []
        self.rows = []
        self.said: list[list[str]] = []
        self.holders = 0
        self.is_the_first = False
        self.learns = False
        self.serves = False
        self.own_address_seen: str | None = None

    is_lonely = False

    def changed(self):
        self.changes += 1
        return self.trackers_know

    def others_say(self):
        self.changes += 1

    def woken(self):
        self.wakes += 1

    def nudge(self):
        self.nudges += 1

    def offer(self, contacts):
        self.offered += contacts

    def tell(self, row):
        self.rows.append(row)

    def say(self, trackers):
        self.said.append(trackers)

    async def hear(self, line, news):
        return self.learns

    def is_due(self, address, news, *, lonely):
        return news is None or lonely


class Line:
    address = CONFIGURED
    called = "tracker"


class Setting:
    def __init__(self, folder, *configured):
        self.told = Told()
        self.health = TrackerHealth(configured)
        self.ready = folder / "ready"
        clock = ManualClock()
        self.own = OwnRow(
            lasting_row(PEER.peer_id, "otter", b"c" * 32, issues_tokens=True), Lending(make_offer()), "0.0.0.0"
        )
        self.own.port = 7071
        self.rows = RowWriter(PEER, self.own, Numbers(folder / "sequence", clock), clock, lambda: b"")
        self.leases = Leases(PEER.peer_id, Lending(make_offer()), check_address=True)
        self.presence = Presence(self.ready, self.rows, self.leases, self.health, clock)
        self.reachability = Reachability(self.own, self.told, lambda: ["192.0.2.7"])
        self.reachability.port = 7071
        told = self.told
        self.presence.parts = Parts(told, told, told, told, dht=told, reachability=self.reachability, lan=told)

    async def announced(self, **changes):
        usual = {"tracker": TRACKER.peer_id, "again_in": 300, "seen_from": "192.0.2.7", "time": 0}
        self.own.seen(CONFIGURED, "192.0.2.7", trusted=True)
        await self.presence.announced(Line(), Given(Announced(**(usual | changes)), None))


@pytest.fixture
def make(tmp_path):
    return lambda *configured: Setting(tmp_path, *configured)


async def test_a_yes_of_a_tracker_makes_the_peer_ready(make):
    setting = make(CONFIGURED)
    await setting.rows.renew(600, [])
    await setting.announced()
    assert setting.told.nudges == 1
    assert setting.ready.read_text() == f"{PEER.peer_id} 192.0.2.7:7071\n"


async def test_a_tracker_that_reached_the_peer_makes_its_node_serve(make):
    setting = make(CONFIGURED)
    await setting.rows.renew(600, [])
    await setting.announced(reached=True)
    assert (setting.told.serves, setting.own.dht, setting.told.changes) == (True, 7071, 1)
    setting.presence.tracker_lost(CONFIGURED)
    assert (setting.told.serves, setting.own.dht, setting.told.changes) == (False, 0, 2)


async def test_news_of_other_trackers_wake_the_announcer(make):
    setting = make(CONFIGURED)
    await setting.announced()
    assert setting.told.wakes == 0
    setting.told.learns = True
    await setting.announced()
    assert setting.told.wakes == 1


async def test_a_row_goes_to_the_dht_and_its_trackers_to_the_local_network(make):
    setting = make(CONFIGURED)
    setting.own.seen(CONFIGURED, "192.0.2.7", trusted=True)
    written = await setting.rows.renew(600, [CONFIGURED])
    setting.presence.written(written)
    assert setting.told.rows == [written.compact]
    assert setting.told.said == [[CONFIGURED]]


async def test_without_a_tracker_it_is_ready_once_the_dht_has_its_row_or_it_is_the_first(make):
    setting = make()
    await setting.rows.renew(600, [])
    setting.told.own_address_seen = "192.0.2.7:7071"
    await setting.presence.met()
    assert not setting.ready.exists()
    setting.told.holders = 2
    await setting.presence.met()
    assert setting.ready.read_text().split()[1] == "192.0.2.7:7071"
    setting = make()
    setting.ready.unlink()
    await setting.rows.renew(600, [])
    setting.own.seen_by_nodes("192.0.2.7")
    setting.told.is_the_first = True
    await setting.presence.met()
    assert setting.ready.exists()


def found(*trackers):
    return LanPeer(
        peer=OTHER.peer_id, name="heron", hosts=["192.0.2.8"], dht=7071, listens=7071, trackers=list(trackers)
    )


def test_the_local_network_names_nodes_and_trackers_only_to_who_has_none_from_its_owner(make):
    setting = make()
    setting.presence.heard_on_lan(found(LEARNT))
    assert setting.told.offered == ["192.0.2.8:7071"]
    assert setting.health.addresses == [LEARNT]
    assert setting.told.wakes == 1
    setting.presence.heard_on_lan(found(LEARNT))
    assert setting.told.wakes == 1
    setting = make(CONFIGURED)
    setting.presence.heard_on_lan(found(LEARNT))
    assert setting.told.offered == ["192.0.2.8:7071"]
    assert setting.health.addresses == [CONFIGURED]


def test_slots_that_change_are_told(make):
    setting = make()
    assert setting.presence.slots_changed() is setting.told.trackers_know
    assert (setting.own.free, setting.told.changes, setting.told.nudges) == (2, 1, 1)


def test_only_trusted_trackers_are_relays(make):
    pin = "#" + fingerprint_text(b"f" * 32)
    setting = make(CONFIGURED + pin)
    setting.health.learn(LEARNT + pin, NOW, OTHER.peer_id)
    for address, key in ((CONFIGURED + pin, TRACKER), (LEARNT + pin, OTHER)):
        setting.health.answered(address, NOW, tracker=key.peer_id)
    assert [one.address for one in setting.presence._trackers_as_relays()] == [CONFIGURED + pin]
    setting.health.hear_vouching(
        CONFIGURED + pin, TRACKER.peer_id, sign_vouching(TRACKER, {OTHER.peer_id: LEARNT + pin}, NOW), NOW
    )
    assert [one.address for one in setting.presence._trackers_as_relays()] == [CONFIGURED + pin, LEARNT + pin]
