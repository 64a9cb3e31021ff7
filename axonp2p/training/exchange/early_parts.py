"""Parts that arrive before this member has come to their exchange: kept, as long as they can still be wanted. Pure.

The fastest member sends while the others still train, perhaps before they have heard of the round; and who was left
out of an exchange finds its results, and perhaps those of the next one, when it comes to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.exchange.terms import ExchangeKey, Terms
from axonp2p.training.messages import SlicePart

EXCHANGES = 2
"""Of a sender, as much is kept as this many take at most: those of values that are not compressed."""
BYTES_A_VALUE = 5
"""float32, and what the smallest parts add to each of their values."""
BYTES_A_PART = 256
"""What a part takes besides its payload."""
SHORT_PARTS = 8
"""At the ends of slices, and where the buffers begin."""


class EarlyPart(NamedTuple):
    """A part and who sent it."""

    sender: int
    part: SlicePart
    payload: bytes | memoryview


@dataclass
class _Kept:
    """One sender's parts, by exchange."""

    bytes: int = 0
    parts: dict[ExchangeKey, list[EarlyPart]] = field(default_factory=dict)

    def forget(self, keys: list[ExchangeKey]) -> None:
        for key in keys:
            self.bytes -= sum(_bytes(early.payload) for early in self.parts.pop(key))


class EarlyParts:
    """What came early, for a model of `values`."""

    def __init__(self, values: int) -> None:
        # The most is sent by the other one of two: its values of our half, and the result of its own half.
        self._most_bytes = EXCHANGES * (values * BYTES_A_VALUE + SHORT_PARTS * BYTES_A_PART)
        self._kept: dict[int, _Kept] = {}

    def keep(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        """Keep a part. What a sender said in an attempt is forgotten when it has begun another one of that round.

        Raises `PeerMisbehaved` when it has sent more than two exchanges take.
        """
        kept = self._kept.setdefault(sender, _Kept())
        attempts = [attempt for round, attempt, _ in kept.parts if round == part.round]
        if attempts and part.attempt < max(attempts):
            return
        kept.forget([key for key in kept.parts if key[0] == part.round and key[1] < part.attempt])
        if kept.bytes + _bytes(payload) > self._most_bytes:
            raise PeerMisbehaved(f"rank {sender} sent more than {EXCHANGES} exchanges take")
        kept.bytes += _bytes(payload)
        key = part.round, part.attempt, part.exchange
        kept.parts.setdefault(key, []).append(EarlyPart(sender, part, payload))

    def take(self, terms: Terms) -> list[EarlyPart]:
        """The parts of this exchange from its members, each one's in the order they came; older ones are forgotten."""
        found = [
            early
            for sender in terms.members
            if sender in self._kept
            for early in self._kept[sender].parts.get(terms.key, [])
        ]
        for kept in self._kept.values():
            kept.forget([key for key in kept.parts if key <= terms.key])
        return found


def _bytes(payload: bytes | memoryview) -> int:
    return len(payload) + BYTES_A_PART
