"""Parts that arrive before this member has come to their exchange: kept, as long as they can still be wanted. Pure.

The fastest member sends while the others still train, perhaps before they have heard of the round; and who was left
out of an exchange finds its results, and perhaps those of the next one, when it comes to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.exchange.terms import ExchangeKey, Terms
from axonp2p.training.messages import LEAST_PART, SlicePart

EXCHANGES = 2
"""Of a sender, as much is kept as this many take at most: those of values that are not compressed."""
BYTES_A_VALUE = 5
"""float32, and what the smallest parts add to each of their values."""
BYTES_A_PART = 256
"""The bytes of a part besides its payload."""
SHORT_PARTS = 8
"""At the ends of slices, and where the buffers begin."""


class EarlyPart(NamedTuple):
    """A part and who sent it."""

    sender: int
    part: SlicePart
    payload: bytes | memoryview


@dataclass
class _Round:
    """One sender's parts of one round: of its newest attempt, by exchange."""

    attempt: int
    bytes: int = 0
    number: int = 0
    parts: dict[int, list[EarlyPart]] = field(default_factory=dict)

    def forget(self, exchange: int) -> None:
        """And those before."""
        for old in [one for one in self.parts if one <= exchange]:
            gone = self.parts.pop(old)
            self.number -= len(gone)
            self.bytes -= sum(_bytes(early.payload) for early in gone)


@dataclass
class _Sender:
    """The messages of one sender, by round, and how many bytes they are in all."""

    bytes: int = 0
    number: int = 0
    rounds: dict[int, _Round] = field(default_factory=dict)

    def add(self, early: EarlyPart) -> None:
        part = early.part
        kept = self.rounds.setdefault(part.round, _Round(part.attempt))
        kept.parts.setdefault(part.exchange, []).append(early)
        for counted in (kept, self):
            counted.number += 1
            counted.bytes += _bytes(early.payload)

    def forget(self, key: ExchangeKey) -> None:
        """This exchange and all before it."""
        round, attempt, exchange = key
        for number in [number for number in self.rounds if number <= round]:
            kept = self.rounds[number]
            if (number, kept.attempt) < (round, attempt):
                self.forget_round(number)
            elif kept.attempt == attempt:
                before = kept.number, kept.bytes
                kept.forget(exchange)
                self.number -= before[0] - kept.number
                self.bytes -= before[1] - kept.bytes

    def forget_round(self, number: int) -> None:
        gone = self.rounds.pop(number)
        self.number -= gone.number
        self.bytes -= gone.bytes


class ReorderBuffer:
    """The parts that came early, for a model of `values`."""

    def __init__(self, values: int) -> None:
        # The most is sent by the other one of two: its values of our half, and the result of its own half.
        self._most_parts = EXCHANGES * (values // LEAST_PART + SHORT_PARTS)
        self._most_bytes = EXCHANGES * (values * BYTES_A_VALUE + SHORT_PARTS * BYTES_A_PART)
        self._kept: dict[int, _Sender] = {}

    def keep(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        """Keep a part. A sender's words in an attempt are forgotten when it has begun another one of that round.

        The cost of a part does not depend on how many are kept: its sender chooses how many, and when they come.
        Raises `PeerMisbehaved` when it has sent more than two exchanges take.
        """
        kept = self._kept.setdefault(sender, _Sender())
        if before := kept.rounds.get(part.round):
            if part.attempt < before.attempt:
                return
            if part.attempt > before.attempt:
                kept.forget_round(part.round)
        if kept.number >= self._most_parts or kept.bytes + _bytes(payload) > self._most_bytes:
            raise PeerMisbehaved(f"rank {sender} sent more than {EXCHANGES} exchanges take")
        kept.add(EarlyPart(sender, part, payload))

    def take(self, terms: Terms) -> list[EarlyPart]:
        """The parts of this exchange from its members, each one's in the order they came; older ones are forgotten."""
        round, attempt, exchange = terms.key
        found = [
            early
            for sender in terms.members
            if sender in self._kept and (kept := self._kept[sender].rounds.get(round)) and kept.attempt == attempt
            for early in kept.parts.get(exchange, [])
        ]
        for one in self._kept.values():
            one.forget(terms.key)
        return found


def _bytes(payload: bytes | memoryview) -> int:
    return len(payload) + BYTES_A_PART
