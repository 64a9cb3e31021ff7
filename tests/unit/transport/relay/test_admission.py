"""What a relay lets in and for how long, told as what happened and what it said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import encode as encode_any

from axonp2p.errors import MalformedMessage, NotAtRelay, QuotaUsed, TooOften
from axonp2p.transport.relay.admission import HOUR_S, Admission
from axonp2p.transport.tunnel.messages import OpenStream, RelayLimits
from axonp2p.wire.codec import decode, encode
from tests.fakes import key_of

OTTER, HERON = key_of("otter").peer_id, key_of("heron").peer_id
HOME, CAFE = "192.0.2.7", "198.51.100.9"


def relay(**limits: float) -> Admission:
    books = Admission(RelayLimits(**limits))  # type: ignore[arg-type]
    books.register(OTTER)
    return books


def test_only_who_is_registered_is_reached():
    books = relay()
    with pytest.raises(NotAtRelay, match="holds no connection"):
        books.open(HERON, HOME, 0)
    stream = books.open(OTTER, HOME, 0)
    assert books.streams == {stream}
    books.leave(OTTER)
    with pytest.raises(NotAtRelay):
        books.open(OTTER, HOME, 1)
    assert (books.totals.streams, books.totals.refused) == (1, {"AX-305": 2})


def test_no_more_peers_than_it_may_hold_but_one_of_them_may_come_again():
    books = relay(peers=1)
    books.register(OTTER)
    with pytest.raises(QuotaUsed, match="as many peers"):
        books.register(HERON)
    books.leave(OTTER)
    books.register(HERON)
    assert books.peers == 1


def test_streams_are_counted_for_the_peer_for_the_caller_and_in_all():
    books = relay(streams=3, streams_of_peer=2, streams_of_caller=2)
    books.register(HERON)
    first = books.open(OTTER, HOME, 0)
    books.open(OTTER, CAFE, 0)
    with pytest.raises(QuotaUsed, match="2 streams to peer"):
        books.open(OTTER, "203.0.113.1", 0)
    books.open(HERON, HOME, 0)
    with pytest.raises(QuotaUsed, match="this relay carries as many"):
        books.open(HERON, CAFE, 0)
    books.close(first)
    books.open(HERON, CAFE, 0)


def test_who_opens_too_many_in_a_short_time_waits():
    books = relay(opened_a_second=2, opened_at_once=2)
    for _ in range(2):
        books.close(books.open(OTTER, HOME, 0))
    with pytest.raises(TooOften) as caught:
        books.open(OTTER, HOME, 0)
    assert caught.value.wait_s == pytest.approx(0.5)
    books.open(OTTER, CAFE, 0)  # others are not kept waiting
    books.open(OTTER, HOME, 0.5)


def test_bytes_of_an_hour_are_counted_for_peer_and_caller():
    books = relay(hourly_bytes=1000)
    books.register(HERON)
    stream = books.open(OTTER, HOME, 0)
    assert books.carried(stream, 999, 1) == 0
    assert books.over(stream, 1) == ""
    books.carried(stream, 1, 2)
    assert books.over(stream, 2) == "the quota of bytes is used up"
    with pytest.raises(QuotaUsed) as caught:
        books.open(OTTER, CAFE, 3)  # the peer has had its share
    assert caught.value.wait_s == HOUR_S - 3
    with pytest.raises(QuotaUsed):
        books.open(HERON, HOME, 3)  # so has the caller
    books.open(HERON, CAFE, 3)
    books.open(OTTER, HOME, HOUR_S + 1)
    assert books.totals.bytes == 1000


def test_a_stream_ends_when_nothing_moves_or_its_time_is_over():
    books = relay(stream_s=100, idle_s=10)
    stream = books.open(OTTER, HOME, 0)
    books.carried(stream, 1, 9)
    assert books.over(stream, 18.9) == ""
    assert books.over(stream, 19) == "nothing moved for 10 s"
    books.carried(stream, 1, 99)
    assert books.over(stream, 100) == "a stream lasts 100 s at the most"


def test_a_rate_holds_for_all_streams_together():
    books = relay(bytes_a_second=100)
    one, other = books.open(OTTER, HOME, 0), books.open(OTTER, CAFE, 0)
    assert books.carried(one, 25, 0) == 0  # what it may make up for
    assert books.carried(other, 100, 0) == pytest.approx(1)
    assert books.carried(one, 50, 0.5) == pytest.approx(1)
    assert books.carried(one, 10, 100) == 0


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 1)), max_size=60))
def test_whoever_obeys_the_waits_stays_within_the_rate(parts):
    books, now, sent = relay(bytes_a_second=1000, idle_s=1e9, stream_s=1e9), 0.0, 0
    stream = books.open(OTTER, HOME, 0)
    for size, pause in parts:
        now += pause
        sent += size
        now += books.carried(stream, size, now)
        assert sent <= 1000 * (now + 0.25) + 1e-3


def test_one_household_registers_few_and_those_that_nobody_calls_give_way():
    books = Admission(RelayLimits(peers=4, peers_of_source=2, registered_s=60))
    made_up = [key_of(f"made up {number}").peer_id for number in range(4)]
    assert books.register(made_up[0], HOME, 0) == []
    assert books.register(made_up[1], HOME, 0) == []
    with pytest.raises(QuotaUsed, match="as many peers of"):
        books.register(made_up[2], HOME, 59)
    books.open(made_up[0], CAFE, 59)
    assert books.register(made_up[2], HOME, 60) == [made_up[1]]
    assert books.register(HERON, CAFE, 60) == []


def test_the_made_up_keys_of_one_household_leave_room_at_a_relay_of_any_size():
    for limits in (RelayLimits(), RelayLimits(peers=16)):  # a tracker's, a volunteer's
        books, refused = Admission(limits), 0
        for number in range(limits.peers):
            try:
                books.register(key_of(f"made up {number}").peer_id, HOME, 0)
            except QuotaUsed:
                refused += 1
        assert refused >= limits.peers / 2
        assert books.register(OTTER, CAFE, 0) == []


def test_a_peer_that_is_known_keeps_its_place_as_if_it_were_called():
    books = Admission(RelayLimits(peers=2, peers_of_source=2, registered_s=60), is_known=lambda peer: peer == OTTER)
    books.register(OTTER, HOME, 0)
    books.register(HERON, HOME, 0)
    assert books.register(key_of("made up").peer_id, CAFE, 100) == [HERON]


@pytest.mark.parametrize("caller", ["", "example.org", "192.0.2.7:80", "192.0.2", "2001:db8::1%eth0", "1.2.3.4\n"])
def test_a_relay_names_a_caller_by_an_ip_address(caller):
    with pytest.raises(MalformedMessage):
        decode(encode_any({"type": "OpenStream", "ticket": "0" * 32, "caller": caller}), OpenStream, 1000)
    said = encode(OpenStream(ticket="0" * 32, caller="2001:db8::1"))
    assert decode(said, OpenStream, 1000).caller == "2001:db8::1"
