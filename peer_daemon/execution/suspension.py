"""A lease's worker, stopped where it stands while its owner needs the machine; the client is told, and waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from axonp2p.jobs.messages import WorkerPaused, WorkerResumed
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.supervision import cancel_and_wait
from peer_daemon.links.client_sender import ClientLine


class Suspension:
    """Whether one worker may work now."""

    def __init__(self, session: ClientLine) -> None:
        self._session = session
        self._worker: SandboxedWorker | None = None
        self._beside: SandboxedWorker | None = None
        """The sandboxed process that unpacks a package of the job."""
        self._reason = ""
        self._told = ""
        self._telling: asyncio.Task[None] | None = None
        self._going = asyncio.Event()
        self._going.set()
        self._went_at = asyncio.get_running_loop().time()

    @property
    def frozen(self) -> bool:
        """Whether it stands still."""
        return bool(self._reason)

    async def started(self, worker: SandboxedWorker) -> None:
        """There is a worker now; it stands still at once when it has to."""
        self._worker = worker
        if self._reason:
            await worker.freeze()
            self._tell()

    async def begin(self, reason: str) -> None:
        """Stop it; returns when it stands still."""
        if not self._reason:
            self._reason = reason
            self._going.clear()
            if self._beside is not None:
                await self._beside.freeze()
            if self._worker is not None:
                await self._worker.freeze()
                self._tell()

    async def end(self) -> None:
        """Let it go on."""
        if self._reason:
            self._reason = ""
            try:
                if self._beside is not None:
                    await self._beside.thaw()
                if self._worker is not None:
                    await self._worker.thaw()
                    self._tell()
            finally:
                self._went_at = asyncio.get_running_loop().time()
                self._going.set()

    @asynccontextmanager
    async def also(self, beside: SandboxedWorker) -> AsyncIterator[None]:
        """Meanwhile this one stands still whenever the worker does."""
        self._beside = beside
        try:
            if self._reason:
                await beside.freeze()
            yield
        finally:
            self._beside = None

    def client_is_back(self) -> None:
        """The session that is there now has not heard of it."""
        self._told = ""
        if self._reason and self._worker is not None:
            self._tell()

    async def within(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        """`do`, which may take so long while the worker goes. Raises `TimeoutError`. It may be begun more than once."""
        while True:
            await self._going.wait()
            try:
                async with asyncio.timeout(seconds):
                    return await do()
            except TimeoutError:
                if self._going.is_set() and asyncio.get_running_loop().time() - self._went_at >= seconds:
                    raise

    async def close(self) -> None:
        """Tell nothing more."""
        await cancel_and_wait(self._telling)

    def _tell(self) -> None:
        # Not awaited: a client that reads slowly must not keep its worker running.
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_client())

    async def _tell_client(self) -> None:
        while self._told != self._reason:
            self._told = self._reason
            await self._session.send(WorkerPaused(reason=self._told) if self._told else WorkerResumed())
