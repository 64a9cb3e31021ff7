"""One pair of members: what is to be sent, what was received, and the session that carries it at present."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from axonp2p.errors import AxonError, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.transport.messages import Carry
from axonp2p.transport.outbox import Outbox
from axonp2p.transport.session import Session

log = get_logger(__name__)


@dataclass(frozen=True)
class MeshMember:
    """One member of a job, as the others may reach it."""

    rank: int
    peer: PeerId
    name: str
    addresses: list[str]
    certificate: bytes
    reservation: str = ""
    """Of the member's own lease; empty when it is the same as ours."""
    relays: Sequence[str] = ()
    """Relays that hold a connection of it."""
    dialable: bool | None = None
    """Whether others could dial it; None while nobody has tried."""

    def is_still(self, other: MeshMember) -> bool:
        """Whether `other` is the same member, perhaps at other addresses: a peer hired anew starts from nothing."""
        return (self.rank, self.peer, self.reservation) == (other.rank, other.peer, other.reservation)


class Road(Protocol):
    """How the links of a mesh share the line of their machine."""

    async def turn(self, link: Hashable, count: int) -> None:
        """Wait until so many bytes may be sent on that link."""
        ...

    def went(self, rank: int, count: int) -> None:
        """So many bytes that were put for that member have left its queue."""
        ...

    def opened(self, session: Session) -> None:
        """A link uses that session from now on."""
        ...


class Link:
    """The traffic with one member, over one session after another."""

    def __init__(self, member: MeshMember, deliver: Callable[[int, memoryview], Awaitable[None]], road: Road) -> None:
        self.member = member
        self.wanted = asyncio.Event()
        """Set once there is something to carry."""
        self.up = asyncio.Event()
        """Set while a session carries it."""
        self.down = asyncio.Event()
        """Set after a session was cut, until there is another."""
        self.lost = ""
        """Why there will be no further session; empty while there may be."""
        self._deliver = deliver
        self._road = road
        self._outbox = Outbox()
        self._received = 0
        self._session: Session | None = None
        self._news = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, payload: bytes | memoryview) -> None:
        """Queue one message, however many wait. Raises `Unreachable` when the member is lost."""
        if self.lost:
            raise Unreachable(f"{self.member.name} is lost", cause=self.lost)
        self._outbox.put(payload)
        self._news.set()
        self.wanted.set()

    def attach(self, session: Session) -> int:
        """From now on only this session counts. Returns how many messages were received so far."""
        if self._session is not None:
            self._start(self._session.close())
        self._session = session
        self._road.opened(session)
        self.down.clear()
        self.wanted.set()
        self.up.set()
        return self._received

    def detach(self, session: Session) -> None:
        """This session carries nothing any more; harmless when another has taken its place."""
        if self._session is session and self.up.is_set():
            self.up.clear()
            self.down.set()

    async def serve(self, session: Session, received: int) -> None:
        """Carry both ways until the session ends. `received` is how many of our messages the other side has had.

        Raises `PeerMisbehaved` when that cannot be.
        """
        self._outbox.resume(received)
        self._start(self._receive(session))
        sender = asyncio.create_task(self._send(session, received))
        try:
            await session.ended.wait()
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    def give_up(self, reason: str) -> None:
        """There will be no further session: whoever puts more is told."""
        self.lost = self.lost or reason

    async def close(self) -> None:
        """Give up, and end the session."""
        self.give_up("the link was closed")
        if self._session is not None:
            await self._session.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, session: Session, received: int) -> None:
        carried_from = session.sent_frames
        while self._session is session:
            following = self._outbox.next()
            if following is None:
                self._news.clear()
                await self._news.wait()
                continue
            payload, first_time = following
            if first_time:
                self._road.went(self.member.rank, len(payload))
            await self._road.turn(self, len(payload))
            await session.send(Carry(), payload, bulk=True)
            # The last one that the other side took may not have come to be counted when the line is cut.
            self._outbox.received(received + session.taken_frames - carried_from - 1)

    async def _receive(self, session: Session) -> None:
        # Goes on after a cut: what had arrived is delivered, unless another session has come to send it again.
        while True:
            try:
                _, payload = await session.receive(Carry)
            except AxonError:
                return
            async with self._delivering:
                if self._session is not session:
                    return
                self._received += 1
                try:
                    await self._deliver(self.member.rank, payload)
                except AxonError as error:
                    log.info("link closed: nobody takes its messages", member=self.member.name, reason=error.message)
                    self.give_up(error.message)
                    await session.close()
                    return

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
