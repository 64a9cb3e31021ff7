"""A state on its way in from members that are slow, lie, vanish or forget; in virtual time."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.blobs.piece_picker import PATIENCE_S
from axonp2p.blobs.piece_sender import LEAST_SILENCE_S, MOST_UNDER_WAY
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.piece_fetch import PieceFetch
from axonp2p.training.state_transfer.pieces import MOST_STATE_BYTES

PIECES = 24
DATA = random.Random(1).randbytes(PIECES * PIECE_BYTES - 1000)
BOOK = book_of(DATA)
NAME = BOOK.name


def piece(number: int) -> bytes:
    return DATA[number * PIECE_BYTES : (number + 1) * PIECE_BYTES]


def ask(*numbers: int) -> AskPieces:
    return AskPieces(state=NAME, numbers=list(numbers))


def fetch_from(*ranks: int) -> tuple[PieceFetch, list[tuple[int, AskPieces]]]:
    """A fetch that has the list of hashes, and what it asks for then."""
    fetch = PieceFetch(NAME, len(DATA))
    ((first, wanted),) = fetch.senders(ranks, 0.0)
    assert (first, wanted) == (ranks[0], ask())
    return fetch, fetch.hear(first, PieceList(state=NAME), BOOK.hashes, 0.1)


def give(fetch: PieceFetch, rank: int, number: int, now: float) -> list[tuple[int, AskPieces]]:
    return fetch.hear(rank, Piece(state=NAME, number=number), piece(number), now)


# --- conversations ---


def test_one_is_asked_for_the_list_and_then_all_for_pieces():
    _, said = fetch_from(3, 5, 7)
    assert said == [(3, ask(0, 1)), (5, ask(2, 3)), (7, ask(4, 5))]


def test_nobody_is_asked_for_zeros():
    data = piece(0) + bytes(3 * PIECE_BYTES) + piece(1)[:1000]
    book = book_of(data)
    fetch = PieceFetch(book.name, len(data))
    fetch.senders([4], 0.0)
    said = fetch.hear(4, PieceList(state=book.name), book.hashes, 0.1)
    assert said == [(4, AskPieces(state=book.name, numbers=[0, 4]))]
    fetch.hear(4, Piece(state=book.name, number=0), piece(0), 0.2)
    fetch.hear(4, Piece(state=book.name, number=4), piece(1)[:1000], 0.3)
    assert fetch.data() == data


def test_a_list_that_is_not_of_the_state_names_its_sender_and_another_one_is_asked():
    fetch = PieceFetch(NAME, len(DATA))
    assert fetch.senders([1, 2], 0.0) == [(1, ask())]
    with pytest.raises(PeerMisbehaved, match="rank 1"):
        fetch.hear(1, PieceList(state=NAME), BOOK.hashes[:-32], 0.2)
    assert fetch.deadline() == 0.2
    assert fetch.due(0.2) == [(2, ask())]
    with pytest.raises(PeerMisbehaved, match="rank 2"):
        fetch.hear(2, PieceList(state=NAME), bytes(len(BOOK.hashes)), 0.3)
    assert sorted(fetch.liars) == [1, 2]
    assert fetch.due(0.3) == []
    assert fetch.nobody_left
    assert fetch.deadline() is None
    assert fetch.senders([1, 2, 3], 1.0) == [(3, ask())]


def numbers_for(rank: int, said: list[tuple[int, AskPieces]]) -> list[int]:
    return [number for to, wanted in said if to == rank for number in wanted.numbers]


def test_a_late_piece_is_taken_when_it_comes_and_nobody_is_blamed():
    fetch, _ = fetch_from(0)
    late = 0.1 + PATIENCE_S
    assert fetch.deadline() == late
    assert fetch.due(late) == []
    assert fetch.senders([0, 1], 11.0) == [(1, ask(0, 1))]
    assert give(fetch, 0, 0, 12.0) == [(0, ask(2))]  # back, and 1 is still under way from it
    assert give(fetch, 1, 0, 12.1) == [(1, ask(3))]
    assert not fetch.liars


def test_a_late_one_rests_longer_each_time_and_is_tried_with_one_piece():
    fetch, _ = fetch_from(0)
    rests = []
    for _ in range(4):
        late = fetch.deadline()
        assert fetch.due(late) == []
        back = fetch.deadline()
        assert fetch.due(back) == [(0, ask(1))]
        rests.append(back - late)
    assert rests == pytest.approx([PATIENCE_S, 2 * PATIENCE_S, 4 * PATIENCE_S, 60.0])
    assert give(fetch, 0, 0, 1000.0) == [(0, ask(2))]  # it answers in order, so 1 follows


def test_whose_later_answer_comes_first_has_lost_the_earlier_asks():
    fetch, _ = fetch_from(0)
    fetch.due(fetch.deadline())
    assert fetch.due(fetch.deadline()) == [(0, ask(1))]
    assert give(fetch, 0, 1, 25.0) == [(0, ask(0, 2))]


def test_a_wrong_piece_names_its_sender_and_what_it_had_is_asked_elsewhere():
    fetch, _ = fetch_from(0, 1)
    with pytest.raises(PeerMisbehaved, match="rank 0 sent piece 1"):
        fetch.hear(0, Piece(state=NAME, number=1), piece(0), 0.5)
    assert fetch.liars == {0: "piece 1 with other bytes than the state has"}
    assert fetch.deadline() == 0.5
    assert give(fetch, 1, 2, 0.6) == [(1, ask(0))]
    assert fetch.senders([0, 1, 2], 0.7) == [(2, ask(1, 4))]


def test_who_has_nothing_left_to_send_takes_over_what_a_slow_one_still_has():
    fetch, _ = fetch_from(0, 1)
    now, under_way, taken_over = 0.1, [2, 3], []
    while under_way:
        now += 0.05
        said = numbers_for(1, give(fetch, 1, under_way.pop(0), now))
        under_way += said
        taken_over += [number for number in said if number < 2]
    assert taken_over == [1, 0]
    assert fetch.complete
    assert fetch.data() == DATA


def test_who_does_not_hold_the_state_is_asked_no_more_until_it_is_named_again():
    fetch, _ = fetch_from(0, 1)
    said = fetch.hear(0, Piece(state=NAME, number=0), b"", 0.2)
    assert said == []  # 1 has its two pieces before it
    assert give(fetch, 1, 2, 0.3) == [(1, ask(0))]
    assert fetch.gone(1, 0.4) == []
    assert fetch.nobody_left
    assert fetch.senders([0], 0.5) == [(0, ask(0, 1))]
    assert not fetch.nobody_left


def test_pieces_stay_when_the_senders_change():
    fetch, _ = fetch_from(0, 1)
    give(fetch, 0, 0, 0.2)
    assert fetch.senders([4], 0.3) == [(4, ask(1, 2))]
    give(fetch, 1, 2, 0.4)  # still under way from one that is no sender any more
    assert give(fetch, 4, 1, 0.5) == [(4, ask(3))]  # 2 is here, though 4 has yet to send it


def test_words_of_another_state_are_passed_over():
    fetch, _ = fetch_from(0)
    other = bytes(32)
    assert fetch.hear(0, Piece(state=other, number=0), b"", 0.2) == []
    assert fetch.hear(0, PieceList(state=other), b"", 0.2) == []
    assert not fetch.nobody_left


def test_a_state_of_no_bytes_and_one_that_is_too_large():
    empty = PieceFetch(book_of(b"").name, 0)
    assert [rank for rank, _ in empty.senders([0], 0.0)] == [0]
    empty.hear(0, PieceList(state=empty.state), b"", 0.1)
    assert empty.complete
    assert empty.data() == b""
    with pytest.raises(ValueError, match="at most"):
        PieceFetch(NAME, MOST_STATE_BYTES + 1)


# --- whole fetches in virtual time ---


@dataclass
class Sender:
    """How a member behaves; times in seconds."""

    piece_s: float = 0.02
    delay_s: float = 0.04
    lies_from: int | None = None
    """From its so manyth answer on it sends wrong bytes."""
    lies_about_list: bool = False
    ends: str = "never"
    """After `ends_after` answers it is gone without a word, is known to be "lost", or "forgets" the state."""
    ends_after: int = 0
    stands_still: tuple[float, float] = (0.0, 0.0)
    """From when, until when."""
    free_at: float = 0.0
    answers: int = 0


@dataclass
class Swarm:
    """A fetch and those that it asks, through lines that keep the order; checks what must hold at every step."""

    senders: dict[int, Sender]
    line_s: float = 0.0
    """The fetching one's own line needs so long for a piece."""
    fetch: PieceFetch = field(default_factory=lambda: PieceFetch(NAME, len(DATA)))
    now: float = 0.0
    free_at: float = 0.0
    sent_pieces: int = 0
    lied: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._events: list[tuple[float, int, int, int, str]] = []
        self._order = count()
        self._unanswered: dict[int, set[int]] = {rank: set() for rank in self.senders}
        self._answered: dict[int, set[int]] = {rank: set() for rank in self.senders}
        self._last_heard = dict.fromkeys(self.senders, 0.0)

    def run(self, until: float = 36_000.0) -> None:
        self.carry(self.fetch.senders(sorted(self.senders), 0.0))
        while not self.fetch.complete and not self.fetch.nobody_left and self.now < until:
            deadline = self.fetch.deadline()
            if self._events and (deadline is None or self._events[0][0] < deadline):
                self.now, _, rank, number, what = heapq.heappop(self._events)
                if what == "answer" and self.line_s:
                    self.free_at = max(self.now, self.free_at) + self.line_s
                    self.at(self.free_at, rank, number, "came")
                else:
                    self.deliver(rank, number, what)
            else:
                assert deadline is not None, "nothing is under way and nobody is waited for"
                self.now = max(self.now, deadline)
                self.carry(self.fetch.due(self.now))

    def carry(self, asks: list[tuple[int, AskPieces]]) -> None:
        for rank, wanted in asks:
            assert rank not in self.lied, "who lied is asked again"
            numbers = wanted.numbers or [-1]
            open_asks = self._unanswered[rank]
            repeated = open_asks & set(numbers)
            if not open_asks:
                self._last_heard[rank] = self.now
            assert not repeated or self.now - self._last_heard[rank] >= LEAST_SILENCE_S, "asked twice without reason"
            assert not set(numbers) & self._answered[rank], "asked for what it has sent"
            open_asks.update(numbers)
            assert len(open_asks) <= MOST_UNDER_WAY
            for number in numbers:
                self.answer(rank, number)

    def answer(self, rank: int, number: int) -> None:
        sender = self.senders[rank]
        sender.answers += 1
        if sender.ends != "never" and sender.answers > sender.ends_after:
            if sender.ends != "silent":
                self.at(self.now + sender.delay_s, rank, number, sender.ends)
            return
        begins = max(self.now, sender.free_at)
        still_from, still_until = sender.stands_still
        if still_from <= begins < still_until:
            begins = still_until
        sender.free_at = begins + (0.0 if number < 0 else sender.piece_s)
        lies = sender.lies_about_list if number < 0 else sender.lies_from not in (None, *range(sender.answers, 99))
        self.at(sender.free_at + sender.delay_s, rank, number, "lie" if lies else "answer")

    def at(self, when: float, rank: int, number: int, what: str) -> None:
        heapq.heappush(self._events, (when, next(self._order), rank, number, what))

    def deliver(self, rank: int, number: int, what: str) -> None:
        self._last_heard[rank] = self.now
        self._unanswered[rank].discard(number)
        if what == "lost":
            self._unanswered[rank].clear()
            self.carry(self.fetch.gone(rank, self.now))
        elif what == "forgets":
            self.carry(self.fetch.hear(rank, Piece(state=NAME, number=max(number, 0)), b"", self.now))
        elif what == "lie":
            self.lied.add(rank)
            with pytest.raises(PeerMisbehaved, match=f"rank {rank} sent"):
                self.hear(rank, number, b"x" * 100)
        else:
            self._answered[rank].add(number)
            self.sent_pieces += 1
            self.carry(self.hear(rank, number, BOOK.hashes if number < 0 else piece(number)))

    def hear(self, rank: int, number: int, payload: bytes) -> list[tuple[int, AskPieces]]:
        if number < 0:
            return self.fetch.hear(rank, PieceList(state=NAME), payload, self.now)
        return self.fetch.hear(rank, Piece(state=NAME, number=number), payload, self.now)


