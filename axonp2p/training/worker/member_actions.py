"""The requests of a member to the worker around it, besides `Work` for its trainer. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, BetweenMembers, FromWorkerTraining, StartRound
from axonp2p.training.trainer.trainer_orders import Work


@dataclass(frozen=True)
class SayToCoordinator:
    """Say something to the coordinator."""

    message: FromWorkerTraining
    payload: bytes | memoryview = field(default=b"", repr=False)


@dataclass(frozen=True)
class SayToMember:
    """Say something to a member."""

    rank: int
    message: BetweenMembers
    payload: bytes | memoryview = field(default=b"", repr=False)


@dataclass(frozen=True)
class DropQueued:
    """Forget what still waits to be told and is useless once this round has begun."""

    start: StartRound


@dataclass(frozen=True)
class NotTaken:
    """A member's word that was refused, and has changed nothing."""

    sender: int
    error: PeerMisbehaved


COORDINATOR = -1
"""Stands for the coordinator among the ranks that are asked for pieces."""


def tell_each(what: Iterable[tuple[int, AskPieces]]) -> Iterator[SayToMember | SayToCoordinator]:
    """Ask each rank for what it is to send."""
    for rank, message in what:
        yield SayToCoordinator(message) if rank == COORDINATOR else SayToMember(rank, message)


Action = SayToCoordinator | SayToMember | DropQueued | NotTaken | Work
