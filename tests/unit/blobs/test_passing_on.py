"""A client and its peers pass a bundle on, in virtual time: whatever is lost, late or wrong, everybody ends with it."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.pieces import book_of
from axonp2p.blobs.seeding import Seeding
from axonp2p.blobs.swarm import BlobSwarm
from axonp2p.errors import PeerMisbehaved

pytestmark = pytest.mark.slow


class Content:
    """A bundle of one file whose pieces are told apart by their first bytes, cut short to keep hashing cheap."""

    def __init__(self, pieces: int) -> None:
        # All pieces but the last have their full size: the bundle's rule. Small ones would be files of their own.
        self.pieces = [number.to_bytes(4, "big") for number in range(pieces)]
        files = [
            BlobFile(path=f"f{number}", size=4, blake3=book_of(piece).hashes)
            for number, piece in enumerate(self.pieces)
        ]
        self.blob = Blob(Manifest(files=files))


@dataclass
class World:
    """A client and members on lines with a rate (pieces a second) and a delay; words take the delay alone."""

    count: int
    chance: random.Random
    content: Content
    rate: float = 20.0
    rates: dict[int, float] = field(default_factory=dict)
    """Of members whose lines are others."""
    delay: float = 0.05
    apart: set[frozenset[int]] = field(default_factory=set)
    """Pairs of members that cannot reach each other."""
    lying: set[int] = field(default_factory=set)
    """Members that send wrong bytes."""
    loss: float = 0.0
    """The share of pieces between members that never arrive."""
    now: float = 0.0
    given: int = 0
    """Pieces that the client has sent."""

    def __post_init__(self) -> None:
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.number = 0
        self.free: dict[int, float] = {}
        self.seeding = Seeding(len(self.content.pieces))
        self.swarms: dict[int, BlobSwarm] = {}
        self.disks: dict[int, dict[int, bytes]] = {}
        self.frozen: set[int] = set()
        self.held_up: dict[int, list[Callable[[], None]]] = {}
        self.polls: dict[int, float] = {}
        for rank in range(self.count):
            self.join(rank)

    # --- the world ---

    def at(self, time: float, act: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.events, (time, self.number, act))

    def after_word(self, rank: int, act: Callable[[], None]) -> None:
        """`act` at `rank` when a word has come there; a frozen one hears it when it goes on."""
        self.at(self.now + self.delay, lambda: self.deliver(rank, act))

    def deliver(self, rank: int, act: Callable[[], None]) -> None:
        if rank in self.frozen:
            self.held_up.setdefault(rank, []).append(act)
        elif rank in self.swarms or rank < 0:
            act()

    def send_piece(self, sender: int, receiver: int, act: Callable[[], None]) -> None:
        start = max(self.now, self.free.get(sender, 0.0))
        self.free[sender] = start + 1 / self.rates.get(sender, self.rate)
        self.at(self.free[sender] + self.delay, lambda: self.deliver(receiver, act))

    def run(self, until: Callable[[], bool], longest: float = 4000.0) -> None:
        while not until():
            assert self.events, "nothing is to be done, and it is not done"
            self.now, _, act = heapq.heappop(self.events)
            assert self.now < longest, "it takes too long"
            act()

    @property
    def all_have_it(self) -> bool:
        return all(swarm.complete for swarm in self.swarms.values())

    # --- members and client ---

    def join(self, rank: int, kept: dict[int, bytes] | None = None) -> None:
        self.disks[rank] = dict(kept or {})
        self.swarms[rank] = BlobSwarm(self.content.blob, self.disks[rank], random.Random(rank))
        self.seeding.joined(rank, self.disks[rank], self.now)
        for other in self.reachable(rank):
            self.tell(rank, other, list(self.disks[rank]))
            self.tell(other, rank, list(self.disks[other]))
        self.at(self.now, lambda: self.feed(rank))

    def leave(self, rank: int) -> dict[int, bytes]:
        del self.swarms[rank]
        self.seeding.gone(rank, self.now)
        self.frozen.discard(rank)
        self.held_up.pop(rank, None)
        for other, swarm in self.swarms.items():
            self.ask(other, swarm.gone(rank, self.now))
        for other in self.swarms:
            self.feed(other)
        return self.disks[rank]

    def thaw(self, rank: int) -> None:
        self.frozen.discard(rank)
        for act in self.held_up.pop(rank, []):
            self.deliver(rank, act)

    def reachable(self, rank: int) -> list[int]:
        return [other for other in self.swarms if other != rank and frozenset((rank, other)) not in self.apart]

    def feed(self, rank: int) -> None:
        if rank not in self.swarms:
            return
        while (number := self.seeding.next(rank, self.now)) is not None:
            self.given += 1
            self.send_piece(-1, rank, lambda number=number: self.get(rank, number))
        deadline = self.seeding.deadline(rank)
        planned = self.polls.get(rank, -1.0)
        if deadline is not None and (planned <= self.now or deadline < planned):
            self.polls[rank] = max(deadline, self.now + 0.01)
            self.at(self.polls[rank], lambda: self.feed(rank))

    def get(self, rank: int, number: int) -> None:
        if self.swarms[rank].given(number, self.content.pieces[number]):
            self.store(rank, number, self.content.pieces[number])
        self.ask(rank, self.swarms[rank].asks(self.now))

    def store(self, rank: int, number: int, piece: bytes) -> None:
        assert piece == self.content.pieces[number], "a wrong byte was believed"
        self.disks[rank][number] = piece
        self.swarms[rank].stored(number)
        for other in self.reachable(rank):
            self.tell(rank, other, [number])
        self.at(self.now + self.delay, lambda: self.confirmed(rank, number))

    def confirmed(self, rank: int, number: int) -> None:
        if rank not in self.swarms:
            return
        self.seeding.got(rank, [number], self.now)
        for other in self.swarms:
            self.feed(other)

    def tell(self, rank: int, other: int, numbers: list[int]) -> None:
        self.after_word(other, lambda: self.ask(other, self.swarms[other].has(rank, numbers, self.now)))

    def ask(self, rank: int, asks: list[tuple[int, list[int]]]) -> None:
        for other, numbers in asks:
            self.after_word(other, lambda other=other, numbers=numbers: self.answer(other, rank, numbers))
        deadline = self.swarms[rank].deadline()
        if deadline is not None:
            self.at(max(deadline, self.now), lambda: self.poll(rank))

    def poll(self, rank: int) -> None:
        if rank in self.swarms and rank not in self.frozen:
            deadline = self.swarms[rank].deadline()
            if deadline is not None and deadline <= self.now:
                self.ask(rank, self.swarms[rank].due(self.now))

    def answer(self, rank: int, asker: int, numbers: list[int]) -> None:
        for number in numbers:
            piece = self.disks[rank].get(number, b"")
            if rank in self.lying and piece:
                piece = bytes(4)[:3] + b"\xff"
            if self.chance.random() >= self.loss:
                self.send_piece(rank, asker, lambda number=number, piece=piece: self.hear(asker, rank, number, piece))

    def hear(self, rank: int, sender: int, number: int, piece: bytes) -> None:
        if sender not in self.swarms:
            return
        try:
            if self.swarms[rank].heard(sender, number, piece, self.now):
                self.store(rank, number, piece)
        except PeerMisbehaved:
            assert sender in self.lying
        self.ask(rank, self.swarms[rank].asks(self.now))
        self.poll(rank)


def world(count: int, pieces: int, seed: int = 1, **settings: object) -> World:
    return World(count, random.Random(seed), Content(pieces), **settings)  # type: ignore[arg-type]


def test_eight_peers_have_it_while_the_client_sends_it_about_once() -> None:
    swarm = world(8, 200)
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.given <= 1.05 * 200
    assert swarm.now < 2.0 * 200 / swarm.rate  # all lines alike: about the time of one copy
    assert not swarm.seeding.helped


def test_a_single_peer_gets_all_from_the_client_once() -> None:
    swarm = world(1, 50)
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.given == 50


def test_peers_that_cannot_reach_each_other_are_helped() -> None:
    swarm = world(3, 40, apart={frozenset((0, 1)), frozenset((0, 2))})
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.seeding.helped == {0} or 0 in swarm.seeding.helped
    assert swarm.given <= 2.2 * 40


def test_a_small_bundle_is_sooner_given_again_than_waited_for() -> None:
    everybody = range(4)
    swarm = world(4, 3, apart={frozenset((a, b)) for a in everybody for b in everybody if a != b})
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.now < 3
    assert not swarm.seeding.helped


def test_a_late_joiner_has_it_from_the_members_alone() -> None:
    swarm = world(3, 100)
    swarm.run(lambda: swarm.all_have_it)
    before = swarm.given
    swarm.join(3)
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.given == before


def test_one_that_comes_back_goes_on_with_what_it_kept() -> None:
    swarm = world(4, 200)
    swarm.run(lambda: len(swarm.disks[2]) > 100)
    kept = swarm.leave(2)
    swarm.run(lambda: swarm.all_have_it)
    before = swarm.given
    swarm.join(9, kept)
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.given == before <= 1.3 * 200


def test_one_that_stands_still_holds_nobody_up_for_long() -> None:
    swarm = world(4, 200)
    swarm.run(lambda: len(swarm.disks[1]) > 40)
    swarm.frozen.add(1)
    swarm.run(lambda: all(one.complete for rank, one in swarm.swarms.items() if rank != 1))
    assert swarm.given <= 1.3 * 200
    swarm.thaw(1)
    swarm.run(lambda: swarm.all_have_it)


@pytest.mark.parametrize("liars", [{1}, {0, 2}])
def test_who_sends_wrong_bytes_is_named_by_all_and_never_asked_again(liars: set[int]) -> None:
    swarm = world(5, 100, lying=liars)
    swarm.run(lambda: swarm.all_have_it)
    honest = [one for rank, one in swarm.swarms.items() if rank not in liars]
    assert all(set(one.liars) <= liars for one in honest)
    assert any(one.liars for one in honest)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 8),
    st.integers(17, 120),
    st.integers(0, 2**32),
    st.dictionaries(st.integers(0, 3), st.floats(4.0, 200.0), max_size=4),
    st.floats(0.0, 0.5),
)
def test_it_leaves_the_client_about_once_whatever_the_lines_are(
    count: int, pieces: int, seed: int, rates: dict[int, float], delay: float
) -> None:
    swarm = world(count, pieces, seed, rates=rates, delay=delay)
    swarm.run(lambda: swarm.all_have_it)
    assert swarm.given <= 1.1 * pieces + 1


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.floats(0, 0.4),
    st.sets(st.frozensets(st.integers(0, 5), min_size=2, max_size=2), max_size=8),
    st.sets(st.integers(0, 5), max_size=2),
    st.lists(st.tuples(st.sampled_from(["leave", "freeze", "thaw", "join"]), st.integers(0, 5)), max_size=6),
)
def test_whatever_happens_everybody_ends_with_every_byte(
    count: int,
    pieces: int,
    seed: int,
    loss: float,
    apart: set[frozenset[int]],
    lying: set[int],
    troubles: list[tuple[str, int]],
) -> None:
    swarm = world(count, pieces, seed, loss=loss, apart=apart, lying=lying)
    for number, (trouble, rank) in enumerate(troubles):
        until = swarm.now + swarm.chance.random() * 4
        swarm.at(until, lambda: None)
        swarm.run(lambda until=until: swarm.now >= until)
        if trouble == "leave" and rank in swarm.swarms and len(swarm.swarms) > 1:
            kept = swarm.leave(rank)
            swarm.join(10 + number, kept)
        elif trouble == "freeze" and rank in swarm.swarms:
            swarm.frozen.add(rank)
        elif trouble == "thaw":
            swarm.thaw(rank)
        elif trouble == "join":
            swarm.join(20 + number)
    for rank in list(swarm.frozen):
        swarm.thaw(rank)
    swarm.run(lambda: swarm.all_have_it)
    for disk in swarm.disks.values():
        assert all(piece == swarm.content.pieces[number] for number, piece in disk.items())