ANY = st.builds(
    Sender,
    piece_s=st.sampled_from([0.0, 0.001, 0.02, 0.5, 5.0]),
    delay_s=st.sampled_from([0.0, 0.05, 0.3, 3.0]),
    lies_from=st.none() | st.integers(1, 30),
    lies_about_list=st.booleans(),
    ends=st.sampled_from(["never", "silent", "lost", "forgets"]),
    ends_after=st.integers(0, 20),
    stands_still=st.sampled_from([(0.0, 0.0), (0.0, 20.0), (0.3, 60.0), (2.0, 5.0)]),
)
HONEST = st.builds(
    Sender,
    piece_s=st.sampled_from([0.001, 0.02, 0.5, 5.0]),
    delay_s=st.sampled_from([0.0, 0.05, 3.0]),
    stands_still=st.sampled_from([(0.0, 0.0), (0.0, 20.0), (0.3, 60.0)]),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(others=st.lists(ANY, max_size=10), honest=HONEST, place=st.integers(0, 10), line_s=st.sampled_from([0.0, 0.05]))
def test_with_one_honest_sender_the_state_comes_and_every_liar_is_named(others, honest, place, line_s):
    others.insert(place, honest)
    swarm = Swarm(dict(enumerate(others)), line_s)
    swarm.run()
    assert swarm.fetch.complete
    assert bytes(swarm.fetch.data()) == DATA
    assert set(swarm.fetch.liars) == swarm.lied


@settings(max_examples=50, deadline=None)
@given(st.lists(ANY, max_size=5))
def test_without_anybody_honest_it_ends_or_says_so_or_waits_for_those_that_are_silent(senders):
    swarm = Swarm(dict(enumerate(senders)))
    swarm.run(until=600.0)
    assert swarm.fetch.complete or swarm.fetch.nobody_left or swarm.fetch.deadline() is not None
    assert set(swarm.fetch.liars) == swarm.lied


def test_four_senders_are_as_fast_as_their_lines_together():
    # 20 Mbit/s up each, 80 ms there and back.
    swarm = Swarm({rank: Sender(piece_s=0.105, delay_s=0.08) for rank in range(4)})
    swarm.run()
    assert swarm.now < 1.3 * PIECES * 0.105 / 4  # 24 pieces only: the list and the first round trip weigh


def test_a_very_slow_one_among_fast_ones_costs_little():
    swarm = Swarm(
        {0: Sender(piece_s=10.0, delay_s=0.08)} | {rank: Sender(piece_s=0.1, delay_s=0.08) for rank in (1, 2)}
    )
    swarm.run()
    assert swarm.now < 1.5
