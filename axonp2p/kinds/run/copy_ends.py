"""How copies ended, as far as a peer's word on it can be believed. Pure."""

from __future__ import annotations

import msgspec

from axonp2p.kinds.run.events import CopyEnded
from axonp2p.kinds.run.messages import CopyExited

LONGEST_REASON = 256
CopyName = tuple[int, int, int]
"""Its rank, index and attempt."""


class CopyEnds:
    """Of one life of the client, until an index has its result."""

    def __init__(self, cores: int) -> None:
        """`cores`: how many the job has at each peer."""
        self._cores = cores
        self._begun_at: dict[CopyName, float] = {}
        self._ended: dict[CopyName, CopyExited] = {}
        self._bad: dict[int, str] = {}

    def begun(self, rank: int, index: int, attempt: int, now: float) -> None:
        """This client had a copy begun."""
        self._begun_at[rank, index, attempt] = now

    def ended(self, rank: int, exited: CopyExited, now: float, age: float) -> CopyExited:
        """It is over; what of its word is believed: no more seconds than this client saw pass since its beginning.

        `age`: the seconds since the job was made, for a copy that an earlier life had begun, nobody knows when.
        """
        name = (rank, exited.index, exited.attempt)
        most = now - self._begun_at.pop(name) if name in self._begun_at else max(0.0, age)
        seconds = min(exited.seconds, most)
        cpu_seconds = min(exited.cpu_seconds, self._cores * seconds)
        believed = self._ended[name] = msgspec.structs.replace(exited, seconds=seconds, cpu_seconds=cpu_seconds)
        if not exited.good:
            self.came_to_nothing(exited.index, why_bad(exited))
        return believed

    def came_to_nothing(self, index: int, why: str) -> None:
        """A copy of it has to be begun again."""
        self._bad[index] = why[:LONGEST_REASON]

    def why_again(self, index: int) -> str:
        """Why the last one came to nothing; empty where nobody knows."""
        return self._bad.get(index, "")

    def of(self, rank: int, index: int, attempt: int) -> CopyExited | None:
        """How that copy ended."""
        return self._ended.get((rank, index, attempt))

    def forget(self, index: int) -> None:
        """It has its result."""
        self._ended = {name: ended for name, ended in self._ended.items() if name[1] != index}
        self._bad.pop(index, None)


def over_its_limit(index: int, attempt: int, limit: str) -> CopyExited:
    """The end that is assumed of a worker that ended with its copy."""
    return CopyExited(
        index=index, attempt=attempt, ended="order", code=-9, seconds=0.0, cpu_seconds=0.0, most_memory=0,
        reason=f"it went over its limit of {limit}",
    )  # fmt: skip


def why_bad(ended: CopyExited) -> str:
    """In a few words, of a copy that ended badly."""
    if ended.reason:
        return ended.reason
    if ended.ended == "timeout":
        return "it took longer than its timeout"
    return code_text(ended.code)


def code_text(code: int) -> str:
    """An exit code, or the signal that it stands for."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def event_of(ended: CopyExited, peer: str) -> CopyEnded:
    """As a person sees it."""
    return CopyEnded(
        index=ended.index,
        attempt=ended.attempt,
        peer=peer,
        code=ended.code,
        seconds=ended.seconds,
        cpu_seconds=ended.cpu_seconds,
        most_memory=ended.most_memory,
        reason=ended.reason or ("" if ended.ended == "itself" else ended.ended),
    )
