"""Chunks on their way to peers: calls from the program or the disk, and the blobs that they name, once to each peer.

A blob of more than 1 MiB leaves this machine about once, as the bundle does: peers pass it on to each other. A smaller
one goes from here to each peer that needs it.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from axonp2p.client.run.crew import LeasedCrew
from axonp2p.errors import AxonError, PeerMisbehaved, Unreachable
from axonp2p.jobs.bundle import Bundle, alone
from axonp2p.kinds.map.call_forms import ChunkCalls, PackedCall, PackedPart
from axonp2p.kinds.map.calls.calls_store import CallsStore
from axonp2p.kinds.map.calls.live_calls import LiveCalls
from axonp2p.kinds.map.merge_calls import MergeCalls
from axonp2p.kinds.map.messages import BeginChunk, KeepBlob, UseBlob
from axonp2p.kinds.map.queue_actions import StartChunk
from axonp2p.supervision import cancel_and_wait
from axonp2p.wire.frame import pack_frame

PART = 960 * 1024
LARGEST_SENT = 1024 * 1024
"""Bytes of a blob that is sent to each peer from here."""
MOST_BROUGHT = 128
"""Larger ones that peers keep while no chunk names them; a lease has room for twice as many."""


class ChunkSending:
    """Of one life of the client. Without a store, calls are of the job's own functions.

    `failed(rank, error)` is told why a peer cannot have a blob; a peer that is gone is not told of.
    """

    def __init__(
        self,
        blobs: Path,
        failed: Callable[[int, AxonError], None],
        store: CallsStore | None = None,
        live: LiveCalls | None = None,
        merges: MergeCalls | None = None,
    ) -> None:
        """`blobs`: the folder of the blobs that calls name."""
        self._blobs = blobs
        self._store = store
        self._live = live
        self._merges = merges
        self._failed = failed
        self._functions: dict[str, PackedPart] = {}
        self._sending: dict[int, BlobSending] = {}
        """By rank."""
        self._brought: OrderedDict[str, Bundle] = OrderedDict()
        """Large blobs by name; those that were needed last are last."""
        self._named: dict[tuple[int, int], list[str]] = {}
        """The blobs of each chunk that is not over, by rank and chunk."""

    async def start(self, action: StartChunk, crew: LeasedCrew) -> None:
        """Send a chunk; waits for the disk alone."""
        items = list(action.items)
        parts = await self._parts(items)
        if parts is None:
            crew.tell(action.rank, pack_frame(BeginChunk(chunk=action.chunk, items=items)))
            return
        functions: dict[PackedPart, int] = {}
        calls = []
        for function, arguments in parts:
            calls.append(PackedCall(functions.setdefault(function, len(functions)), arguments))
        names = dict.fromkeys(name for part in functions for name in part.names)
        names |= dict.fromkeys(name for call in calls for name in call.arguments.names)
        if action.rank not in self._sending:
            self._sending[action.rank] = BlobSending(action.rank, crew, self._blobs, self._content, self._failed)
        self._named[action.rank, action.chunk] = list(names)
        self._sending[action.rank].need(names)
        payload = msgspec.msgpack.encode(ChunkCalls(list(functions), calls))
        begin = BeginChunk(chunk=action.chunk, items=items, blobs=list(names))
        crew.tell(action.rank, pack_frame(begin, payload))

    def lacking(self, rank: int, names: Iterable[str]) -> None:
        """A peer has dropped these. Raises `PeerMisbehaved` when it never had them."""
        sending = self._sending.get(rank)
        if sending is None or not sending.resend(names):
            raise PeerMisbehaved("it asks for blobs that it was never sent")

    def over(self, rank: int, chunk: int, crew: LeasedCrew) -> None:
        """A chunk is over: large blobs that none names any more go, where there are too many."""
        if not self._named.pop((rank, chunk), None) or len(self._brought) <= MOST_BROUGHT:
            return
        needed = {name for names in self._named.values() for name in names}
        for name in [name for name in self._brought if name not in needed][: len(self._brought) - MOST_BROUGHT]:
            crew.drop(self._brought.pop(name).blob.name)
            for sending in self._sending.values():
                sending.forget(name)

    async def _content(self, name: str, path: Path) -> Bundle:
        """A large blob, ready to be brought. Blocks nobody."""
        if name not in self._brought:
            self._brought[name] = await asyncio.to_thread(alone, path)
        self._brought.move_to_end(name)
        return self._brought[name]

    async def drop(self, rank: int) -> None:
        """That peer is gone."""
        for named in [named for named in self._named if named[0] == rank]:
            del self._named[named]
        if sending := self._sending.pop(rank, None):
            await sending.end()

    async def drop_all(self) -> None:
        """Nothing more is sent."""
        for rank in list(self._sending):
            await self.drop(rank)
        if self._merges:
            await asyncio.to_thread(self._merges.end)

    async def _parts(self, items: list[int]) -> list[tuple[PackedPart, PackedPart]] | None:
        """The function and the arguments of each; None: they are calls of the job's own function for items."""
        if self._merges and self._merges.makes(items):
            return await self._merges.parts(items)
        if self._store is None:
            return None
        given = self._live.given_out(items) if self._live else [None] * len(items)
        missing = [item for item, call in zip(items, given, strict=True) if call is None]
        read = await asyncio.to_thread(self._read, missing) if missing else {}
        return [
            (call.function, call.arguments) if call else read[item] for item, call in zip(items, given, strict=True)
        ]

    def _read(self, items: list[int]) -> dict[int, tuple[PackedPart, PackedPart]]:
        assert self._store is not None
        found = {}
        for item, (name, arguments) in zip(items, self._store.read(items), strict=True):
            if name not in self._functions:
                self._functions[name] = self._store.function(name)
            found[item] = (self._functions[name], arguments)
        return found


