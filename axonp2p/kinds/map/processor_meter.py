"""The processor seconds that peers are believed: no more than their cores had. Pure.

A worker tells how long its calls took, and several of its chunks are under way at a time. One chunk may have had all
cores, since a call may have threads; all chunks together cannot have had more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _Busy:
    since: float
    granted: float = 0.0


class ProcessorMeter:
    """By rank, from the moment on at which a peer has something to do. Times are monotonic seconds."""

    def __init__(self, cores: int) -> None:
        """`cores`: how many the job has at each peer."""
        self._cores = cores
        self._busy: dict[int, _Busy] = {}

    def busy(self, rank: int, now: float) -> None:
        """It has something to do. Harmless when it had."""
        self._busy.setdefault(rank, _Busy(now))

    def idle(self, rank: int) -> None:
        """It has nothing to do, or is gone: what its cores did not use is not kept for later."""
        self._busy.pop(rank, None)

    def granted(self, rank: int, claimed: float, since: float, now: float) -> float:
        """So much is believed of what it claims for calls that are under way since then."""
        busy = self._busy.setdefault(rank, _Busy(now))
        left = self._cores * max(0.0, now - busy.since) - busy.granted
        granted = max(0.0, min(claimed, self._cores * max(0.0, now - since), left))
        busy.granted += granted
        return granted
