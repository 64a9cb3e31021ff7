"""What a swarm does in a whole network, a dying one and a lossy one, in figures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.laboratory.home_links import Address
from tests.laboratory.real_loop import RealLoop
from tests.laboratory.swarms import AxonSwarm, Swarm
from tests.laboratory.virtual_loop import VirtualLoop

AT_A_TIME = {VirtualLoop: 50, RealLoop: 10}
"""Operations side by side. All nodes share one process: with real time, more would measure how busy it is."""
JOINS_AT_A_TIME = 10
KNOWN_AT_FIRST = 3
SETTLE_S = 30.0
PEERS_ASKED_FOR = 20


@dataclass
class Figures:
    """Of one kind of operation: seconds each took, how many ended well, and what was sent meanwhile."""

    seconds: list[float] = field(default_factory=list)
    good: int = 0
    raised: int = 0
    requests: float = 0.0
    """A mean over the operations: of the asking node for a query, else of the whole network."""
    bytes: float = 0.0
    superseded: int = 0
    """Rows in answers to queries of which the peer has said a newer one since. True, but of yesterday."""

    def summary(self) -> dict[str, float]:
        """For --json: p50 and p95 in seconds, share of good ones, requests and bytes for one operation."""
        ordered = sorted(self.seconds)
        return {
            "p50_s": round(ordered[len(ordered) // 2], 3),
            "p95_s": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
            "good": round(self.good / len(ordered), 4),
            "raised": self.raised,
            "superseded": self.superseded,
            "requests": round(self.requests, 1),
            "bytes": round(self.bytes),
        }


class Trial:
    """One swarm on one loop."""

    def __init__(self, loop: VirtualLoop | RealLoop, swarm: Swarm, seed: int) -> None:
        self.loop = loop
        self.swarm = swarm
        self.chance = random.Random(seed)
        self.alive: list[int] = []
        self.items: list[int] = []

    async def build(self, size: int, items: int) -> tuple[Figures, Figures]:
        """Join all, a few at a time, each knowing three; then put the items. Figures of joining and of putting."""
        await self.swarm.join(*self._home(0), [])
        self.alive.append(0)
        joined = Figures()
        for first in range(1, size, JOINS_AT_A_TIME):
            members = list(range(first, min(size, first + JOINS_AT_A_TIME)))
            known = [self.swarm.addresses[self.chance.choice(self.alive)] for _ in range(KNOWN_AT_FIRST)]
            # Nodes take their numbers as they begin to listen, which none of them waits for here.
            await self.measure(joined, [self._joining(member, known) for member in members])
            self.alive += members
        await asyncio.sleep(SETTLE_S if isinstance(self.loop, VirtualLoop) else 1.0)
        self.items = self.chance.sample(self.alive, min(items, size))
        return joined, await self._all([self._putting(member) for member in self.items])

    def kill(self, share: float) -> None:
        """So many are silent from now on, all in one moment."""
        for member in self.chance.sample(self.alive, round(len(self.alive) * share)):
            self.alive.remove(member)
            self.loop.silence(self.swarm.addresses[member])

    async def gets(self, count: int) -> Figures:
        """Different nodes ask for chance items that they do not hold."""
        pairs: list[tuple[int, int]] = []
        while len(pairs) < count:
            member, item = self.chance.choice(self.alive), self.chance.choice(self.items)
            if not self.swarm.knows(member, item):
                pairs.append((member, item))
        return await self._all([self.getting(member, item) for member, item in pairs])

    async def puts(self, count: int) -> Figures:
        """Nodes put newer versions of their items."""
        members = [member for member in self.items if member in set(self.alive)][:count]
        return await self._all([self._putting(member) for member in members])

    async def queries(self, count: int) -> Figures:
        """One after the other, so that what each sends can be told apart."""
        swarm = self.swarm
        assert isinstance(swarm, AxonSwarm)
        figures = Figures()
        for member in self.chance.sample(self.alive, min(count, len(self.alive))):
            before = self.loop.requests_by[swarm.addresses[member]]
            began, sent = self.loop.time(), self.loop.sent["bytes"]
            found, true, superseded = await swarm.query(member, PEERS_ASKED_FOR)
            figures.seconds.append(self.loop.time() - began)
            figures.good += found >= PEERS_ASKED_FOR and true
            figures.superseded += superseded
            figures.requests += self.loop.requests_by[swarm.addresses[member]] - before
            figures.bytes += self.loop.sent["bytes"] - sent
            await asyncio.sleep(0.2)
        figures.requests /= len(figures.seconds)
        figures.bytes /= len(figures.seconds)
        return figures

    async def idle(self, seconds: float) -> float:
        """Requests a second and node while nobody wants anything."""
        before = self.loop.sent["requests"]
        await asyncio.sleep(seconds)
        return (self.loop.sent["requests"] - before) / seconds / len(self.alive)

    def getting(self, member: int, item: int) -> Callable[[], Awaitable[bool]]:
        """For `measure`: this node asks for this item."""
        return lambda: self.swarm.get(member, item)

    async def measure(self, figures: Figures, operations: Sequence[Callable[[], Awaitable[bool]]]) -> None:
        """Side by side. The package also raises where it should say that it found nobody: that counts as not good."""

        async def one(operation: Callable[[], Awaitable[bool]]) -> None:
            began = self.loop.time()
            try:
                good = await operation()
                figures.good += good  # apart from the line above: others count while this one waits
            except Exception:  # the package lets through whatever a stranger's bytes raise
                figures.raised += 1
            figures.seconds.append(self.loop.time() - began)

        done = len(figures.seconds)
        requests, size = self.loop.sent["requests"], self.loop.sent["bytes"]
        await asyncio.gather(*map(one, operations))
        total = done + len(operations)
        figures.requests = (figures.requests * done + self.loop.sent["requests"] - requests) / total
        figures.bytes = (figures.bytes * done + self.loop.sent["bytes"] - size) / total

    def _joining(self, member: int, known: Sequence[Address]) -> Callable[[], Awaitable[bool]]:
        return lambda: self.swarm.join(*self._home(member), known)

    def _putting(self, member: int) -> Callable[[], Awaitable[bool]]:
        return lambda: self.swarm.put(member)

    def _home(self, member: int) -> tuple[str, int]:
        if isinstance(self.loop, RealLoop):
            return "127.0.0.1", 0
        return f"{20 + member // 250}.{member % 250}.7.1", 7070  # each in a network of its own

    async def _all(self, operations: Sequence[Callable[[], Awaitable[bool]]]) -> Figures:
        figures = Figures()
        together = AT_A_TIME[type(self.loop)]
        for first in range(0, len(operations), together):
            await self.measure(figures, operations[first : first + together])
        return figures
