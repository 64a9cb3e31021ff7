from __future__ import annotations

import itertools
from hashlib import sha256
from typing import Any

import pytest

from axonp2p.errors import BadSignature, Busy, ClockWrong, MalformedMessage, Refused, StaleRow, TooOften
from axonp2p.reservation.reserving import new_uuid
from axonp2p.table.records import LONGEST_LIFE_S, Row
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_offer, make_receipt, make_request, make_row
from tracker.table.admission import (
    MOST_KNOWN_PEERS,
    MOST_RESERVATIONS_OF_KEY,
    MOST_RESERVATIONS_OF_ONE,
    MOST_UNUSED_PEERS_OF_KEY,
    MOST_UNUSED_PEERS_OF_ONE,
    NUMBER_AHEAD_S,
    Holding,
    IssuedToken,
    KnownRow,
    PromisedPeers,
    check_peers,
    check_request_time,
    check_reservations,
    check_room,
    check_same_wish,
    is_new_receipt,
    is_news,
    open_announced,
    wish_of,
)

CLIENT, PEER, OTHER = key_of("client"), key_of("peer"), key_of("other")


def test_a_strangers_row_and_a_higher_number_are_news():
    assert is_news(make_row(PEER, sequence=0), b"row", None)
    assert is_news(make_row(PEER, sequence=8), b"row", KnownRow(7, b"old"))


def test_the_same_row_again_is_no_news():
    assert not is_news(make_row(PEER, sequence=7), b"row", KnownRow(7, b"row"))


@pytest.mark.parametrize("sequence", [6, 7])
def test_an_older_number_and_another_row_with_the_same_number_are_stale(sequence: int):
    with pytest.raises(StaleRow, match="is not newer than row 7"):
        is_news(make_row(PEER, sequence=sequence), b"another row", KnownRow(7, b"row"))


def test_the_table_is_full_at_its_size():
    check_room(MOST_KNOWN_PEERS - 1)
    with pytest.raises(Busy, match="full"):
        check_room(MOST_KNOWN_PEERS)


@pytest.mark.parametrize(("signed_at", "words"), [(NOW - 31, "31 s ago"), (NOW + 45, "45 s in the future")])
def test_a_request_must_be_fresh(signed_at: float, words: str):
    check_request_time(make_request([PEER.peer_id], now=NOW - 30), NOW)
    with pytest.raises(Refused, match=words):
        check_request_time(make_request([PEER.peer_id], now=signed_at), NOW)


def announced_at(signed_at: float, *, life: float = 600, **changes: Any) -> Signed[Row]:
    """What a peer announces whose clock says that it is `signed_at`."""
    usual = {"sequence": int(signed_at * 1000), "expires": int(signed_at + life)}
    return sign(PEER, make_row(PEER, **(usual | changes)))


@pytest.mark.parametrize(("ahead", "life"), [(-629, 600), (-29, 0), (0, 600), (NUMBER_AHEAD_S, 600), (30, 7200)])
def test_a_row_is_taken_from_a_clock_that_is_a_little_wrong(ahead: float, life: float):
    assert open_announced(announced_at(NOW + ahead, life=life), NOW).peer == PEER.peer_id


@pytest.mark.parametrize(
    ("ahead", "words", "side"),
    [
        (-700, "the row had expired 100 s ago when it came", "700 s behind this tracker's, which says 2027-01-15"),
        (200, "the row was signed 200 s in the future", "200 s ahead of this tracker's"),
        (86_400, "the row was signed 86400 s in the future", "86400 s ahead of"),
    ],
)
def test_whose_clock_is_wrong_is_told_which_and_by_how_much(ahead: float, words: str, side: str):
    with pytest.raises(ClockWrong, match=words) as refused:
        open_announced(announced_at(NOW + ahead), NOW)
    assert side in refused.value.cause
    assert "timedatectl" in refused.value.fix


def test_a_number_from_when_the_clock_was_ahead_is_told_apart():
    left_over = announced_at(NOW, sequence=int((NOW + 5000) * 1000))
    with pytest.raises(ClockWrong, match="number is of a time 5000 s in the future") as refused:
        open_announced(left_over, NOW)
    assert "`sequence`" in refused.value.fix


def test_a_row_with_other_faults_says_nothing_about_clocks():
    with pytest.raises(MalformedMessage, match="at most 7200 s"):
        open_announced(announced_at(NOW, life=LONGEST_LIFE_S + 100), NOW)
    row = announced_at(NOW + 9000)
    with pytest.raises(BadSignature):  # whoever did not sign it is told nothing
        open_announced(Signed(signer=row.signer, payload=row.payload, signature=bytes(64)), NOW)


