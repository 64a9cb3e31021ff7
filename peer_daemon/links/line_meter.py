"""How fast the line of this machine is, from what the kernel counts on the links of all jobs (pure).

Upload: bytes that were confirmed, over the time in which some link had something on its way. Download: bytes that
arrived, over the time in which they kept arriving; when the others send slower than this line could take, that is
what is measured. Both are cut into pieces of busy time, and the second best of the last few pieces counts (of the
first two the better), much as BBR takes the best of recent delivery rates (Cardwell et al. 2016): pieces in which TCP
had only begun, or in which the other side was slow, say little of the line, and a single good one may be an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping

from axonp2p.transport.flow.tcp_state import TcpState

PIECE_S = 0.5
PIECE_ROUND_TRIPS = 10
"""A piece is at least so long, in seconds and in round trips: TCP needs a few to find the rate of a line."""
PIECE_BYTES = 512 * 1024
"""... and carries at least so much: less fits into buffers on the way."""
_PIECES = 8


class _Rate:
    """Of one direction."""

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0
        self._pieces: deque[float] = deque(maxlen=_PIECES)

    def add(self, count: int, seconds: float, round_trip: float) -> None:
        self._bytes += count
        self._seconds += seconds
        if self._bytes >= PIECE_BYTES and self._seconds >= max(PIECE_S, PIECE_ROUND_TRIPS * round_trip):
            self._pieces.append(self._bytes / self._seconds)
            self._bytes, self._seconds = 0, 0.0

    @property
    def bytes_a_second(self) -> float | None:
        best = sorted(self._pieces, reverse=True)
        if not best:
            return None
        return best[0] if len(best) <= 2 else best[1]


class LineMeter:
    """Hears now and then what the kernel has counted; the more often, the truer."""

    def __init__(self) -> None:
        self._before: dict[Hashable, TcpState] = {}
        self._at = 0.0
        self._upload = _Rate()
        self._download = _Rate()
        self._arrived = (0, 0.0)
        self._kept_coming = 0
        self.moving = False
        """Whether anything was sent or received since the time before."""

    def heard(self, states: Mapping[Hashable, TcpState], now: float) -> None:
        """The present counts of every link, by whatever names it, at `now` (seconds)."""
        steps = [(self._before[link], state) for link, state in states.items() if link in self._before]
        seconds = now - self._at
        self._before, self._at = dict(states), now
        if seconds <= 0 or not steps:
            return
        round_trip = max(state.rtt_seconds for _, state in steps)
        acked = sum(state.acked_bytes - before.acked_bytes for before, state in steps)
        # Several links are busy side by side: for how long at least one was, the busiest says best.
        busy = min(seconds, max(state.busy_seconds - before.busy_seconds for before, state in steps))
        if acked > 0 and busy > 0:
            self._upload.add(acked, busy, round_trip)
        received = sum(state.received_bytes - before.received_bytes for before, state in steps)
        self._received(received, seconds, round_trip)
        self.moving = acked + received > 0

    def _received(self, count: int, seconds: float, round_trip: float) -> None:
        # The kernel keeps no time for this. In the first and the last step of a stretch data came for a part of the
        # time only, so a step counts once there was one before it and there is one after it.
        if not count:
            self._kept_coming = 0
            return
        if self._kept_coming > 1:
            self._download.add(*self._arrived, round_trip)
        self._kept_coming += 1
        self._arrived = (count, seconds)

    @property
    def upload(self) -> float | None:
        """Bytes a second; None until it was measured."""
        return self._upload.bytes_a_second

    @property
    def download(self) -> float | None:
        """Bytes a second; None until it was measured."""
        return self._download.bytes_a_second
