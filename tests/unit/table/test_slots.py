"""Digests over time: what counts where, and what stands still."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.records import LONGEST_LIFE_S
from axonp2p.table.slots import REMEMBERED_SLOTS, SLOT_S, Slots, name_of, slot_at, slot_of, supersedes
from axonp2p.wire.codec import encode
from tests.fakes import NOW, key_of, make_row

ADA = key_of("ada")


def put(slots: Slots, sequence: int, before: bytes | None = None) -> bytes:
    row = make_row(ADA, sequence=sequence, expires=sequence // 1000 + 600)
    payload = encode(row)
    slots.add(row.peer, row.sequence, row.expires, payload, before)
    return payload


def test_a_row_counts_when_it_was_signed_and_stays_in_the_digest_when_it_is_replaced():
    slots = Slots()
    first = put(slots, int(NOW * 1000))
    digest = slots.digest(slot_at(NOW))
    assert digest == name_of(first)
    second = put(slots, int(NOW + 300) * 1000, first)
    assert slots.digest(slot_at(NOW)) == digest
    assert (slots.count(slot_at(NOW)), slots.count(slot_at(NOW + 300))) == (0, 1)
    assert slots.peer_of(slot_at(NOW + 300), name_of(second)) == ADA.peer_id
    assert slots.peer_of(slot_at(NOW), name_of(first)) is None


def test_parts_are_those_of_the_rows_that_still_stand():
    slots = Slots()
    first = put(slots, int(NOW * 1000))
    assert sum(map(bool, slots.buckets(slot_at(NOW)))) == 1
    assert slots.buckets(slot_at(NOW))[name_of(first) % 256] == name_of(first) >> 32
    put(slots, int(NOW + 20) * 1000, first)
    assert not any(slots.buckets(slot_at(NOW)))


def test_old_slots_are_forgotten():
    slots = Slots()
    put(slots, int(NOW * 1000))
    slots.forget(NOW + LONGEST_LIFE_S)
    assert slots.digest(slot_at(NOW))
    slots.forget(NOW + (REMEMBERED_SLOTS + 1) * SLOT_S)
    assert not slots.digest(slot_at(NOW))


@given(st.integers(0, 2**53), st.integers(0, 2**53))
def test_every_row_counts_within_its_longest_life(sequence: int, expires: int):
    slot = slot_of(sequence, expires)
    assert max(expires - LONGEST_LIFE_S, 0) // SLOT_S <= slot <= expires // SLOT_S


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=4)), min_size=1, max_size=8))
def test_whichever_way_rows_come_the_same_one_stays(rows: list[tuple[int, bytes]]):
    def left(order: list[tuple[int, bytes]]) -> tuple[int, bytes]:
        stays = order[0]
        for row in order[1:]:
            if supersedes(*row, *stays):
                stays = row
        return stays

    assert left(rows) == left(rows[::-1]) == left(sorted(rows))
