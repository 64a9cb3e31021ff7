"""Slices that arrive before this member has come to their exchange: kept, as long as they can still be wanted. Pure.

The fastest member sends while the others still train, perhaps before they have heard of the round. Of each sender
only its newest round and attempt is kept, and no more than one exchange may take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import SlicePart, StartRound


class EarlyPart(NamedTuple):
    """A part and who sent it."""

    sender: int
    part: SlicePart
    payload: bytes | memoryview


@dataclass
class _Kept:
    key: tuple[int, int]
    bytes: int = 0
    parts: list[EarlyPart] = field(default_factory=list)


class EarlyParts:
    """What came early; of each sender at most `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[int, _Kept] = {}

    def keep(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        """Keep a part. Raises `PeerMisbehaved` when the sender has sent more than one exchange takes."""
        key = (part.round, part.attempt)
        kept = self._kept.get(sender)
        if kept is None or kept.key < key:
            kept = self._kept[sender] = _Kept(key)
        elif key < kept.key:
            return
        if kept.bytes + len(payload) > self._most_bytes:
            raise PeerMisbehaved(f"rank {sender} sent more than one exchange takes")
        kept.bytes += len(payload)
        kept.parts.append(EarlyPart(sender, part, payload))

    def take(self, start: StartRound) -> list[EarlyPart]:
        """The parts of this round and attempt from its members; what is older is forgotten."""
        key = (start.round, start.attempt)
        found = [
            part
            for sender in start.members
            if (kept := self._kept.get(sender)) and kept.key == key
            for part in kept.parts
        ]
        self._kept = {sender: kept for sender, kept in self._kept.items() if kept.key > key}
        return found
