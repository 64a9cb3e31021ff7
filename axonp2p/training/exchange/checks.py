"""The messages allowed between members of an exchange: every breach is a `PeerMisbehaved` that names the rank."""

from __future__ import annotations

from collections.abc import Container, Mapping

import torch
from torch import Tensor

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.encoding import decode
from axonp2p.training.exchange.terms import Terms
from axonp2p.training.messages import SlicePart

LARGEST = 2.0**101
"""No difference of weights is near it; below it, no weighted sum of differences leaves what float32 can hold."""


def check_place(terms: Terms, offsets: Mapping[int, Container[int]], sender: int, part: SlicePart) -> None:
    """Is it a part of this exchange, from one of the others? `offsets`: where each member's slice has parts."""
    if (part.round, part.attempt, part.exchange) != terms.key:
        raise PeerMisbehaved(f"rank {sender} sent a part of another exchange")
    if sender == terms.rank or sender not in terms.slices or part.slice not in terms.slices:
        raise PeerMisbehaved(f"rank {sender} is not part of this exchange, or names a slice that is not")
    if part.offset not in offsets[part.slice]:
        begin, end = terms.slices[part.slice]
        raise PeerMisbehaved(f"rank {sender} sent a part at {part.offset} of a slice of {end - begin} values")


def check_gather(terms: Terms, sender: int, part: SlicePart) -> None:
    """May the sender give us these values?"""
    if part.slice != terms.rank:
        raise PeerMisbehaved(f"rank {sender} sent values of rank {part.slice}'s slice to rank {terms.rank}")
    if not 0 < part.samples <= terms.most_samples:
        raise PeerMisbehaved(f"rank {sender} claims {part.samples} samples of at most {terms.most_samples}")
    if part.left_out:
        raise PeerMisbehaved(f"rank {sender} leaves members out of its own values")


def check_result(terms: Terms, sender: int, part: SlicePart, *, awaited: bool, sent: bool) -> None:
    """May the sender give us this mean? `awaited`: it has not yet; `sent`: our values have gone out to it."""
    left_out = set(part.left_out)
    present = len(terms.members) - len(left_out)
    if part.slice != sender:
        raise PeerMisbehaved(f"rank {sender} sent a result of rank {part.slice}'s slice, which it does not own")
    if not awaited:
        raise PeerMisbehaved(f"rank {sender} sent its result at {part.offset} twice")
    if part.left_out != sorted(left_out) or not left_out <= set(terms.members) or sender in left_out:
        raise PeerMisbehaved(f"rank {sender} leaves out {part.left_out}, which it cannot")
    if present < terms.fewest or not present <= part.samples <= present * terms.most_samples:
        raise PeerMisbehaved(f"rank {sender} sent a mean of {present} members with {part.samples} samples")
    if not sent and terms.rank in set(terms.members) - left_out:
        raise PeerMisbehaved(f"rank {sender} sent a mean with values at {part.offset} that it cannot have")


def decoded_values(sender: int, payload: bytes | memoryview, count: int) -> Tensor:
    """The `count` values in a payload from another member."""
    try:
        values = decode(payload, count)
    except ValueError as error:
        raise PeerMisbehaved(f"rank {sender} sent values that cannot be read", cause=str(error)) from error
    low, high = torch.aminmax(values)
    if not (float(low) >= -LARGEST and float(high) <= LARGEST):
        raise PeerMisbehaved(f"rank {sender} sent values that are too large to be true")
    return values
