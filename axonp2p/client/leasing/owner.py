"""The wish of a leased peer's owner, as the peer tells it: the worker to stand still, to go on, the machine back.

An owner comes and goes at any moment, also before the job listens, so what was said is kept; and what is said twice, or
of a worker that goes anyway, changes nothing.
"""

from __future__ import annotations

from axonp2p.client.leasing.lease_sides import LeaseListener
from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.messages import HandBack, OwnersMessage, WorkerPaused, WorkerResumed

MOST_PAUSES = 10_000
"""An owner who comes back more often than that in one lease is none; each time is a line in the job's events."""
MOST_HAND_BACKS = 100
"""So often at most a peer may want its machine back sooner than it said before."""


class Owner:
    """The owner of one peer, in the words of that peer. `now` is monotonic seconds, here and below."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._rank = -1
        self._listener: LeaseListener | None = None
        self._paused: WorkerPaused | None = None
        self._pauses = 0
        self._back: HandBack | None = None
        self._back_by = 0.0
        self._hand_backs = 0

    def attach(self, rank: int, listener: LeaseListener, now: float) -> None:
        """From now on `listener` is told; at once of what holds already."""
        self._rank, self._listener = rank, listener
        if self._paused:
            listener.owner_says(rank, self._paused)
        if self._back:
            seconds = max(0.0, self._back_by - now)
            listener.owner_says(rank, HandBack(reason=self._back.reason, seconds=seconds))

    def says(self, message: OwnersMessage, now: float) -> str:
        """The peer told us; gives why the worker has gone, if it has. Raises `PeerMisbehaved` for what cannot be."""
        if self._is_news(message, now) and self._listener:
            self._listener.owner_says(self._rank, message)
        return f"handed back: {message.reason}" if isinstance(message, HandBack) and not message.seconds else ""

    def _is_news(self, message: OwnersMessage, now: float) -> bool:
        match message:
            case WorkerPaused():
                if self._paused:
                    return False
                self._paused = message
                self._pauses += 1
                if self._pauses > MOST_PAUSES:
                    raise PeerMisbehaved(f"peer {self._peer} paused its worker {self._pauses} times")
            case WorkerResumed():
                if not self._paused:
                    return False
                self._paused = None
            case HandBack(seconds=seconds):
                if self._back and now + seconds >= self._back_by:
                    return False  # once said, a machine is not taken back later
                self._back, self._back_by = message, now + seconds
                self._hand_backs += 1
                if self._hand_backs > MOST_HAND_BACKS:
                    raise PeerMisbehaved(f"peer {self._peer} was handed back {self._hand_backs} times")
        return True
