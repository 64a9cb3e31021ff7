"""Counting what was received, so that a new link goes on where the cut one stopped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import PeerMisbehaved
from axonp2p.transport.mesh.outbox import LinkOutbox


def filled(*payloads: bytes) -> LinkOutbox:
    outbox = LinkOutbox()
    for payload in payloads:
        outbox.put(payload)
    return outbox


def following(outbox: LinkOutbox) -> bytes | None:
    said = outbox.next()
    return None if said is None else bytes(said[0])


def test_what_was_not_received_goes_again_in_order() -> None:
    outbox = filled(b"a", b"b", b"c", b"d")
    assert [following(outbox) for _ in range(3)] == [b"a", b"b", b"c"]
    outbox.resume(1)
    assert [following(outbox) for _ in range(4)] == [b"b", b"c", b"d", None]


def test_only_what_never_went_before_goes_for_the_first_time() -> None:
    outbox = filled(b"a", b"b", b"c")
    assert [outbox.next(), outbox.next()] == [(b"a", True), (b"b", True)]
    outbox.resume(1)
    assert outbox.next() == (b"b", False)
    outbox.resume(1)
    assert [outbox.next(), outbox.next(), outbox.next()] == [(b"b", False), (b"c", True), None]


@pytest.mark.parametrize("count", [0, 4])
def test_a_count_that_cannot_be_is_misbehaviour(count: int) -> None:
    outbox = filled(b"a", b"b", b"c")
    for _ in range(3):
        outbox.next()
    outbox.received(1)
    with pytest.raises(PeerMisbehaved):
        outbox.resume(count)


@given(st.data())
def test_over_any_number_of_cuts_everything_arrives_once(data: st.DataObject) -> None:
    messages = [b"%d" % number for number in range(data.draw(st.integers(0, 30)))]
    outbox = filled(*messages)
    arrived: list[bytes] = []
    for _ in range(data.draw(st.integers(0, 5))):
        under_way = [following(outbox) for _ in range(data.draw(st.integers(0, 8)))]
        through = data.draw(st.integers(0, len(under_way)))
        arrived += [payload for payload in under_way[:through] if payload is not None]
        outbox.received(data.draw(st.integers(0, len(arrived))))
        outbox.resume(len(arrived))
    while (payload := following(outbox)) is not None:
        arrived.append(payload)
    assert arrived == messages


def test_what_waits_and_what_may_go_again_is_counted_in_bytes() -> None:
    outbox = filled(b"a", b"bb", b"cccc")
    assert (outbox.waiting_bytes, outbox.kept_bytes, outbox.gone) == (7, 0, 0)
    outbox.next()
    outbox.next()
    assert (outbox.waiting_bytes, outbox.kept_bytes, outbox.gone) == (4, 3, 2)
    outbox.received(1)
    assert (outbox.waiting_bytes, outbox.kept_bytes, outbox.gone) == (4, 2, 2)
    outbox.resume(1)
    assert (outbox.waiting_bytes, outbox.kept_bytes, outbox.gone) == (6, 0, 1)