class BlobSending:
    """Blobs for one peer, in a task that runs while there are any."""

    def __init__(
        self,
        rank: int,
        crew: LeasedCrew,
        blobs: Path,
        content: Callable[[str, Path], Awaitable[Bundle]],
        failed: Callable[[int, AxonError], None],
    ) -> None:
        self._rank = rank
        self._crew = crew
        self._blobs = blobs
        self._content = content
        self._failed = failed
        self._sent: set[str] = set()
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    def need(self, names: Iterable[str]) -> None:
        """The peer needs these: those that it was not sent are sent now."""
        for name in names:
            if name not in self._sent:
                self._sent.add(name)
                self._waiting[name] = None
        self._go_on()

    def resend(self, names: Iterable[str]) -> bool:
        """The peer has dropped these; false: it was not sent one of them."""
        wanted = list(names)
        if not self._sent.issuperset(wanted):
            return False
        self._waiting |= dict.fromkeys(wanted)
        self._go_on()
        return True

    def forget(self, name: str) -> None:
        """The peer has it no more."""
        self._sent.discard(name)

    async def end(self) -> None:
        """Send no more."""
        if self._task:
            await cancel_and_wait(self._task)

    def _go_on(self) -> None:
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._send_all(), name=f"blobs for {self._rank}")

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                name = next(iter(self._waiting))
                await self._send(name, self._blobs / name)
                self._waiting.pop(name, None)
        except Unreachable:
            return  # its lease says that it is gone
        except AxonError as error:
            self._failed(self._rank, error)

    async def _send(self, name: str, path: Path) -> None:
        if (await asyncio.to_thread(path.stat)).st_size > LARGEST_SENT:
            content = await self._content(name, path)
            await self._crew.bring(self._rank, content)
            self._crew.tell(self._rank, pack_frame(UseBlob(name=name, file=content.blob.name.hex())))
            return
        offset = 0
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while offset < size or offset == size == 0:
                part = await asyncio.to_thread(file.read, PART)
                await self._crew.send(self._rank, pack_frame(KeepBlob(name=name, size=size, offset=offset), part))
                offset += len(part)
                if not part:
                    return
