"""A member that does another's steps again: it fetches where they begin, and gives it to its trainer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from axonp2p.training.messages import Piece, PieceList, RedoSegment
from axonp2p.training.spot_checks.questions import hand_over_s
from axonp2p.training.state_transfer.piece_fetch import PieceFetch
from axonp2p.training.trainer.local_trainer import redone
from axonp2p.training.trainer.trainer_orders import Redo
from axonp2p.training.worker.member_actions import Action, SayToCoordinator, tell_each


class Recomputing:
    """One order at a time; the next one takes its place."""

    def __init__(self) -> None:
        self._order: RedoSegment | None = None
        self._fetch: PieceFetch | None = None
        self._until = 0.0

    def ordered(self, order: RedoSegment, now: float) -> Iterator[Action]:
        """Do these steps again."""
        self._order, self._until = order, now + hand_over_s(order.start.size)
        self._fetch = PieceFetch(order.start.name, order.start.size)
        yield from tell_each(self._fetch.senders([order.of], now))

    def wants(self, state: bytes) -> bool:
        """Whether pieces of this are on their way for it."""
        return self._fetch is not None and self._fetch.state == state

    def hear_piece(
        self, sender: int, message: Piece | PieceList, payload: bytes | memoryview, now: float
    ) -> Iterator[Action]:
        """A piece of where the steps begin, or the list of their hashes. Raises `PeerMisbehaved`."""
        assert self._fetch is not None
        assert self._order is not None
        yield from tell_each(self._fetch.hear(sender, message, payload, now))
        if self._fetch.complete:
            data, self._fetch = self._fetch.data(), None
            yield Redo(self._order, data)
        elif self._fetch.nobody_left:
            yield from self._in_vain()

    def deadline(self) -> float | None:
        """When to call `due`."""
        if self._fetch is None:
            return None
        soon = self._fetch.deadline()
        return self._until if soon is None else min(soon, self._until)

    def due(self, now: float) -> Iterator[Action]:
        """Time has passed."""
        if self._fetch is None:
            return
        yield from tell_each(self._fetch.due(now))
        if now >= self._until or self._fetch.nobody_left:
            yield from self._in_vain()

    def _in_vain(self) -> Iterator[Action]:
        assert self._order is not None
        self._fetch = None
        yield SayToCoordinator(redone(self._order, failed="not handed over"))
