"""One member's side of an exchange, as a state machine without I/O: parts and time in, parts out, and what came of it.

Everyone sends its values of each slice to the slice's owner ("gather"), part by part. The owner of a part hands the
mean to everyone ("result") as soon as it is closed, so sending, averaging and handing back overlap. Everybody, the
owner too, goes on with what the result decodes to, which is equal everywhere to the bit.

The coding of the own values drops the leftover. The owner adds the part that the coding of the mean dropped to its
own, scaled so that it weighs in its next sending what it weighs in the mean. A rule that bears liars would take it for
a lie: there the owner keeps it apart, and adds it to what the next exchange comes to (`past`). Of values under way the
encoded bytes are kept until the result is there: if that says that they came too late, they are put back. A part whose
result comes before the own values have gone out is not sent any more.

Everything from another member is checked against what that member may say here; a breach raises `PeerMisbehaved`
with its rank and changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from blake3 import blake3
from torch import Tensor

from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.tensors.encoding import decode, encode
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.checks import check_gather, check_place, check_result, decoded_values
from axonp2p.training.exchange.error_feedback import Past
from axonp2p.training.exchange.own_slice import OwnSlice
from axonp2p.training.exchange.terms import Terms
from axonp2p.training.messages import SlicePart
from axonp2p.wire.codec import encode as header_bytes
from axonp2p.wire.ranks import bytes_of


class Outgoing(NamedTuple):
    """A part for the member or listener with rank `to`."""

    to: int
    part: SlicePart
    payload: bytes


class SliceExchange:
    """One exchange as `terms` have it, begun at `begun`: seconds on the clock of every later `now`.

    `sending` is the flat float32 vector to be averaged, None for a listener. It is taken over: what is not sent stays
    in it and becomes the leftover. `samples` is its weight in the mean, `arrivals` lives as long as the job, `past` is
    what the exchange before has left. `agreed` is told each part of the mean and where it begins, once it is here.
    """

    def __init__(
        self,
        terms: Terms,
        sending: Tensor | None,
        samples: int,
        arrivals: ArrivalTimes,
        begun: float,
        past: Past | None = None,
        agreed: Callable[[int, Tensor], None] | None = None,
    ) -> None:
        assert terms.listens == (sending is None)
        self._centre, self._owed = (past or Past()).for_owner(terms)
        self._terms = terms
        self._samples = samples
        self._left = sending
        self._own = None if terms.listens else OwnSlice(terms, samples, arrivals, begun)
        self._begun = begun
        self._agreed = agreed
        self._parts = {owner: terms.parts_of(owner) for owner in terms.members}
        self._missing = {(owner, offset) for owner, parts in self._parts.items() for offset in parts}
        self._under_way: dict[tuple[int, int], bytes] = {}
        self._mean = torch.empty(terms.values)
        self._hashes: dict[tuple[int, int], bytes] = {}
        self.kept_back = 0
        """Values of this member that are not in the mean: its owner went on without them."""
        self.sent_bytes = self.received_bytes = 0

    @property
    def complete(self) -> bool:
        """True when every value of the mean is here. Then nothing more has to be sent, received or waited for."""
        return not self._missing

    @property
    def left_out(self) -> set[int]:
        """Members without whose values this one closed parts of its slice."""
        return self._own.left_out if self._own else set()

    @property
    def digests(self) -> dict[int, bytes]:
        """By owner, SHA-256 over the BLAKE3 of each of its results in the order of their offsets, once `complete`."""
        assert self.complete
        return {
            owner: hashlib.sha256(b"".join(self._hashes[owner, offset] for offset in parts)).digest()
            for owner, parts in self._parts.items()
        }

    def mean(self) -> Tensor:
        """The weighted mean that all go on with, once `complete`."""
        assert self.complete
        return self._mean

    def leftover(self) -> Tensor:
        """The part of `sending` not in the mean, once `complete`; 0 where values travel exact. Not for listeners."""
        assert self.complete
        assert self._left is not None
        self._left[self._terms.exact_from :].zero_()
        return self._left

    def past(self) -> Past:
        """The part of this exchange that the next one needs, once `complete`."""
        assert self.complete
        return Past.after(self._terms, self._mean, self._owed)

    def outgoing(self) -> Iterator[Outgoing]:
        """The first words of this member: its values of everyone's slice, each encoded when its turn comes.

        All owners are served side by side, after itself in turn, each in proportion to its slice. A member that is
        alone closes its slice here. Must be exhausted, but may be left as soon as the exchange is `complete`.
        """
        if self._left is None:
            return
        rank, members = self._terms.rank, self._terms.members
        turns = sorted(
            (at / len(parts), (owner - rank) % (max(members) + 1), owner, offset)
            for owner, parts in self._parts.items()
            for at, offset in enumerate(parts)
        )
        for *_, owner, offset in turns:
            if owner != rank:
                yield from self._send(owner, offset)
            elif len(members) == 1:
                yield from self._close(offset, self._begun)

    def receive(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> list[Outgoing]:
        """Take a part that `sender` sent for this exchange; gives what must be sent because of it.

        Raises `PeerMisbehaved`.
        """
        check_place(self._terms, self._parts, sender, part)
        said: list[Outgoing] = []
        if part.phase == "gather":
            said = self._take_gather(sender, part, payload, now)
        else:
            self._take_result(sender, part, payload)
        self.received_bytes += _frame_bytes(part, payload)
        return said

    def deadline(self) -> float | None:
        """When `due` has to be asked next; None when this member waits for nobody's values."""
        return self._own.deadline() if self._own else None

    def due(self, now: float) -> list[Outgoing]:
        """The messages that must be sent because time has passed: parts that are closed without those that are late.

        First give `receive` all that has come: who stood still for a while has others' values waiting.
        """
        offsets = self._own.due(now) if self._own else []
        return [said for offset in offsets for said in self._close(offset, now)]

    def _send(self, owner: int, offset: int) -> Iterator[Outgoing]:
        if (owner, offset) not in self._missing:
            return
        left = self._view(self._left, owner, offset)
        payload, decoded = encode(left, self._coding(owner, offset, self._terms.gather))
        self._under_way[owner, offset] = payload
        left.sub_(decoded)
        yield from self._say([owner], self._header("gather", owner, offset, self._samples, []), payload)

    def _take_gather(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> list[Outgoing]:
        check_gather(self._terms, sender, part)
        own = self._own
        assert own is not None
        own.check(sender, part.offset, part.samples)
        if own.is_open(part.offset):
            own.add(sender, part.offset, part.samples, decoded_values(sender, payload, self._count(part)))
        own.heard(sender, now)
        return self._close(part.offset, now) if own.closable(part.offset) else []

    def _close(self, offset: int, now: float) -> list[Outgoing]:
        """Hand out the mean of a part of the own slice."""
        assert self._own is not None
        rank = self._terms.rank
        left = self._view(self._left, rank, offset)
        centre = self._view(self._centre, rank, offset)
        mean, samples, left_out = self._own.close(offset, left, centre, now)
        if self._terms.settings.rule.robust:
            owed = self._view(self._owed, rank, offset)
            payload, decoded = encode(mean.add_(owed), self._coding(rank, offset, self._terms.result))
            torch.sub(mean, decoded, out=owed)
            left.zero_()
        else:
            payload, decoded = encode(mean, self._coding(rank, offset, self._terms.result))
            torch.sub(mean, decoded, out=left).mul_(samples / self._samples)
        part = self._header("result", rank, offset, samples, left_out)
        self._apply(part, payload, decoded)
        others = [to for to in (*self._terms.members, *self._terms.listeners) if to != rank]
        return self._say(others, part, payload)

    def _take_result(self, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        place = part.slice, part.offset
        check_result(self._terms, sender, part, awaited=place in self._missing, sent=place in self._under_way)
        count = self._count(part)
        self._apply(part, payload, decoded_values(sender, payload, count))
        sent = self._under_way.pop(place, None)
        if self._terms.rank in part.left_out:
            self.kept_back += count
            if sent is not None:
                self._view(self._left, *place).add_(decode(sent, count))

    def _apply(self, part: SlicePart, payload: bytes | memoryview, decoded: Tensor) -> None:
        self._view(self._mean, part.slice, part.offset).copy_(decoded)
        if self._agreed:
            self._agreed(self._begin(part.slice, part.offset), decoded)
        # The list of those left out is part of the words that everyone must have been told alike.
        said = blake3(bytes_of(part.left_out))
        said.update(payload)
        self._hashes[part.slice, part.offset] = said.digest()
        self._missing.discard((part.slice, part.offset))

    def _count(self, part: SlicePart) -> int:
        return self._parts[part.slice][part.offset]

    def _coding(self, owner: int, offset: int, coding: Coding) -> Coding:
        return EXACT if self._begin(owner, offset) >= self._terms.exact_from else coding

    def _begin(self, owner: int, offset: int) -> int:
        """Where a part begins in the whole vector."""
        return self._terms.slices[owner][0] + offset

    def _view(self, vector: Tensor | None, owner: int, offset: int) -> Tensor:
        assert vector is not None
        begin = self._begin(owner, offset)
        return vector[begin : begin + self._parts[owner][offset]]

    def _header(self, phase: str, owner: int, offset: int, samples: int, left_out: list[int]) -> SlicePart:
        terms = self._terms
        return SlicePart(
            round=terms.round,
            attempt=terms.attempt,
            exchange=terms.exchange,
            phase="gather" if phase == "gather" else "result",
            slice=owner,
            offset=offset,
            samples=samples,
            left_out=left_out,
        )

    def _say(self, to: list[int], part: SlicePart, payload: bytes) -> list[Outgoing]:
        self.sent_bytes += len(to) * _frame_bytes(part, payload)
        return [Outgoing(one, part, payload) for one in to]


def _frame_bytes(part: SlicePart, payload: bytes | memoryview) -> int:
    return 4 + len(header_bytes(part)) + len(payload)
