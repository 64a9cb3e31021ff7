"""The lanes of one link, for as long as one session carries it: one to send on, one to receive from.

`lanes.plan` decides by which way what is sent goes; here it is said, heard and done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from axonp2p.errors import Busy, MalformedMessage, Unreachable
from axonp2p.logs import get_logger
from axonp2p.supervision import in_background
from axonp2p.transport.lanes.lane import BulkLane, LaneReceiver, LaneSender
from axonp2p.transport.lanes.opening import OFFER_S, BulkLanes
from axonp2p.transport.lanes.plan import FIRST_PAUSE_S, IDLE_S, BulkWay, SendPlan
from axonp2p.transport.messages import (
    AskLane,
    LaneBegins,
    LaneEnded,
    LaneLeft,
    LaneOffer,
    LaneTook,
    LaneWord,
)
from axonp2p.transport.sessions.session import Session

log = get_logger(__name__)

TELL_BYTES = 1024 * 1024
"""So often whoever sends hears what was taken of its lane: it keeps what may have to go again."""


OFFERED_AGAIN_S = FIRST_PAUSE_S - 1
"""Offers that come sooner than this after another one are not taken: each makes us call."""


class LaneShaper(Protocol):
    """The part of `link.LinkShaper` that lanes need."""

    def lane_opened(self, lane: BulkLane) -> None:
        """A link uses that lane from now on."""
        ...

    def hold_back(self, count: int) -> float:
        """For how many seconds nothing more is taken of a lane that has brought so many bytes."""
        ...


class LinkLanes:
    """Of one link and one session."""

    def __init__(
        self,
        lanes: BulkLanes,
        session: Session,
        shaper: LaneShaper,
        deliver: Callable[[memoryview], Awaitable[bool]],
        received: Callable[[], int],
        stir: Callable[[], None],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        """`deliver` says whether more is wanted; `received` how many messages have come on the link so far.

        `stir` wakes whoever sends, because something here has changed. `tasks` deliver, and outlive the session.
        """
        self._lanes = lanes
        self._session = session
        self._shaper = shaper
        self._deliver = deliver
        self._received = received
        self._stir = stir
        self._plan = SendPlan()
        self.took = 0
        """How many messages the other side has surely had of what went on lanes."""
        self._had: int | None = None
        self._sender: LaneSender | None = None
        self._receiver: LaneReceiver | None = None
        self._sending_token = self._receiving_token = b""
        self.brings = False
        """Whether what the other side carries comes on a lane now."""
        self._delivering = tasks
        self._opening: set[asyncio.Task[None]] = set()
        self._offered_at = float("-inf")

    # --- what we send ---

    @property
    def by_session(self) -> bool:
        """Whether the next message goes on the session."""
        return self._had is None and self._plan.way in (BulkWay.SESSION, BulkWay.OPENING, BulkWay.READY)

    @property
    def leaving(self) -> bool:
        """Whether nothing goes until the other side has said what it has had."""
        return self._plan.way is BulkWay.LEAVING

    @property
    def idle_s(self) -> float | None:
        """After so many seconds without anything to send `leave_idle` is due; None: never."""
        return IDLE_S if self._plan.way is BulkWay.LANE else None

    def other_side_had(self) -> int | None:
        """After a lane: how many messages the other side has had; None when it has not just said so."""
        had, self._had = self._had, None
        return had

    async def look(self, waiting: int) -> None:
        """So many bytes wait: open a lane if they are worth one, or begin on the one that is there."""
        if self._plan.way is BulkWay.READY:
            self._plan.begun()  # first: the answer may be here before the word has left this side for good
            await self._session.send(LaneBegins(token=self._sending_token), bulk=True)
        elif (self._session.lanes_to or self._session.lanes_from) and self._plan.opens(waiting, _now()):
            if self._session.lanes_to is not None:
                await self._session.send(AskLane())
                in_background(self._opening, self._not_offered())
            else:
                await self._offer_to_send()

    async def send(self, payload: bytes | memoryview) -> None:
        """One message on the lane. Where it breaks, `other_side_had` says in a while what has to go again."""
        if self._plan.way is BulkWay.LANE and self._sender is not None and not await self._sender.send(payload):
            await self._leave_broken()

    async def leave_idle(self) -> None:
        """Nothing was sent for `idle_s`."""
        if self._plan.idle():
            await self._leave()

    # --- what the other side says ---

    async def heard(self, word: LaneWord) -> None:
        """Raises `MalformedMessage` for a word out of place, which ends the session."""
        match word:
            case AskLane():
                await self._asked()
            case LaneOffer(token=token, caller_sends=caller_sends):
                self._offered(token, caller_sends=caller_sends)
            case LaneBegins(token=token):
                self._begins(token)
            case LaneTook(received=received):
                self.took = max(self.took, received)
                self._stir()
            case LaneLeft():
                if self._receiver is not None and self.brings:
                    self._receiver.cut()
            case LaneEnded(received=received):
                if not self._plan.ended(_now()):
                    raise MalformedMessage("the end of a lane that had not begun")
                self._had = received
                self._drop_sender()
                self._stir()

    def cut(self) -> None:
        """The session has ended: the lanes end with it. Messages that have come on them are still delivered."""
        for lane, token in ((self._sender, self._sending_token), (self._receiver, self._receiving_token)):
            self._lanes.withdraw(token)
            if lane is not None:
                lane.cut()
        for task in self._opening:
            task.cancel()

    # --- opening ---

    async def _offer_to_send(self) -> None:
        lane = LaneSender()
        try:
            self._sending_token = self._lanes.offer(lane, self._session.lanes_from)
        except Busy:
            self._plan.failed(_now())
            return
        self._sender = lane
        in_background(self._opening, self._open_sender(lane))
        await self._session.send(LaneOffer(token=self._sending_token, caller_sends=False))

    async def _asked(self) -> None:
        if not self._session.lanes_from or self.brings:
            return
        self._drop_receiver()
        lane = LaneReceiver()
        try:
            self._receiving_token = self._lanes.offer(lane, self._session.lanes_from)
        except Busy:
            return  # the caller does without
        self._receiver = lane
        await self._session.send(LaneOffer(token=self._receiving_token, caller_sends=True))

    def _offered(self, token: bytes, *, caller_sends: bool) -> None:
        at = self._session.lanes_to
        if at is None:
            return
        lane: LaneSender | LaneReceiver
        if caller_sends:
            if self._plan.way is not BulkWay.OPENING or self._sender is not None:
                return
            lane = self._sender = LaneSender()
            self._sending_token = token
            in_background(self._opening, self._open_sender(lane))
        else:
            if self.brings or _now() < self._offered_at + OFFERED_AGAIN_S:
                return
            self._offered_at = _now()
            self._drop_receiver()
            lane = self._receiver = LaneReceiver()
            self._receiving_token = token
        try:
            self._lanes.dial(lane, at, token)
        except Busy:
            lane.withdrawn()

    async def _open_sender(self, lane: LaneSender) -> None:
        opened = await lane.opened
        if self._sender is not lane:
            lane.cut()
        elif not opened or self._session.closed or not self._plan.opened():
            self._plan.failed(_now())
            self._drop_sender()
        else:
            log.debug("lane opened", to=self._session.called)
            self._shaper.lane_opened(lane)
            self._stir()

    async def _not_offered(self) -> None:
        await asyncio.sleep(OFFER_S)
        if self._plan.way is BulkWay.OPENING and self._sender is None:
            self._plan.failed(_now())

    # --- the end of what we send on ---

    async def _leave_broken(self) -> None:
        if self._plan.failed(_now()):
            await self._leave()

    async def _leave(self) -> None:
        self._drop_sender()
        await self._session.send(LaneLeft())

    def _drop_sender(self) -> None:
        lane, self._sender = self._sender, None
        if lane is not None:
            lane.cut()

    def _drop_receiver(self) -> None:
        self._lanes.withdraw(self._receiving_token)
        lane, self._receiver = self._receiver, None
        if lane is not None:
            lane.cut()

    # --- what we receive ---

    def _begins(self, token: bytes) -> None:
        if self.brings:
            raise MalformedMessage("a second lane before the end of the first")
        self.brings = True
        lane = self._receiver if token == self._receiving_token else None
        in_background(self._delivering, self._read(lane))

    async def _read(self, lane: LaneReceiver | None) -> None:
        """Deliver what comes on the lane until it ends, and tell the other side."""
        if lane is not None and await lane.opened:
            self._shaper.lane_opened(lane)
            if not await self._deliver_all(lane):
                return
        with suppress(Unreachable):
            self.brings = False
            await self._session.send(LaneEnded(received=self._received()))

    async def _deliver_all(self, lane: LaneReceiver) -> bool:
        """Whether the session is still there after the lane's end."""
        untold = 0
        await self._tell_took()  # of what came on the session: else it would count in the window of the lane
        while (part := await lane.receive()) is not None:
            if not await self._deliver(part):
                lane.cut()
                return False
            if (wait := self._shaper.hold_back(len(part))) > 0:
                await asyncio.sleep(wait)
            lane.took()
            untold += len(part)
            if untold >= TELL_BYTES and not self._session.closed:
                untold = 0
                await self._tell_took()
        if lane.failure is not None:
            log.info("lane closed", called=self._session.called, reason=lane.failure.message)
            self._session.end(lane.failure)
        return lane.failure is None

    async def _tell_took(self) -> None:
        with suppress(Unreachable):
            await self._session.send(LaneTook(received=self._received()))


def _now() -> float:
    return asyncio.get_running_loop().time()
