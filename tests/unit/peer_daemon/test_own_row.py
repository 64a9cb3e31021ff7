from __future__ import annotations

from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Capability, read_capability
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as, encode
from peer_daemon.own_row import OwnRow

PEER = PrivateKey(b"p" * 32).peer_id
OFFER = Capability(
    cores=1, memory_mb=512, disk_mb=512, gflops=1.5, slots=2, free=2, python="3.11", packages={}, kinds=["train"]
)


def own_row(host: str) -> OwnRow:
    return OwnRow(PEER, "otter", b"c" * 32, OFFER, (host, 7071))


def test_who_listens_on_one_address_is_reached_there():
    row = own_row("192.0.2.7")
    assert row.addresses == ["192.0.2.7:7071"]
    assert row.seen(0, "198.51.100.1") is False
    assert row.addresses == ["192.0.2.7:7071"]


def test_who_listens_everywhere_is_reached_where_trackers_see_it():
    row = own_row("0.0.0.0")
    assert row.addresses == []
    assert row.seen(0, "192.0.2.7") is True
    assert row.seen(0, "192.0.2.7") is False
    assert row.seen(1, "2001:db8::1") is True
    assert row.addresses == ["192.0.2.7:7071", "[2001:db8::1]:7071"]
    assert row.seen(0, "::ffff:192.0.2.8") is True
    assert row.addresses == ["192.0.2.8:7071", "[2001:db8::1]:7071"]


def test_a_tracker_that_sees_nonsense_changes_nothing():
    row = own_row("::")
    assert row.seen(0, "nonsense:1234") is False
    assert row.addresses == []


def test_it_says_how_many_slots_are_free_and_withdraws():
    row = own_row("192.0.2.7")
    row.free = 1
    offering = row.offering(sequence=5, expires=1000)
    assert decode_as(encode(offering), Row, Row.LIMIT) == offering
    assert read_capability(offering.capability or {}).free == 1
    leaving = row.withdrawing(sequence=6, expires=2000)
    assert (leaving.capability, leaving.sequence, leaving.addresses) == (None, 6, [])
