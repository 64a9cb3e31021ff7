"""The weights' way home: from one member, in parts, with the hash that most members give, and with the right values.

A model file is made by each member alone, so all are asked for its hash, and the majority's file is fetched. Then
`fits` says whether its values are those of the accepted state, where the client has that: if they are not, nobody who
named this file is asked again, and what most of the others name is taken.

A member is given up that sends nothing of use for `PATIENCE_S`, whatever it says meanwhile, or, where another one can
be asked, that is slower than `LEAST_BYTES_S`. Time in which its owner stops it does not count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved, Unreachable
from axonp2p.training.messages import FilePart, SendFile

PATIENCE_S = 60.0
"""How long a member may bring nothing of the file before another one is asked."""
LEAST_BYTES_S = 16 * 1024
"""The slowest that a member may be where there is another one, in bytes a second."""
QUEUE_ROOM = 8

_Heard = tuple[FilePart, memoryview] | AxonError | None
"""None: the member stands still, or goes on."""


class FileFetch:
    """One file on its way. Give it what members say with `heard` and `lost` while `into` runs."""

    def __init__(
        self,
        wanted: SendFile,
        ask: Callable[[int, SendFile], None],
        limit: int,
        still: Collection[int] = (),
        fits: Callable[[Path], bool] | None = None,
    ) -> None:
        """`still` are at any moment those whose owners let them stand still; tell of a change with `stirred`.

        `fits` says whether a file holds the accepted state; it may block.
        """
        self._fits = fits
        self._wanted = wanted
        self._claim = msgspec.structs.replace(wanted, whole=False)
        self._ask = ask
        self._limit = limit
        self._still = still
        self._untried: list[int] = []
        self._source: int | None = None
        self._gave: int | None = None
        """Who sent the file that came last."""
        self._arrived: asyncio.Queue[_Heard] = asyncio.Queue(QUEUE_ROOM)
        self._claims: dict[int, bytes] = {}
        self._claimed = asyncio.Condition()
        self._lost: set[int] = set()

    async def heard(self, rank: int, part: FilePart, payload: memoryview) -> None:
        """A part came from a member; waits while the disk is behind."""
        if part.what != "model":
            return
        if part.offset == 0:
            async with self._claimed:
                self._claims.setdefault(rank, part.sha256)  # who names another one later has no second vote
                self._claimed.notify_all()
        if rank == self._source:
            await self._arrived.put((part, payload))

    async def lost(self, rank: int, reason: str) -> None:
        """A member has gone."""
        async with self._claimed:
            self._lost.add(rank)
            self._claimed.notify_all()
        if rank == self._source:
            await self._arrived.put(Unreachable(reason))

    def stirred(self, rank: int) -> None:
        """A member stands still from now on, or goes on."""
        if rank == self._source and self._arrived.empty():
            self._arrived.put_nowait(None)

    async def into(self, members: Sequence[int], target: Path) -> bytes:
        """Write the file to `target`; gives its SHA-256. Raises `JobFailed` when nobody can give it."""
        left = sorted(members, key=lambda rank: rank in self._still)
        while True:
            voters = self._voters(left)
            claim = None if len(voters) < 2 else await self._claimed_by_most(left)
            # What no second one is there to name is compared with the accepted state alone.
            givers = (
                [rank for rank in left if self._claims.get(rank) == claim]
                if claim
                else voters + [rank for rank in left if rank not in voters]
            )
            sha256 = await self._from_any(givers, target, claim)
            if self._fits is None or await asyncio.to_thread(self._fits, target):
                return sha256
            left = [rank for rank in left if rank != self._gave and self._claims.get(rank) != sha256]
            if not left:
                raise JobFailed(
                    "the peers hand out weights that are not those of the accepted state",
                    fix="axon resume JOB goes on from that state, which is on this disk, with other peers",
                )

    def _voters(self, members: Sequence[int]) -> list[int]:
        """Of whom most have to name a file: all that are there, without those whose owners need the machine."""
        there = [rank for rank in members if rank not in self._lost]
        return [rank for rank in there if rank not in self._still] or there[:1]

    async def _claimed_by_most(self, members: Sequence[int]) -> bytes:
        for rank in self._voters(members):
            if rank not in self._claims:
                self._ask(rank, self._claim)

        def said() -> tuple[list[int], Counter[bytes]]:
            voters = self._voters(members)
            return voters, Counter(self._claims[rank] for rank in voters if rank in self._claims)

        def decided() -> bool:
            voters, claims = said()
            return claims.total() == len(voters) or max(claims.values(), default=0) * 2 > len(voters)

        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S), self._claimed:
                await self._claimed.wait_for(decided)
        voters, claims = said()
        if not claims:
            raise JobFailed("no peer could hand out the model", cause=f"nobody answered for {PATIENCE_S:g} s")
        claim, votes = claims.most_common(1)[0]
        if 2 * votes <= len(voters):
            raise JobFailed(
                "the peers hand out different weights, and no majority agrees on one",
                cause=f"{len(voters)} peers, {len(claims)} different files",
                fix="submit again; with more peers a majority is easier to have",
            )
        return claim

    async def _from_any(self, members: Sequence[int], target: Path, expected: bytes | None) -> bytes:
        reasons = []
        self._untried = list(members)
        for rank in members:
            self._untried.remove(rank)
            self._source, self._arrived = rank, asyncio.Queue(QUEUE_ROOM)
            try:
                if rank in self._lost:
                    raise Unreachable(f"member {rank} has gone")
                self._ask(rank, self._wanted)
                sha256 = await self._download(target, expected)
                self._gave = rank
                return sha256
            except AxonError as error:
                reasons.append(error.message)
            finally:
                self._source = None
                while not self._arrived.empty():  # lets go of a session that waits for room
                    self._arrived.get_nowait()
        raise JobFailed("no peer could hand out the model", cause="; ".join(dict.fromkeys(reasons)))

    async def _download(self, target: Path, expected: bytes | None) -> bytes:
        hasher = hashlib.sha256()
        position, first = 0, None
        silent_s = waited_s = 0.0
        with target.open("wb") as file:
            while first is None or position < first.total:
                (part, payload), seconds = await self._next(PATIENCE_S - silent_s)
                silent_s, waited_s = silent_s + seconds, waited_s + seconds
                if self._others and waited_s > PATIENCE_S + position / LEAST_BYTES_S:
                    raise Unreachable(f"the file came at less than {LEAST_BYTES_S // 1024} KiB/s")
                if part.total and not part.offset and not payload:
                    continue  # the answer to who asked for its hash alone
                if part == first or (first is None and part.offset):
                    continue  # of what it was asked for before: for the hash, or when it was given up as silent
                first = first or part
                fits = (part.offset, part.total, part.sha256) == (position, first.total, first.sha256)
                if not fits or position + len(payload) > part.total or part.total > self._limit:
                    raise PeerMisbehaved("the parts of the file do not fit together")
                if not payload and part.total:
                    raise PeerMisbehaved("an empty part of a file")
                await asyncio.to_thread(_take, file, hasher.update, payload)
                position += len(payload)
                silent_s = 0.0
        found = hasher.digest()
        if found != (expected or first.sha256):
            raise PeerMisbehaved("the bytes of the file do not have the hash that they should")
        return found

    async def _next(self, patience_s: float) -> tuple[tuple[FilePart, memoryview], float]:
        """What it says next, and for how many seconds it was waited for that count."""
        now = asyncio.get_running_loop().time
        heard, counted = None, 0.0
        while heard is None:
            counts, begun = not self._waits_for_the_owner, now()
            try:
                async with asyncio.timeout(max(0.0, patience_s - counted) if counts else None):
                    heard = await self._arrived.get()
            except TimeoutError as error:
                raise _silent() from error
            counted += now() - begun if counts else 0.0
        if counted > patience_s:
            raise _silent()  # it says something all the time, and nothing of the file
        if isinstance(heard, AxonError):
            raise heard
        return heard, counted

    @property
    def _others(self) -> set[int]:
        """Who could be asked instead, now."""
        return set(self._untried) - self._lost - set(self._still)

    @property
    def _waits_for_the_owner(self) -> bool:
        """Whether the rest has to come from this member, though it stands still now: the job is done otherwise."""
        return self._source in self._still and not self._others


def _silent() -> Unreachable:
    return Unreachable(f"no part of the file came for {PATIENCE_S:g} s")


def _take(file: BinaryIO, update: Callable[[memoryview], None], payload: memoryview) -> None:
    update(payload)
    file.write(payload)