def test_every_peer_that_cannot_be_reserved_is_named():
    silent, lazy, picky, good = (key_of(name).peer_id for name in ("silent", "lazy", "picky", "good"))
    offers = {
        lazy: make_offer(refuses="no sandbox"),
        picky: make_offer(kinds=["infer"]),
        good: make_offer(free=0),  # its own calendar decides: a row is minutes old
    }
    with pytest.raises(Refused) as refused:
        check_peers(make_request([silent, lazy, picky, good]), offers.get)
    assert refused.value.message == (
        f"cannot reserve 3 of 4 peers: {silent[:8]} is not announced here; "
        f"{lazy[:8]} takes no work: no sandbox; {picky[:8]} does not take train jobs"
    )
    check_peers(make_request([good]), offers.get)


def test_a_peer_named_twice_is_refused():
    with pytest.raises(Refused, match="twice"):
        check_peers(make_request([PEER.peer_id] * 2), lambda peer: make_offer())


def test_a_wish_is_the_same_when_it_is_signed_again_later():
    uuid = new_uuid()
    wish = wish_of(make_request([PEER.peer_id], uuid=uuid))
    assert wish == wish_of(make_request([PEER.peer_id], uuid=uuid, now=NOW + 20))
    assert wish != wish_of(make_request([PEER.peer_id], uuid=uuid, seconds=61))
    assert wish != wish_of(make_request([PEER.peer_id, OTHER.peer_id], uuid=uuid))


def test_a_uuid_belongs_to_the_first_wish_until_it_ends():
    issued = IssuedToken(CLIENT.peer_id, b"wish", int(NOW) + 60)
    check_same_wish(issued, CLIENT.peer_id, b"wish", NOW)
    with pytest.raises(Refused, match="in use"):
        check_same_wish(issued, OTHER.peer_id, b"wish", NOW)
    with pytest.raises(Refused, match="in use"):
        check_same_wish(issued, CLIENT.peer_id, b"another", NOW)
    with pytest.raises(Refused, match="has ended"):
        check_same_wish(issued, CLIENT.peer_id, b"wish", NOW + 60)


def test_one_source_and_one_key_hold_so_many_reservations():
    none = Holding(0, 0)
    check_reservations(1, Holding(MOST_RESERVATIONS_OF_ONE - 1, 0), Holding(MOST_RESERVATIONS_OF_KEY - 1, 0))
    with pytest.raises(TooOften, match="your address holds 2000 reservations"):
        check_reservations(1, Holding(MOST_RESERVATIONS_OF_ONE, 0), none)
    with pytest.raises(TooOften, match="your key holds 1000 reservations"):
        check_reservations(1, none, Holding(MOST_RESERVATIONS_OF_KEY, 0))


def test_peers_that_are_only_reserved_are_bounded_for_one_source_and_one_key():
    none = Holding(0, 0)
    check_reservations(64, Holding(1, MOST_UNUSED_PEERS_OF_ONE - 64), Holding(1, MOST_UNUSED_PEERS_OF_KEY - 64))
    with pytest.raises(TooOften, match="your address holds 4033 peers reserved of late"):
        check_reservations(64, Holding(1, MOST_UNUSED_PEERS_OF_ONE - 63), none)
    with pytest.raises(TooOften, match="your key holds 1024 peers"):
        check_reservations(1, none, Holding(1, MOST_UNUSED_PEERS_OF_KEY))


def test_of_two_receipts_with_one_number_all_trackers_count_the_same():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    promise = PromisedPeers(CLIENT.peer_id, frozenset([PEER.peer_id]))
    for one, other in itertools.permutations([b"one", b"two"]):
        if sha256(one).digest() < sha256(other).digest():
            assert is_new_receipt(receipt, one, promise, other)
        else:
            with pytest.raises(Refused, match="another receipt"):
                is_new_receipt(receipt, one, promise, other)


def test_which_receipts_count():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    promise = PromisedPeers(CLIENT.peer_id, frozenset([PEER.peer_id]))
    assert is_new_receipt(receipt, b"receipt", promise, None)
    assert not is_new_receipt(receipt, b"receipt", promise, b"receipt")
    with pytest.raises(Refused, match="another receipt has number 1"):
        is_new_receipt(receipt, b"receipt", promise, b"before")
    with pytest.raises(Refused, match="another client"):
        is_new_receipt(receipt, b"receipt", PromisedPeers(OTHER.peer_id, promise.peers), None)
    with pytest.raises(Refused, match="not in the reservation"):
        is_new_receipt(receipt, b"receipt", PromisedPeers(CLIENT.peer_id, frozenset([OTHER.peer_id])), None)
