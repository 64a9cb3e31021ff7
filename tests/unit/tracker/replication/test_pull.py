"""A tracker that lies when another one asks what it has: what the asker pays for it."""

from __future__ import annotations

import random
import struct
import tracemalloc

import msgspec
import pytest

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.table.slots import BUCKETS, Slots, slot_at
from axonp2p.table.sync_messages import (
    GROUP,
    MOST_NAMES,
    MOST_PARTS,
    BucketsAsked,
    DigestsAsked,
    DigestsTold,
    NamesAsked,
    NamesTold,
    RowsAsked,
    RowsTold,
    SlotPart,
    SyncTold,
)
from axonp2p.wire.envelope import sign
from tests.fakes import NOW, key_of, make_row
from tests.unit.tracker.replicas import PaperTracker, key_number
from tracker.replication import pull as pull_module
from tracker.replication.pull import MOST_MISSING, Pull
from tracker.replication.replica import NAME, SLOT, Replica
from tracker.table.admission import MOST_KNOWN_PEERS
from tracker.table.table_index import TableIndex

LIAR = key_of("liar").peer_id
ALL = b"\xff" * (BUCKETS // 8)


def begin() -> tuple[Pull, DigestsAsked]:
    pull = Pull(Replica(TableIndex(random.Random(1)), Slots()), LIAR, NOW, everything=True)
    asked = pull.ask()
    assert isinstance(asked, DigestsAsked)
    return pull, asked


def digests(asked: DigestsAsked, count: int) -> DigestsTold:
    """Every slot that was asked about differs, and holds so many rows."""
    groups = list(range(len(asked.groups) // 8))
    last = min(asked.newest, asked.oldest + len(groups) * GROUP - 1)
    slots = b"".join(SLOT.pack(number, 7, count) for number in range(asked.oldest, last + 1))
    return DigestsTold(groups=groups, slots=slots, started=NOW)


def names(first: int, count: int) -> NamesTold:
    told = [NAME.pack(number.to_bytes(32, "big"), 1, number) for number in range(first, first + count)]
    return NamesTold(names=b"".join(told), cut=False)


def test_slots_that_hold_more_than_a_table_may_are_not_believed():
    pull, asked = begin()
    with pytest.raises(MalformedMessage, match="a table of more than"):
        pull.heard(digests(asked, 2**32 - 1))


def test_questions_are_made_when_they_are_needed():
    pull, asked = begin()
    slots = asked.newest - asked.oldest + 1
    told = digests(asked, MOST_KNOWN_PEERS // slots)
    tracemalloc.start()
    pull.heard(told)
    for _ in range(20):
        assert isinstance(pull.ask(), NamesAsked)
        pull.heard(names(0, 0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2 * 2**20


def test_no_question_is_made_before_its_turn(monkeypatch: pytest.MonkeyPatch):
    made: list[object] = []

    def note(question: object) -> None:
        made.append(question)

    for kind in (BucketsAsked, NamesAsked, RowsAsked):
        counted = msgspec.defstruct(
            kind.__name__, [], bases=(kind,), namespace={"__post_init__": note}, tag=kind.__name__, frozen=True
        )
        monkeypatch.setattr(pull_module, kind.__name__, counted)
    ours, theirs = PaperTracker("ours"), PaperTracker("theirs")
    for number in range(1, 104):
        key = key_number(number)
        row = sign(key, make_row(key, now=NOW, sequence=int(NOW * 1000), expires=int(NOW) + 3600))
        theirs.take(row, NOW, announced=True)
        if number > 3:
            ours.take(row, NOW, announced=True)
    pull = Pull(ours.replica, theirs.name, NOW, everything=True)
    asked = [pull.ask()]
    while asked[-1] is not None:
        pull.heard(theirs.replica.answer(asked[-1], NOW))
        assert made == asked[1:]
        asked.append(pull.ask())
    assert {type(one).__name__ for one in made} == {"BucketsAsked", "NamesAsked", "RowsAsked"}
    made.clear()
    pull, first = begin()
    pull.heard(digests(first, 100))
    assert made == []
    assert [pull.ask()] == made


def test_more_names_than_a_table_may_hold_are_not_believed(monkeypatch: pytest.MonkeyPatch):
    pull, asked = begin()
    pull.heard(digests(asked, 1))
    assert isinstance(pull.ask(), NamesAsked)
    monkeypatch.setattr(pull_module, "MOST_KNOWN_PEERS", 100)
    with pytest.raises(MalformedMessage, match="more than 100 rows are named"):
        pull.heard(names(0, 101))


def test_rows_that_nobody_asked_for_are_no_answer():
    pull, asked = begin()
    pull.heard(digests(asked, 1))
    pull.ask()
    pull.heard(names(0, 10))
    assert isinstance(pull.ask(), RowsAsked)
    key = key_of("somebody else")
    assert pull.heard(RowsTold(rows=[sign(key, make_row(key))])) == []


def test_names_that_lead_to_no_rows_are_lies():
    pull, asked = begin()
    pull.heard(digests(asked, 100))
    asks, rows = 0, 0

    def converse() -> None:
        nonlocal asks, rows
        while (question := pull.ask()) is not None:
            asks += 1
            told: SyncTold = names(asks * MOST_NAMES, MOST_NAMES)
            if isinstance(question, RowsAsked):
                rows += len(question.peers) // 32
                told = RowsTold(rows=[])
            pull.heard(told)

    with pytest.raises(PeerMisbehaved, match="it names rows that it does not have"):
        converse()
    assert rows <= MOST_MISSING + 200
    assert asks < 10


def test_an_honest_tracker_names_no_row_that_it_would_not_show():
    ours, theirs = PaperTracker("ours"), PaperTracker("theirs")
    for number in range(1, 600):
        key = key_number(number)
        row = make_row(key, now=NOW, sequence=int(NOW * 1000), expires=int(NOW) + (60 if number % 3 else 3600))
        theirs.take(sign(key, row), NOW, announced=True)
    late = NOW + 1800  # two of three have expired, and are remembered all the same
    questions, rows = ours.pull(theirs, late, everything=True)
    assert rows == 199
    assert questions < 10
    assert ours.pull(theirs, late, everything=True) == (1, 0)


def test_a_slot_is_named_once_in_a_question():
    replica = Replica(TableIndex(random.Random(1)), Slots())
    number = slot_at(NOW)
    part = SlotPart(slot=number, parts=ALL)
    for asked in (NamesAsked(slots=[part] * MOST_PARTS), BucketsAsked(slots=[number] * 16)):
        with pytest.raises(MalformedMessage, match="names a slot twice"):
            replica.answer(asked, NOW)
    replica.answer(NamesAsked(slots=[part]), NOW)


def test_a_pull_never_names_a_slot_twice_and_questions_cost_what_they_walk():
    ours, theirs = PaperTracker("ours"), PaperTracker("theirs")
    number = slot_at(NOW)
    # Two pieces of one slot would fit into one question; each is asked for by itself.
    pull = Pull(ours.replica, theirs.name, NOW + 60, everything=True)
    asked = pull.ask()
    assert isinstance(asked, DigestsAsked)
    group = (number - asked.oldest) // GROUP
    pull.heard(DigestsTold(groups=[group], slots=SLOT.pack(number, 7, MOST_NAMES // 2 + 1), started=NOW))
    questions = []
    while (question := pull.ask()) is not None:
        assert isinstance(question, NamesAsked)
        questions.append([part.slot for part in question.slots])
        pull.heard(names(0, 0))
    assert questions == [[number], [number]]
    for place in range(1, 21):
        key = key_number(place)
        theirs.take(sign(key, make_row(key, now=NOW, sequence=int(NOW * 1000))), NOW, announced=True)
    assert theirs.replica.walks(NamesAsked(slots=[SlotPart(slot=number, parts=ALL)])) == 20
    assert theirs.replica.walks(BucketsAsked(slots=[number])) == 20
    assert theirs.replica.walks(RowsAsked(peers=bytes(64))) == 2
    assert theirs.replica.walks(DigestsAsked(oldest=0, newest=1, groups=struct.pack(">Q", 0))) == 1
