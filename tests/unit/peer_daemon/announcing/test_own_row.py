from __future__ import annotations

import msgspec

from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Capability, read_capability
from axonp2p.table.dht.records.compact import sign_compact
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.schema import IN_ROWS, SCHEMAS
from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.lending.lending import Lending

KEY = PrivateKey(b"p" * 32)
PEER = KEY.peer_id
OFFER = Capability(
    cores=1, memory_mb=512, disk_mb=512, gflops=1.5, slots=2, free=2, python="3.11", packages={}, kinds=["train"]
)


def own_row(host: str, offer: Capability = OFFER, *, issues_tokens: bool = True) -> OwnRow:
    row = OwnRow(lasting_row(PEER, "otter", b"c" * 32, issues_tokens=issues_tokens), Lending(offer), host)
    row.port = 7071
    return row


def test_who_listens_on_one_address_is_reached_there():
    row = own_row("192.0.2.7")
    assert row.addresses == ["192.0.2.7:7071"]
    assert row.seen("a", "198.51.100.1", trusted=True) is False
    assert row.addresses == ["192.0.2.7:7071"]


def test_who_listens_everywhere_is_reached_where_trackers_see_it():
    row = own_row("0.0.0.0")
    assert row.addresses == []
    assert row.seen("a", "192.0.2.7", trusted=True) is True
    assert row.seen("a", "192.0.2.7", trusted=True) is False
    assert row.seen("b", "2001:db8::1", trusted=True) is True
    assert row.addresses == ["192.0.2.7:7071", "[2001:db8::1]:7071"]
    assert row.seen("a", "::ffff:192.0.2.8", trusted=True) is True
    assert row.addresses == ["192.0.2.8:7071", "[2001:db8::1]:7071"]


def test_a_tracker_that_sees_nonsense_changes_nothing():
    row = own_row("::")
    assert row.seen("a", "nonsense:1234", trusted=True) is False
    assert row.addresses == []


def test_it_says_how_many_slots_are_free_and_withdraws():
    row = own_row("192.0.2.7")
    row.free = 1
    offering = row.offering(sequence=5, expires=1000)
    assert decode_as(encode(offering), Row, Row.LIMIT) == offering
    assert read_capability(offering.capability or {}).free == 1
    assert offering.schema == SCHEMAS[IN_ROWS]
    leaving = row.withdrawing(sequence=6, expires=2000)
    assert (leaving.capability, leaving.sequence, leaving.addresses) == (None, 6, [])


def test_nodes_are_believed_while_no_tracker_says_where_it_is():
    row = own_row("0.0.0.0")
    assert row.seen_by_nodes("192.0.2.9") is True
    assert row.seen_by_nodes("192.0.2.9") is False
    assert row.addresses == ["192.0.2.9:7071"]
    assert row.seen("a", "192.0.2.7", trusted=True) is True
    assert row.seen_by_nodes("192.0.2.10") is False
    assert row.addresses == ["192.0.2.7:7071"]
    row.forget("a")
    assert row.addresses == ["192.0.2.10:7071"]


def test_the_last_word_on_where_it_is_is_kept():
    row = own_row("0.0.0.0")
    row.seen("a", "192.0.2.7", trusted=True)
    row.seen("b", "192.0.2.8", trusted=True)
    row.forget("a")
    row.forget("b")
    row.forget("never heard of")
    assert row.addresses == ["192.0.2.8:7071"]


def test_the_row_names_node_place_and_trackers():
    row = own_row("192.0.2.7")
    row.dht = 7072
    trackers = [f"https://192.0.2.{number}:7070#{'a' * 52}" for number in range(3)]
    full = row.offering(sequence=5, expires=1000, trackers=trackers, coordinate=b"c" * 12)
    assert decode_as(encode(full), Row, Row.LIMIT) == full
    assert (full.dht, full.coordinate, full.trackers, full.issues_tokens) == (7072, b"c" * 12, trackers[:2], True)


def test_the_largest_row_fits():
    offer = Capability(
        cores=64, memory_mb=2**20, disk_mb=2**20, gflops=12345.67, slots=64, free=64, python="3.11.15",
        packages={f"package-{number}": "1.2.3" for number in range(40)}, kinds=["train"],
        datasets=[f"dataset-{number}" for number in range(10)], upload_mbit=1000, download_mbit=1000,
        refuses="r" * 120,
    )  # fmt: skip
    row = own_row("0.0.0.0", offer)
    for number in range(4):
        row.seen(str(number), f"2001:db8:1111:2222:3333:4444:5555:{number}", trusted=True)
    row.dht = 65535
    trackers = [f"https://tracker-{number}.example.org:65535#{'a' * 52}" for number in range(2)]
    full = row.offering(sequence=2**52, expires=2**33, trackers=trackers, coordinate=b"c" * 12)
    assert len(encode(full)) <= Row.LIMIT


def test_the_compact_row_says_the_same_in_few_bytes():
    offer = Capability(
        cores=4, memory_mb=8192, disk_mb=512, gflops=1.5, slots=2, free=2, python="3.11",
        packages={"torch": "2.13.0", "numpy": "2.4.6"}, kinds=["train"],
    )  # fmt: skip
    own = own_row("192.0.2.7", offer)
    own.dht = 7071
    own.free = 0
    row = own.offering(sequence=5, expires=1000)
    compact = own.compact(row)
    assert (compact.peer, compact.addresses, compact.dht) == (PEER, ["192.0.2.7:7071"], 7071)
    assert (compact.sequence, compact.expires, compact.cores, compact.memory_mb) == (5, 1000, 4, 8192)
    assert (compact.tags, compact.offers_work, compact.issues_tokens) == (("torch2",), True, True)
    assert len(sign_compact(KEY, compact)) < 320


def test_who_takes_no_work_or_gives_no_tokens_says_so_in_the_compact_row():
    own = own_row("192.0.2.7", msgspec.structs.replace(OFFER, refuses="no bubblewrap"), issues_tokens=False)
    compact = own.compact(own.offering(sequence=5, expires=1000))
    assert (compact.offers_work, compact.issues_tokens) == (False, False)


def test_no_compact_row_while_nobody_could_call():
    own = own_row("0.0.0.0")
    assert own.compact(own.offering(sequence=5, expires=1000)) is None
    named = own_row("otter.example")
    assert named.compact(named.offering(sequence=5, expires=1000)) is None
