"""One pair of members: what is to be sent, what was received, and the session that carries it at present."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from axonp2p.errors import AxonError, MalformedMessage, PeerMisbehaved, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, in_background
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.flow.window import BULK_BYTES
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.mesh.link_lanes import LaneShaper, LinkLanes
from axonp2p.transport.mesh.outbox import LinkOutbox
from axonp2p.transport.messages import Carry, LaneWord
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import Message

log = get_logger(__name__)

WORDS_A_SECOND, WORDS_AT_ONCE = 500.0, 2000.0
"""Messages beside what is carried that are dealt with from one member: at 256 KiB a piece, a bundle at a gigabit/s."""


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


class LinkShaper(LaneShaper, Protocol):
    """How the links of a mesh share the line of their machine."""

    async def turn(self, link: Hashable, count: int) -> None:
        """Wait until so many bytes may be sent on that link."""
        ...

    async def word(self, count: int) -> None:
        """Wait until a small message may be sent, which is at once but in a flood of them."""
        ...

    def went(self, rank: int, count: int) -> None:
        """So many bytes that were put for that member have left its queue."""
        ...

    def opened(self, session: Session) -> None:
        """A link uses that session from now on."""
        ...


class LinkCompanion(Protocol):
    """A part with words of its own with the members, on the same links: words lost with a link are its own affair."""

    kinds: Any
    """The union of the messages that it hears."""

    def up(self, rank: int) -> None:
        """From now on `Link.say` reaches that member. Said again after a cut."""
        ...

    def down(self, rank: int) -> None:
        """Messages that were on the way to that member or from it may be lost."""
        ...

    async def heard(self, rank: int, message: Message, payload: memoryview) -> None:
        """A member said something; more is read from it when this returns. May raise what closes the link."""
        ...


class Link:
    """The traffic with one member, over one session after another."""

    def __init__(
        self,
        member: MeshMember,
        deliver: Callable[[int, memoryview], Awaitable[None]],
        link_shaper: LinkShaper,
        beside: LinkCompanion | None = None,
        lanes: BulkLanes | None = None,
    ) -> None:
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
        self._link_shaper = link_shaper
        self._beside = beside
        self._all_lanes = lanes
        self._lanes: LinkLanes | None = None
        kinds: Any = Carry if lanes is None else Carry | LaneWord
        self._kinds: Any = kinds if beside is None else kinds | beside.kinds
        self._serving: Session | None = None
        self._outbox = LinkOutbox()
        self._received = 0
        self._session: Session | None = None
        self._news = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._words = RateLimit(WORDS_A_SECOND, WORDS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, payload: bytes | memoryview) -> None:
        """Queue one message, however many wait. Raises `Unreachable` when the member is lost."""
        if self.lost:
            raise Unreachable(f"{self.member.name} is lost", cause=self.lost)
        self._outbox.put(payload)
        self._news.set()
        self.wanted.set()

    async def say(self, message: Message, payload: bytes | memoryview = b"", *, bulk: bool = False) -> None:
        """Send one of the messages of `LinkCompanion`, on the session there is now. Raises `Unreachable` without one.

        Unlike what is `put`, it is not sent again after a cut.
        """
        session = self._serving
        if session is None:
            raise Unreachable(f"{self.member.name} is not connected now")
        if bulk:
            await self._link_shaper.turn(self, len(payload))
        else:
            await self._link_shaper.word(len(payload))
        await session.send(message, payload, bulk=bulk)

    def attach(self, session: Session) -> int:
        """From now on only this session counts. Returns how many messages were received so far."""
        if self._session is not None:
            in_background(self._tasks, self._session.close())
        self._session = session
        session.admit()
        session.wait_for_long()  # the member's worker may stand still
        self._link_shaper.opened(session)
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
        lanes = self._lanes = self._new_lanes(session)
        in_background(self._tasks, self._receive(session, lanes))
        sender = asyncio.create_task(self._send(session, lanes, received))
        self._begin_beside(session)
        try:
            await session.ended.wait()
        finally:
            self._end_beside(session)
            await cancel_and_wait(sender)
            if lanes is not None:
                lanes.cut()

    def give_up(self, reason: str) -> None:
        """There will be no further session: whoever puts more is told."""
        self.lost = self.lost or reason

    async def close(self) -> None:
        """Give up, and end the session."""
        self.give_up("the link was closed")
        if self._session is not None:
            await self._session.close()
        await cancel_and_wait(*self._tasks)

    def _begin_beside(self, session: Session) -> None:
        self._end_beside(self._serving)
        self._serving = session
        if self._beside is not None:
            self._beside.up(self.member.rank)

    def _end_beside(self, session: Session | None) -> None:
        if session is None or self._serving is not session:
            return  # another one has taken its place
        self._serving = None
        if self._beside is not None:
            self._beside.down(self.member.rank)

    def _new_lanes(self, session: Session) -> LinkLanes | None:
        if self._all_lanes is None:
            return None
        return LinkLanes(
            self._all_lanes,
            session,
            self._link_shaper,
            partial(self._take, session),
            self._count,
            self._stir,
            self._tasks,
        )

    def _count(self) -> int:
        return self._received

    def _stir(self) -> None:
        self._news.set()

    async def _send(self, session: Session, lanes: LinkLanes | None, received: int) -> None:
        # Of what went on the session: how many frames of all kinds had gone by then, and its number.
        gone: deque[tuple[int, int]] = deque()
        while self._session is session:
            self._news.clear()
            if lanes is not None and not await self._lanes_allow(session, lanes):
                continue
            following = self._outbox.next()
            if following is None:
                await self._until_news(lanes)
                continue
            payload, first_time = following
            if first_time:
                self._link_shaper.went(self.member.rank, len(payload))
            await self._link_shaper.turn(self, len(payload))
            if lanes is None or lanes.by_session:
                await session.send(Carry(), payload, bulk=True)
                gone.append((session.sent_frames, self._outbox.gone))
                # The last one that the other side took may not have come to be counted when the line is cut.
                while gone and gone[0][0] < session.taken_frames:
                    received = max(received, gone.popleft()[1])
            else:
                await lanes.send(payload)  # where it cannot, the other side says what it has had, and it goes again
            self._outbox.received(received)

    async def _lanes_allow(self, session: Session, lanes: LinkLanes) -> bool:
        """Whether the next message may go now, after what the lane's beginning or end makes of it."""
        if (had := lanes.other_side_had()) is not None:
            try:
                self._outbox.resume(had)
            except PeerMisbehaved as error:
                session.end(error)
                return False
        self._outbox.received(lanes.took)
        await lanes.look(self._outbox.waiting_bytes)
        if lanes.leaving or (not lanes.by_session and self._outbox.kept_bytes > BULK_BYTES):
            await self._news.wait()
            return False
        return True

    async def _until_news(self, lanes: LinkLanes | None) -> None:
        try:
            async with asyncio.timeout(None if lanes is None else lanes.idle_s):
                await self._news.wait()
        except TimeoutError:
            assert lanes is not None
            await lanes.leave_idle()

    async def _receive(self, session: Session, lanes: LinkLanes | None) -> None:
        # Goes on after a cut: what had arrived is delivered, unless another session has come to send it again.
        while True:
            try:
                message, payload = await session.receive(self._kinds)
                if lanes is not None and isinstance(message, LaneWord):
                    await in_time(self._words)
                    await lanes.heard(message)
                    continue
                if not isinstance(message, Carry):
                    assert self._beside is not None
                    await in_time(self._words)
                    await self._beside.heard(self.member.rank, message, payload)
                    continue
                if lanes is not None and lanes.brings:
                    raise MalformedMessage(f"{session.called} carries on the session and on a lane")
            except AxonError as error:
                log.debug("link ends", member=self.member.name, reason=error.in_a_line)
                await session.close()
                return
            if not await self._take(session, payload):
                return

    async def _take(self, session: Session, payload: memoryview) -> bool:
        """Deliver one message that came by that session, or a lane of its; False when none of it counts any more."""
        async with self._delivering:
            if self._session is not session:
                return False
            self._received += 1
            try:
                await self._deliver(self.member.rank, payload)
            except AxonError as error:
                log.info("link closed: nobody takes its messages", member=self.member.name, reason=error.message)
                self.give_up(error.message)
                await session.close()
                return False
        return True
