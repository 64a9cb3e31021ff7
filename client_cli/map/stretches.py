"""The work of one peer over time: its chunks as few stretches, however many there were. Pure.

Chunks that ran at the same time, on different cores, are in rows above each other. When there are too many to draw,
those that follow each other become one stretch, the closest ones first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

MOST_ROWS = 8
"""Chunks at the same time beyond these share the last row."""
MOST_DRAWN = 4000
"""Stretches of all peers."""
LEAST_DRAWN = 40
"""Of each peer, however many there are."""
FIRST_GRAIN_S = 0.5
"""Of stretches that are joined first; doubled until few enough are left."""
_JITTER_S = 0.1
"""A chunk is told when it is on the disk, so the next one seems to begin before it ended."""


@dataclass(frozen=True)
class CallStretch:
    """Calls that have their results: those of one chunk, or of several that followed each other. Unix seconds."""

    began: float
    ended: float
    first: int
    """The item of its first call."""
    calls: int
    failed: int = 0
    """How many of its results are errors."""
    copied: bool = False
    """Whether it is one chunk that was begun here because it was stuck elsewhere."""
    chunks: int = 1


@dataclass
class PeerStretches:
    """Those of one peer."""

    rows: list[list[CallStretch]] = field(default_factory=list)
    seconds: float = 0.0
    """Of all its chunks together."""
    _grain: float = FIRST_GRAIN_S

    def add(self, chunk: CallStretch, most: int) -> None:
        """One more chunk, the newest; at most so many stretches are kept."""
        self.seconds += chunk.ended - chunk.began
        row = self._free_row(chunk)
        if row and row[-1].ended > chunk.began:
            chunk = replace(chunk, began=min(row[-1].ended, chunk.ended))
        row.append(chunk)
        while sum(map(len, self.rows)) > most:
            joined = [_joined(row, self._grain) for row in self.rows]
            if joined == self.rows and self._grain > 1e12:
                joined = [[_join_all(row)] for row in self.rows]
            self.rows = joined
            self._grain *= 2

    def _free_row(self, chunk: CallStretch) -> list[CallStretch]:
        allowed = max(_JITTER_S, 0.25 * (chunk.ended - chunk.began))
        for row in self.rows:
            if row[-1].ended <= chunk.began + allowed:
                return row
        if len(self.rows) < MOST_ROWS:
            self.rows.append([])
        return self.rows[-1]


def most_of_each(peers: int) -> int:
    """How many stretches each of so many peers may have."""
    return max(LEAST_DRAWN, MOST_DRAWN // max(1, peers))


def _joined(row: list[CallStretch], grain: float) -> list[CallStretch]:
    """Those that are closer than `grain`, and look the same or are shorter than it, as one."""
    found: list[CallStretch] = []
    for one in row:
        if found and one.began - found[-1].ended <= grain and _may_join(found[-1], one, grain):
            found[-1] = _join_all([found[-1], one])
        else:
            found.append(one)
    return found


def _may_join(one: CallStretch, other: CallStretch, grain: float) -> bool:
    alike = (one.failed > 0, one.copied) == (other.failed > 0, other.copied)
    return alike or other.ended - one.began <= grain


def _join_all(row: list[CallStretch]) -> CallStretch:
    return CallStretch(
        began=row[0].began,
        ended=max(one.ended for one in row),
        first=row[0].first,
        calls=sum(one.calls for one in row),
        failed=sum(one.failed for one in row),
        copied=all(one.copied for one in row),
        chunks=sum(one.chunks for one in row),
    )
