"""Which pieces of a bundle one member asks of whom."""

from __future__ import annotations

import random

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.pieces import book_of
from axonp2p.blobs.swarm import Asks, BlobSwarm

PIECES = [number.to_bytes(4, "big") for number in range(40)]
BLOB = Blob(
    Manifest(files=[BlobFile(path=f"f{at}", size=4, blake3=book_of(one).hashes) for at, one in enumerate(PIECES)])
)


def asked(asks: Asks, rank: int) -> list[int]:
    return [number for to, numbers in asks if to == rank for number in numbers]


def test_who_is_back_is_not_asked_again_for_what_it_still_owes() -> None:
    swarm = BlobSwarm(BLOB, [], random.Random(1))
    owes, now = asked(swarm.has(3, range(40), 0.0), 3), 0.0
    while len(owes) < 5:  # it is fast, so it has more before it
        now += 0.05
        swarm.heard(3, owes[0], PIECES[owes.pop(0)], now)
        owes += asked(swarm.asks(now), 3)
    assert swarm.due(swarm.deadline() or 0.0) == []
    now = swarm.deadline() or 0.0
    assert swarm.due(now) == [(3, owes[-1:])]
    swarm.heard(3, owes[0], PIECES[owes.pop(0)], now + 0.1)
    assert asked(swarm.has(4, owes, now + 0.1), 4) == []
    assert not set(asked(swarm.asks(now + 0.1), 3)) & set(owes)


def test_the_rarest_are_asked_for_first_and_counted_anew_when_one_is_gone() -> None:
    swarm = BlobSwarm(BLOB, [], random.Random(1))
    even, odd = set(range(0, 40, 2)), set(range(1, 40, 2))
    for rank in (2, 3):
        swarm.has(rank, even, 0.0)
    first = asked(swarm.has(1, range(40), 0.0), 1)
    assert set(first) < odd
    for rank in (5, 6, 7):
        swarm.has(rank, odd, 0.1)
    swarm.heard(1, first[0], PIECES[first[0]], 0.2)
    assert set(asked(swarm.asks(0.2), 1)) < even
    for rank in (6, 7):
        swarm.gone(rank, 0.2)
    swarm.heard(1, first[1], PIECES[first[1]], 0.3)
    assert set(asked(swarm.asks(0.3), 1)) < odd


def test_among_equally_rare_ones_members_do_not_ask_for_the_same() -> None:
    first = {tuple(asked(BlobSwarm(BLOB, [], random.Random(seed)).has(1, range(40), 0.0), 1)) for seed in range(20)}
    assert len(first) > 15
