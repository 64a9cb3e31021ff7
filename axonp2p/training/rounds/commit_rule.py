"""Which accepted rounds may enter the client's books: those whose state is on its disk, or that none is kept of. Pure.

A state travels to the client while the next round is already trained. That round is accepted only once the state is on
the disk: so at most one accepted round is not in the books, and a client with a slow line slows the job down instead
of falling further behind. A round between two checkpoints enters the books at once, and is at risk until the next.
"""

from __future__ import annotations

from axonp2p.training.round_messages import KeepState, RoundBooked


class CommitRule:
    """Of one job. `every` so many rounds a state is kept, and after the last; 0: never."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._waiting: tuple[int, bytes] | None = None

    @property
    def full(self) -> bool:
        """Whether no other round may be accepted now."""
        return self._waiting is not None

    def accepted(self, round: int, state: bytes, *, last: bool) -> list[KeepState | RoundBooked]:
        """A round led to this state; `last`: no other follows. Must not be called while `full`."""
        assert not self.full
        if not self._every:
            return []
        if (round + 1) % self._every and not last:
            return [RoundBooked(round, None)]
        self._waiting = round, state
        return [KeepState(round, state)]

    def kept(self, state: bytes) -> list[RoundBooked]:
        """This state is on the disk."""
        if self._waiting is None or self._waiting[1] != state:
            return []
        round, self._waiting = self._waiting[0], None
        return [RoundBooked(round, state)]
