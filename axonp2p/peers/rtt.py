"""How far candidates are, measured side by side before anything is acquired.

The ping that opens the TLS connection is not counted (`HttpCaller.round_trip` sees to it); the shortest of the next
ones is the distance: queues and a busy loop here only ever add to it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.selection import Distance
from axonp2p.supervision import cancel_and_wait
from axonp2p.transport.dial_policy import NO_ADDRESS, DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.ways import Way, Whereabouts, patience, ways_to

PINGS = 3
AT_ONCE = 32
"""Measured side by side; many more would measure each other's handshakes."""
TIMEOUT_S = 5.0
"""For one address, all pings together."""
LATECOMERS_S = 1.0
"""How long to wait for one more answer when there are enough already."""

_NOT_WAITED_FOR = Distance(None, f"no answer within {LATECOMERS_S:g} s of the others", given_up=True)


@dataclass(frozen=True)
class PingTarget:
    """A peer by its name, and where it says it can be reached."""

    name: str
    where: Whereabouts


async def measure(
    targets: Mapping[PeerId, PingTarget], policy: DialPolicy, *, enough: int = 0, near_s: float = math.inf
) -> dict[PeerId, Distance]:
    """The distance of every target. Raises nothing of the family: a peer that does not answer has a reason instead.

    Once `enough` of them (none: all) have answered within `near_s` seconds, the others are waited for only shortly.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def one(target: PingTarget) -> Distance:
        async with room:
            return await _distance(target, policy)

    tasks = {peer: asyncio.create_task(one(target)) for peer, target in targets.items()}
    pending = set(tasks.values())
    limit = None
    try:
        while pending:
            done, pending = await asyncio.wait(pending, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            near = sum(_is_near(task, near_s) for task in tasks.values())
            limit = LATECOMERS_S if enough and near >= enough else None
        return {peer: task.result() if task.done() else _NOT_WAITED_FOR for peer, task in tasks.items()}
    finally:
        await cancel_and_wait(*pending)


def _is_near(task: asyncio.Task[Distance], near_s: float) -> bool:
    seconds = task.result().seconds if task.done() else None
    return seconds is not None and seconds <= near_s


async def _distance(target: PingTarget, policy: DialPolicy) -> Distance:
    reason = NO_ADDRESS
    ways = ways_to(target.where, policy)
    for way in ways:
        limit = patience(way, ways, TIMEOUT_S)
        try:
            async with asyncio.timeout(limit):
                return Distance(await _shortest(way, target.name), relay="" if way.relay is None else str(way))
        except TimeoutError:
            reason = f"no answer from {way} in {limit:g} s"
        except AxonError as error:
            reason = error.message if way.relay is None else error.in_a_line
    return Distance(None, policy.told(reason))


async def _shortest(way: Way, name: str) -> float:
    async with HttpCaller(way.address, called=f"peer {name}", relay=way.relay) as caller:
        return min([await caller.round_trip() for _ in range(PINGS)])
