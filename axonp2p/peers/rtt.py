"""How far candidates are, measured side by side before anything is acquired.

The ping that opens the TLS connection is not counted (`HttpCaller.round_trip` sees to it); the shortest of the next
ones is the distance: queues and a busy loop here only ever add to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.selection import Distance
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http_caller import HttpCaller

PINGS = 3
AT_ONCE = 16
"""Measured side by side; more would measure each other's handshakes."""
TIMEOUT_S = 5.0
"""For one address, all pings together."""


@dataclass(frozen=True)
class Target:
    """Where a peer says it can be reached, and the certificate it must show there."""

    name: str
    addresses: Sequence[str]
    fingerprint: bytes


async def measure(targets: Mapping[PeerId, Target]) -> dict[PeerId, Distance]:
    """The distance of every target. Raises nothing of the family: who does not answer has a reason instead."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(target: Target) -> Distance:
        async with room:
            return await _distance(target)

    distances = await asyncio.gather(*(one(target) for target in targets.values()))
    return dict(zip(targets, distances, strict=True))


async def _distance(target: Target) -> Distance:
    reason = "its row names no address"
    for address in target.addresses:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return Distance(await _shortest(address, target))
        except TimeoutError:
            reason = f"no answer from {address} in {TIMEOUT_S:g} s"
        except AxonError as error:
            reason = error.message
    return Distance(None, reason)


async def _shortest(address: str, target: Target) -> float:
    pinned = PinnedAddress.of(address, target.fingerprint)
    async with HttpCaller(pinned, called=f"peer {target.name}") as caller:
        return min([await caller.round_trip() for _ in range(PINGS)])
