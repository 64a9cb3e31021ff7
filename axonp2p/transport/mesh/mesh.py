"""The links of one member of one job: exactly one for each pair of members, dialled by the lower rank.

The lower rank dials as soon as it knows the roster, and tries again while the other side may not know it yet. The
higher rank waits to be dialled. A rule that lets both dial needs a second rule for when both do; this one needs
none. After a cut the lower rank dials once more, and what was under way is sent again (`outbox`). While a link runs
through a relay the lower rank looks for a direct way now and then, and moves the link there without losing a message.

A roster is a stranger's word: members are dialled where `DialPolicy` allows it, few at a time, after pauses that
grow, and after a while only when there is something to carry. Another roster begins those pauses anew, so all dials
of a mesh together have a pace as well. Its author hears "not reached", and no more.

    lower rank                        higher rank
      | JoinMesh(reservation) ---------> |  its daemon asks `is_member`, then calls `adopt`
      | <--------- MeshJoined(received)  |
      | MeshJoined(received) ----------> |
      | <------------ Carry -----------> |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from axonp2p.errors import AxonError, MessageTooLarge, PeerMisbehaved, Refused, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import in_background, one_look
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.mesh.link import Link, LinkCompanion, LinkShaper, MeshMember
from axonp2p.transport.messages import JoinMesh, LinkReply, MeshJoined, Refusal, error_of
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import Way, direct_again_in, direct_ways, ways_to
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.ranks import MOST_MEMBERS

log = get_logger(__name__)


@dataclass(frozen=True)
class MeshPatience:
    """How long a mesh tries, in seconds."""

    first_link: float = 20.0
    """For the first link of a pair, from when there is something to carry."""
    after_cut: float = 15.0
    """For the other side to dial again after a cut."""
    steady: float = 10.0
    """A link that was dialled again and is cut sooner than this is given up."""
    joining: float = 10.0
    """For each answer while a link is opened."""
    pause: float = 0.1
    """Before the second try; doubled for each further one, up to `longest_pause`."""
    longest_pause: float = 10.0
    """Less than `first_link`, so that a member that waits to be dialled is dialled in time."""
    unasked: float = 300.0
    """How long a member is dialled to which there is nothing to carry; after that, only when there is."""
    dials_at_once: int = 8
    dials_together: float = 4 * MOST_MEMBERS
    dials_a_second: float = 4.0
    """So many dials may follow each other, and so fast more of them may, however often rosters begin links anew."""
    direct_again: Callable[[int], float] = direct_again_in
    """After a link through a relay was opened, or a direct way was looked for so many times in vain."""


class _Move:
    """The search for a direct way while a link runs through a relay."""

    def __init__(self) -> None:
        self.task: asyncio.Task[tuple[Session, int] | None] | None = None
        self.joining = False
        """Whether a direct session is there, so that the other side may end the relayed one for it."""

    async def outcome(self) -> tuple[Session, int] | None:
        """The direct session for which the relayed one was ended; None when it ended for another reason."""
        return await self.task if self.task is not None and self.joining else None

    def cancel(self) -> None:
        """Look no more."""
        if self.task is not None:
            self.task.cancel()


class Mesh:
    """The links of one member of one job."""

    def __init__(
        self,
        key: PrivateKey,
        reservation: str,
        deliver: Callable[[int, memoryview], Awaitable[None]],
        lost: Callable[[int, str], Awaitable[None]],
        link_shaper: LinkShaper,
        *,
        patience: MeshPatience = MeshPatience(),
        policy: DialPolicy,
        lanes: BulkLanes | None = None,
    ) -> None:
        """`lanes`: of the whole program, for bulk; without them all goes by sessions.

        `deliver(rank, payload)` gets each message in order, and slows that sender down while it waits.

        `lost(rank, reason)` is told once of a member that cannot be reached any more. Neither may raise.
        """
        self._key = key
        self._reservation = reservation
        self._deliver = deliver
        self._lost = lost
        self._link_shaper = link_shaper
        self._patience = patience
        self._policy = policy
        self._lanes = lanes
        self._dialling = asyncio.Semaphore(patience.dials_at_once)
        self._dials = RateLimit(patience.dials_a_second, patience.dials_together)
        self.beside: LinkCompanion | None = None
        """Set before the first roster: it speaks through the mesh, and the mesh tells it what it hears."""
        self._rank = -1
        self._links: dict[int, Link] = {}
        self._keepers: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def set_roster(self, rank: int, members: list[MeshMember]) -> list[int]:
        """We are `rank`; `members` (we may be among them) are in the job from now on; links of others are closed.

        Returns the ranks to which there is a new link, on which nothing waits.
        """
        self._rank = rank
        wanted = {member.rank: member for member in members if member.rank != rank}
        for other, link in list(self._links.items()):
            if other not in wanted or not link.member.is_still(wanted[other]):
                self._drop(other)
        new = [other for other in wanted if other not in self._links]
        for other in new:
            self._links[other] = Link(wanted[other], self._deliver, self._link_shaper, self.beside, self._lanes)
            self._keepers[other] = asyncio.create_task(self._keep(self._links[other]))
        for other, member in wanted.items():
            self._links[other].member = member
        return new

    def forget_lost(self) -> None:
        """The next roster may name members again that could not be reached any more."""
        for rank in [rank for rank, link in self._links.items() if link.lost]:
            self._drop(rank)

    def is_member(self, peer: PeerId) -> bool:
        """Whether that key is another member of the job."""
        return self._link_of(peer) is not None

    def post(self, rank: int, payload: bytes | memoryview) -> None:
        """Queue one message, which must not be changed afterwards. The caller keeps count of what waits
        (`LinkShaper`).

        Raises `Unreachable` when that rank is not in the job or is lost, `MessageTooLarge` over `PAYLOAD_LIMIT`.
        """
        if len(payload) > PAYLOAD_LIMIT:
            raise MessageTooLarge(f"a message of {len(payload)} bytes; at most {PAYLOAD_LIMIT}")
        link = self._links.get(rank)
        if link is None:
            raise Unreachable(f"rank {rank} is not in the job")
        link.put(payload)

    async def say(self, rank: int, message: Message, payload: bytes | memoryview = b"", *, bulk: bool = False) -> None:
        """One of the messages of `beside` to that member, if it is connected now, else `Unreachable` is raised."""
        link = self._links.get(rank)
        if link is None:
            raise Unreachable(f"rank {rank} is not in the job")
        await link.say(message, payload, bulk=bulk)

    async def adopt(self, session: Session) -> None:
        """Serve a link that a member opened (its `JoinMesh` has been heard) until it ends; then it is closed."""
        link = self._link_of(session.peer)
        if link is None or link.lost or link.member.rank > self._rank:
            reason = "the lower rank opens a link" if link and not link.lost else "you are not in this job"
            await session.refuse(Refused(reason))
            return
        received = link.attach(session)
        try:
            await session.send(MeshJoined(received=received))
            joined = await self._joined(session)
            await link.serve(session, joined.received)
        except AxonError as error:
            log.info("link refused", member=link.member.name, reason=error.message)
            await session.refuse(error)
        finally:
            link.detach(session)
            await session.close()

    async def close(self) -> None:
        """End every link."""
        for rank in list(self._links):
            self._drop(rank)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- one task keeps each link ---

    async def _keep(self, link: Link) -> None:
        try:
            with one_look("a link"):
                reason = await (self._dialled(link) if self._rank < link.member.rank else self._awaited(link))
        except (AxonError, OSError):
            reason = "an error inside"
        link.give_up(reason)
        log.info("member lost", member=link.member.name, reason=reason)
        await self._lost(link.member.rank, reason)

    async def _dialled(self, link: Link) -> str:
        """Dial, serve, dial again. Returns why no more."""
        loop = asyncio.get_running_loop()
        try:
            session, received = await self._first_join(link)
            dialled_again: float | None = None
            while True:
                better = await self._served(link, session, received)
                if better is not None:
                    session, received = better
                    continue
                flapping = dialled_again is not None and loop.time() - dialled_again < self._patience.steady
                if flapping or isinstance(session.failure, PeerMisbehaved):
                    return session.failure.in_a_line
                dialled_again = loop.time()
                session, received = await self._join(link, self._ways(link.member, avoid=session.relay))
        except AxonError as error:
            return error.in_a_line

    async def _served(self, link: Link, session: Session, received: int) -> tuple[Session, int] | None:
        """Serve until the session ends; then a direct one that has taken its place, if there is any."""
        move = _Move()
        if session.relay:
            move.task = asyncio.create_task(self._move(link, move))
        try:
            await link.serve(session, received)
            return await move.outcome()
        finally:
            move.cancel()
            link.detach(session)
            await session.close()

    async def _move(self, link: Link, move: _Move) -> tuple[Session, int] | None:
        """A direct session that the other side has adopted, once there is a way; None when it did not adopt it."""
        tried = 0
        while True:
            await asyncio.sleep(self._patience.direct_again(tried))
            tried += 1
            try:
                session = await self._dial(link.member, direct_ways(link.member, self._policy))
            except AxonError as error:
                log.debug("no direct way", member=link.member.name, reason=error.in_a_line)
                continue
            move.joining = True
            try:
                return await self._join_on(link, session)
            except AxonError as error:
                log.info("direct way not taken", member=link.member.name, reason=error.in_a_line)
                return None

    async def _awaited(self, link: Link) -> str:
        """Wait to be dialled, again after each cut. Returns why no more."""
        await link.wanted.wait()
        patience = self._patience.first_link
        while True:
            try:
                async with asyncio.timeout(patience):
                    await link.up.wait()
            except TimeoutError:
                return f"it did not connect within {patience:g} s"
            await link.down.wait()
            patience = self._patience.after_cut

    async def _first_join(self, link: Link) -> tuple[Session, int]:
        """The first session of a pair; the other side may hear of the roster later than we do."""
        loop = asyncio.get_running_loop()
        pause = self._patience.pause
        deadline: float | None = None
        rests_at = loop.time() + self._patience.unasked
        while True:
            if loop.time() >= rests_at:
                await link.wanted.wait()
            if deadline is None and link.wanted.is_set():
                deadline = loop.time() + self._patience.first_link
            try:
                return await self._join(link)
            except PeerMisbehaved:
                raise
            except AxonError:
                if deadline is not None and loop.time() >= deadline:
                    raise
            if deadline is not None:
                await asyncio.sleep(pause)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await link.wanted.wait()
            pause = min(2 * pause, self._patience.longest_pause)

    async def _join(self, link: Link, ways: Sequence[Way] | None = None) -> tuple[Session, int]:
        """A session that the other side has adopted, and how many of our messages it has had."""
        return await self._join_on(link, await self._dial(link.member, ways or self._ways(link.member)))

    async def _dial(self, member: MeshMember, ways: Sequence[Way]) -> Session:
        async with self._dialling:
            await in_time(self._dials)
            called, tells_why = f"peer {member.name}", self._policy.tells_why
            return await dial(self._key, member, called=called, ways=ways, tells_why=tells_why)

    def _ways(self, member: MeshMember, avoid: str = "") -> list[Way]:
        return ways_to(member, self._policy, avoid=avoid)

    async def _join_on(self, link: Link, session: Session) -> tuple[Session, int]:
        try:
            await session.send(JoinMesh(reservation=link.member.reservation or self._reservation))
            joined = await self._joined(session)
            await session.send(MeshJoined(received=link.attach(session)))
        except BaseException:
            link.detach(session)
            await session.close()
            raise
        return session, joined.received

    async def _joined(self, session: Session) -> MeshJoined:
        try:
            async with asyncio.timeout(self._patience.joining):
                answer, _ = await session.receive(LinkReply)
        except TimeoutError as error:
            raise Unreachable(f"{session.called} does not answer", cause="no answer in time") from error
        if isinstance(answer, Refusal):
            raise error_of(answer, session.called)
        assert isinstance(answer, MeshJoined)
        return answer

    def _link_of(self, peer: PeerId) -> Link | None:
        return next((link for link in self._links.values() if link.member.peer == peer), None)

    def _drop(self, rank: int) -> None:
        link, keeper = self._links.pop(rank), self._keepers.pop(rank)
        # `lost` may lead here from the keeper itself, which is then at its end anyway.
        if keeper is not asyncio.current_task():
            keeper.cancel()
            in_background(self._tasks, _finished(keeper))
        in_background(self._tasks, link.close())


async def _finished(task: asyncio.Task[None]) -> None:
    await asyncio.gather(task, return_exceptions=True)
