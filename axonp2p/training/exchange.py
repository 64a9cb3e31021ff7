"""The exchange of one round, as a state machine without I/O: a butterfly of slices.

The flat difference is cut into as many equal slices as there are members; member number i (by its position in
`members`) owns slice i. Everyone sends its own values of each slice to the slice's owner ("gather"), in parts of
`VALUES_A_PART`. As soon as the owner has a part from all members it takes the mean weighted by samples and hands it
to everyone ("result"), so sending, averaging and handing back overlap.

The owner adds in the order of ranks whatever the order of arrival, in float64, so a mean depends on nothing but the
values. Everything from another member is checked against what that member may say here; a breach raises
`PeerMisbehaved` with its rank and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.frames import BYTES_A_VALUE, bytes_to_values, values_to_bytes
from axonp2p.training.messages import VALUES_A_PART, SlicePart, StartRound


class Outgoing(NamedTuple):
    """A part for the member with rank `to`."""

    to: int
    part: SlicePart
    payload: memoryview


class SliceExchange:
    """One member's side of the exchange that `start` orders.

    `delta` is start minus end as flat float32, `samples` this member's weight in the mean, `most_samples` the
    largest weight that another member may claim. Members' ranks must be different and include `rank`.
    """

    def __init__(self, rank: int, start: StartRound, delta: Tensor, samples: int, most_samples: int) -> None:
        self._rank = rank
        self._start = start
        self._members = sorted(start.members)
        self._delta = delta
        self._most_samples = most_samples
        bounds = [position * len(delta) // len(start.members) for position in range(len(start.members) + 1)]
        self._slices = {owner: (bounds[at], bounds[at + 1]) for at, owner in enumerate(start.members)}
        self._weights: dict[int, int] = {rank: samples}
        self._totals: dict[int, int] = {}
        self._gathered: dict[int, dict[int, Tensor]] = {offset: {} for offset in self._offsets(rank)}
        self._mean = torch.empty_like(delta)
        self._missing = {(owner, offset) for owner in start.members for offset in self._offsets(owner)}
        if len(self._members) == 1:
            for offset in self._offsets(rank):
                self._average(offset)

    @property
    def complete(self) -> bool:
        """True when every value of the mean is here."""
        return not self._missing

    def mean(self) -> Tensor:
        """The weighted mean of all members' differences, once `complete`."""
        assert self.complete
        return self._mean

    def outgoing(self) -> Iterator[Outgoing]:
        """What this member has to say first: its values of everyone's slice, the owners in turn, after itself."""
        place = self._members.index(self._rank)
        others = self._members[place + 1 :] + self._members[:place]
        longest = max((end - begin for begin, end in self._slices.values()), default=0)
        for offset in range(0, longest, VALUES_A_PART):
            for owner in others:
                if offset in self._offsets(owner):
                    yield self._part(owner, "gather", owner, offset, self._weights[self._rank])

    def receive(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> list[Outgoing]:
        """Take a part that `sender` sent for this round and attempt; gives what must be sent because of it."""
        self._check_place(sender, part, payload)
        if part.phase == "result":
            self._take_result(sender, part, payload)
            return []
        self._take_gather(sender, part, payload)
        if len(self._gathered[part.offset]) < len(self._members) - 1:
            return []
        total = self._average(part.offset)
        others = [member for member in self._members if member != self._rank]
        return [self._part(member, "result", self._rank, part.offset, total) for member in others]

    def _take_gather(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        if part.slice != self._rank:
            raise PeerMisbehaved(f"rank {sender} sent values of rank {part.slice}'s slice to rank {self._rank}")
        if part.offset not in self._gathered or sender in self._gathered[part.offset]:
            raise PeerMisbehaved(f"rank {sender} sent its values at {part.offset} twice")
        if not 0 < part.samples <= self._most_samples:
            raise PeerMisbehaved(f"rank {sender} claims {part.samples} samples of at most {self._most_samples}")
        if self._weights.get(sender, part.samples) != part.samples:
            raise PeerMisbehaved(f"rank {sender} changed its number of samples within a round")
        self._gathered[part.offset][sender] = _finite(sender, payload)
        self._weights[sender] = part.samples

    def _take_result(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        if part.slice != sender:
            raise PeerMisbehaved(f"rank {sender} sent a result of rank {part.slice}'s slice, which it does not own")
        if (sender, part.offset) not in self._missing:
            raise PeerMisbehaved(f"rank {sender} sent its result at {part.offset} twice")
        if self._totals.get(sender, part.samples) != part.samples:
            raise PeerMisbehaved(f"rank {sender} changed its sum of samples within a round")
        self._view(self._mean, sender, part.offset).copy_(_finite(sender, payload))
        self._totals[sender] = part.samples
        self._missing.discard((sender, part.offset))

    def _check_place(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        if (part.round, part.attempt) != (self._start.round, self._start.attempt):
            raise PeerMisbehaved(f"rank {sender} sent a part of another round")
        if sender == self._rank or sender not in self._slices or part.slice not in self._slices:
            raise PeerMisbehaved(f"rank {sender} is not part of this exchange, or names a slice that is not")
        begin, end = self._slices[part.slice]
        if part.offset not in self._offsets(part.slice):
            raise PeerMisbehaved(f"rank {sender} sent a part at {part.offset} of a slice of {end - begin} values")
        expected = min(VALUES_A_PART, end - begin - part.offset) * BYTES_A_VALUE
        if len(payload) != expected:
            raise PeerMisbehaved(f"rank {sender} sent {len(payload)} bytes where a part has {expected}")

    def _average(self, offset: int) -> int:
        """Take the mean of a part of the own slice. Returns the sum of all weights."""
        gathered = self._gathered.pop(offset)
        mine = self._view(self._delta, self._rank, offset)
        total = sum(self._weights[member] for member in self._members)
        added = torch.zeros(len(mine), dtype=torch.float64)
        for member in self._members:
            values = mine if member == self._rank else gathered[member]
            added.add_(values.to(torch.float64).mul_(self._weights[member]))
        self._view(self._mean, self._rank, offset).copy_(added.div_(total))
        self._missing.discard((self._rank, offset))
        return total

    def _offsets(self, owner: int) -> range:
        begin, end = self._slices[owner]
        return range(0, end - begin, VALUES_A_PART)

    def _view(self, vector: Tensor, owner: int, offset: int) -> Tensor:
        begin, end = self._slices[owner]
        return vector[begin + offset : min(begin + offset + VALUES_A_PART, end)]

    def _part(self, to: int, phase: str, owner: int, offset: int, samples: int) -> Outgoing:
        vector = self._delta if phase == "gather" else self._mean
        part = SlicePart(
            round=self._start.round,
            attempt=self._start.attempt,
            phase="gather" if phase == "gather" else "result",
            slice=owner,
            offset=offset,
            samples=samples,
        )
        return Outgoing(to, part, values_to_bytes(self._view(vector, owner, offset)))


def _finite(sender: int, payload: bytes | memoryview) -> Tensor:
    values = bytes_to_values(payload)
    if not bool(torch.isfinite(values).all()):
        raise PeerMisbehaved(f"rank {sender} sent values that are not finite numbers")
    return values
