"""The costs of an exchange: bytes on the wire, and seconds over the members' links. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from axonp2p.tensors.coding import Coding
from axonp2p.verification.rates import cut_for

ASSUMED_UPLOAD, ASSUMED_DOWNLOAD = 10e6 / 8, 50e6 / 8
"""Bytes a second of a link of which nothing is known."""
ASSUMED_STEP_S = 0.1
"""Before any step was measured."""
HANDLING_S, HANDLING_S_A_VALUE = 0.01, 2e-8
"""The time that encoding, adding up, decoding and the outer step take beside the wire."""
SCALE_BITS = 16 / 256
"""The cost of a scale for each block of values, for each of them."""

ModelSize = tuple[int, int, int]
"""Of a model's vector: values coded in few bits, all values, and those of the others that an exchange sends."""


@dataclass(frozen=True)
class ExchangeFacts:
    """The facts known of a job and its members when the exchange is chosen."""

    values: int
    """In the exchanged vector."""
    parameters: int
    """How many of them are coded in few bits."""
    exact: int
    """How many of the others are sent, exactly: BatchNorm's statistics, but no frozen parameters."""
    members: tuple[int, ...]
    """Their ranks."""
    steps: int
    """Local steps a round."""
    step_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds a local step takes, by rank; as far as they are known, as in the next two."""
    upload: Mapping[int, float] = field(default_factory=dict)
    """Bytes a second, measured or declared."""
    download: Mapping[int, float] = field(default_factory=dict)
    """Bytes a second, measured or declared."""
    rtt_s: float = 0.0
    """The longest round trip."""
    listeners: int = 0
    """The number of members that are only sent the results."""
    rounds: int = 0
    """How many the job has done."""
    marks_bytes: int = 0
    """Of memory, for which members commit to the ends of their legs; 0: they commit to nothing."""
    mark_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds that a member takes to commit to one place, by rank, as far as it is known."""

    @property
    def moving(self) -> int:
        """How many values an exchange sends, in whatever coding."""
        return self.parameters + self.exact

    @property
    def known(self) -> frozenset[tuple[str, int]]:
        """The members' steps and uploads that are no assumptions: of which sort, and whose."""
        steps = {("step", rank) for rank in self.members if rank in self.step_s}
        return frozenset(steps | {("upload", rank) for rank in self.members if self.upload.get(rank)})

    def up(self, rank: int) -> float:
        """Bytes a second that the member can send, for want of better an assumption."""
        return self.upload.get(rank, 0.0) or ASSUMED_UPLOAD

    def down(self, rank: int) -> float:
        """Bytes a second that the member can receive, for want of better an assumption."""
        return self.download.get(rank, 0.0) or ASSUMED_DOWNLOAD

    @property
    def slowest_step_s(self) -> float:
        """Of the member that needs most for a local step: the others wait for its part."""
        return max((self.step_s[rank] for rank in self.members if rank in self.step_s), default=ASSUMED_STEP_S)

    def marks_s(self) -> float:
        """Seconds of a leg in which nobody takes steps, because its ends are committed to."""
        return 2 * max((self.mark_s[rank] for rank in self.members if rank in self.mark_s), default=0.0)

    def checkable(self, every: int) -> bool:
        """Whether the members' memory holds what they commit to, in legs of so many local steps."""
        return not self.marks_bytes or not cut_for(self.values, self.steps, every, self.marks_bytes).why_not


def bits_a_value(coding: Coding) -> float:
    """How many bits each value of a long vector takes on the wire, those that stay behind counted too."""
    bits = coding.bits + (SCALE_BITS if coding.bits <= 8 else 0)
    if coding.density == 1:
        return bits
    low = math.floor(math.log2(1 / coding.density))
    # Where their places cost more than is saved, all values go.
    return min(bits, coding.density * (bits + low + 1) + 2.0**-low)


def vector_bytes(facts: ExchangeFacts, coding: Coding) -> float:
    """How many bytes a member's whole vector takes; what travels exactly always 32 bits a value."""
    return (facts.parameters * bits_a_value(coding) + facts.exact * 32) / 8


def upload_bytes(facts: ExchangeFacts, gather: float, result: float, share: float) -> float:
    """The bytes that a member sends in an exchange that owns `share` of the values.

    `gather` and `result` are what whole vectors take.
    """
    others = len(facts.members) - 1
    return gather * (1 - share) + result * share * (others + facts.listeners)


def exchange_s(facts: ExchangeFacts, gather: Mapping[int, Coding], result: Coding, share: Mapping[int, float]) -> float:
    """Seconds that an exchange takes: its bytes over the slowest link, two round trips, and the handling."""
    own = {rank: vector_bytes(facts, gather[rank]) for rank in facts.members}
    mean, everybodys = vector_bytes(facts, result), sum(own.values())
    wire = 0.0
    for rank in facts.members:
        sends = upload_bytes(facts, own[rank], mean, share[rank])
        receives = (everybodys - own[rank]) * share[rank] + mean * (1 - share[rank])
        wire = max(wire, sends / facts.up(rank), receives / facts.down(rank))
    return wire + waiting_s(facts)


def waiting_s(facts: ExchangeFacts) -> float:
    """The part of an exchange that no faster link makes shorter."""
    return 2 * facts.rtt_s + HANDLING_S + HANDLING_S_A_VALUE * facts.values


def exchange_bytes(
    facts: ExchangeFacts, gather: Mapping[int, Coding], result: Coding, share: Mapping[int, float]
) -> float:
    """Bytes among the members in one exchange, each counted once."""
    sent = sum(vector_bytes(facts, gather[rank]) * (1 - share[rank]) for rank in facts.members)
    return sent + vector_bytes(facts, result) * (len(facts.members) - 1)


def dense_bytes(values: int, members: int) -> int:
    """The bytes of an exchange of all values in 32 bits among the members, which dense training pays each step."""
    return 8 * (members - 1) * values
