"""One peer's slot, ours for a job: the client's end of the conversation that `jobs.messages` draws.

One task reads all that the peer says and hands it on at once, so that no answer waits behind another; one task sends
what is posted, so that a slow peer holds up nobody else. A message out of turn ends the lease as misbehaviour.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from axonp2p.blobs.messages import BlobManifest, BlobPiece, DropBlob
from axonp2p.client.leasing.blob_news import BlobDispatcher, BlobWord, Heard
from axonp2p.client.leasing.lease_sides import LeaseListener, Reservation
from axonp2p.client.leasing.owner import Owner
from axonp2p.client.leasing.send_queue import SendQueue
from axonp2p.errors import AxonError, PeerMisbehaved, Unreachable
from axonp2p.jobs.messages import (
    LOG_BYTES_A_SECOND,
    MOST_LOG_NEWS,
    EndLease,
    FetchLog,
    FollowLog,
    FromWorker,
    LeaseEnded,
    LeaseTaken,
    LineMeasured,
    LinkLost,
    LogNews,
    LogPart,
    OwnersMessage,
    PeerMessage,
    ReceiptRefused,
    ReceiptSigned,
    RosterSet,
    SetRoster,
    SignReceipt,
    ToWorker,
    WorkerEnded,
    WorkerStarted,
)
from axonp2p.logs import get_logger
from axonp2p.table.records import Row
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.messages import LONGEST_TEXT, Refusal, error_of
from axonp2p.transport.sessions.session import SMALL_BYTES, Session
from axonp2p.wire.codec import Message

ANSWER_S = 30.0
"""How long a peer may take for a short answer. Nothing of a job's length is waited for with it."""
WORDS_A_SECOND, WORDS_AT_ONCE = 200.0, 2000.0
"""Small messages of one peer that are dealt with: an honest one says a few a second."""
LONGEST_LOG = 4 * 1024 * 1024
LogHeard = Callable[[bytes], None]
LOG_TAIL_BYTES = 16_000
"""As many as the last words of a worker that ended can have (`WorkerEnded.log_tail`), which may have been heard."""
"""Is told of the next bytes of a log that is followed."""

log = get_logger(__name__)


class Lease:
    """A slot that we hold, from `LeaseTaken` to `EndLease`. `end()` must be called, whatever happens."""

    def __init__(self, session: Session, row: Row, promise: Reservation, taken: LeaseTaken, *, name: str) -> None:
        self.row = row
        self.promise = promise
        self.taken = taken
        self.name = name
        self.rank = -1
        self.log_tail = ""
        self.limit = ""
        """The limit of the sandbox that the worker went over, if that ended it."""
        self.worker_started = taken.waited
        """Whether the worker has loaded its libraries."""
        self._session = session
        self._listener: LeaseListener | None = None
        self._answers: dict[type[Message], asyncio.Future[None]] = {}
        self._log: bytearray | None = None
        self._log_heard: LogHeard | None = None
        self.log_end = 0
        """How many bytes of what the job wrote were heard."""
        self._log_tail_heard = b""
        self._log_pace = RateLimit(2 * LOG_BYTES_A_SECOND, 16 * MOST_LOG_NEWS)
        self._owner = Owner(name)
        self.blobs = BlobDispatcher(name)
        """The peer's news of the bundle, and of all else that it is brought."""
        self._roster_epoch = -1
        self._words = RateLimit(WORDS_A_SECOND, WORDS_AT_ONCE)
        self._gone = ""
        self._refusal: AxonError | None = None
        self._cut_off = False
        self._send_queue = SendQueue(session.send, self._is_gone, name)
        self._reading = asyncio.create_task(self._read(), name=f"lease {name}")

    @property
    def gone(self) -> str:
        """Why no work can be done over this lease any more; empty while it can."""
        return self._gone

    @property
    def hung_up(self) -> bool:
        """Whether nothing more can come from the peer, not even a log or a signature."""
        return self._session.closed

    @property
    def cut_off(self) -> bool:
        """Whether it was the line that ended it: the peer may be there still, and its worker wait for us."""
        return self._cut_off

    @property
    def wire_bytes(self) -> int:
        """Bytes sent and received on this session so far."""
        return self._session.sent_bytes + self._session.received_bytes

    def attach(self, rank: int, listener: LeaseListener) -> None:
        """From now on `listener` is told. A peer that has gone in the meantime is told of at once."""
        self.rank = rank
        self._listener = listener
        self._owner.attach(rank, listener, time.monotonic())
        if self._gone:
            listener.peer_gone(rank, self._gone)

    def tell_worker(self, frame: bytes) -> None:
        """Post a small message for the worker; never waits. A peer that takes none for long counts as gone."""
        self._send_queue.post(ToWorker(), frame)

    async def send_to_worker(self, frame: bytes) -> None:
        """The same for many large ones, which later small ones may overtake: waits while the peer is behind."""
        await self._send_queue.caught_up()
        await self._session.send(ToWorker(), frame, bulk=True)

    def ask_signature(self, receipt: bytes) -> None:
        """Post a receipt for the peer to counter-sign."""
        self._send_queue.post(SignReceipt(receipt=receipt))

    def set_roster(self, roster: SetRoster) -> Awaitable[None]:
        """Post a roster now; wait for what it gives back until it is in force, which raises `Unreachable`."""
        answer = None if self._session.closed else self._expect(RosterSet)
        self._roster_epoch = roster.epoch
        self._send_queue.post(roster)
        return self._in_force(answer)

    async def expect_blob(self, blob: bytes, heard: Heard) -> asyncio.Future[None]:
        """As `BlobDispatcher.expect`, once the peer has dropped what it was told to of it. Raises `Unreachable`."""
        if dropping := self.blobs.dropping(blob):
            await self._wait(asyncio.shield(dropping), ANSWER_S)
        if self._session.closed:
            raise Unreachable(f"peer {self.name} is gone: {self._gone}")
        return self.blobs.expect(blob, heard)

    async def give(self, message: BlobManifest | BlobPiece, data: bytes, *, bulk: bool = False) -> None:
        """Send some of a blob that is expected; waits while the peer is behind. Raises `Unreachable`."""
        if bulk:
            await self._session.send(message, data, bulk=True)
        else:
            await self._send_queue.send(message, data)

    def drop_blob(self, blob: bytes) -> None:
        """Have the peer drop a blob, whatever it has of it by now."""
        if not self._gone:
            self.blobs.drop(blob)
            self._send_queue.post(DropBlob(blob=blob))

    def post_roster(self, roster: SetRoster) -> None:
        """Send a roster without waiting for it to be in force."""
        self._send_queue.post(roster)

    async def fetch_log(self) -> bytes:
        """The output of the job at this peer that was not heard yet, or what is known of it when the peer is gone.

        Raises nothing of the family.
        """
        self._log, heard = bytearray(), self._log_tail_heard
        try:
            await self._ask(FetchLog(start=self.log_end), LogPart)
        except AxonError:
            tail = self.log_tail.encode()
            return bytes(self._log) or (b"" if tail.strip() in heard else tail)
        return bytes(self._log)

    def follow_log(self, heard: LogHeard) -> None:
        """From now on, until the lease ends, `heard` is told what the job writes from byte `log_end` on.

        A client that is back has another lease, and follows anew from where it was.
        """
        self._log_heard = heard
        self._send_queue.post(FollowLog(start=self.log_end))

    async def end(self, reason: str = "") -> None:
        """Give the slot back and close. Raises nothing of the family; waits only shortly for the peer's word.

        `reason`: why the peer has to leave the job, if it has to.
        """
        if not self._session.closed:
            with contextlib.suppress(AxonError):
                await self._ask(EndLease(reason=reason[:LONGEST_TEXT]), LeaseEnded, seconds=5.0)
        self._lost("the lease was ended", tell=False)
        self._reading.cancel()
        await self._send_queue.stop()
        await self._session.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _in_force(self, answer: asyncio.Future[None] | None) -> None:
        if answer is None:
            raise Unreachable(f"peer {self.name} is gone: {self._gone}")
        try:
            await self._wait(answer, ANSWER_S)
        finally:
            self._forget(RosterSet)

    async def _ask(self, question: Message, kind: type[Message], seconds: float = ANSWER_S) -> None:
        answer = self._expect(kind)
        try:
            async with asyncio.timeout(seconds):
                await self._send_queue.send(question)
            await self._wait(answer, seconds)
        except TimeoutError as error:
            raise Unreachable(f"peer {self.name} took nothing for {seconds:g} s") from error
        finally:
            self._forget(kind)

    def _expect(self, kind: type[Message]) -> asyncio.Future[None]:
        # Before the question is sent, so that no answer is too fast.
        if self._session.closed:
            raise Unreachable(f"peer {self.name} is gone: {self._gone}")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers[kind] = answer
        return answer

    async def _wait(self, answer: asyncio.Future[None], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await answer
        except TimeoutError as error:
            raise Unreachable(f"peer {self.name} did not answer within {seconds:g} s") from error

    def _forget(self, kind: type[Message]) -> None:
        answer = self._answers.pop(kind, None)
        if answer and not answer.cancel() and not answer.cancelled():
            answer.exception()  # seen, even if the question failed first

    async def _read(self) -> None:
        try:
            while True:
                message, payload = await self._session.receive(PeerMessage)
                if len(payload) <= SMALL_BYTES:
                    await in_time(self._words)
                await self._heard(message, payload)
        except AxonError as error:
            await self._session.close()
            self._is_gone(error)
        except Exception as error:  # the edge of a supervised task: a mistake of ours costs this lease, not the job
            log.exception("a lease failed", peer=self.name)
            await self._session.close()
            self._is_gone(AxonError(f"a mistake in axon itself: {error!r}"))

    async def _heard(self, message: Message, payload: memoryview) -> None:
        match message:
            case FromWorker(signature=signature):
                if self._listener and not self._gone:
                    await self._listener.worker_said(self.rank, payload, signature)
            case ReceiptSigned(receipt=receipt):
                if self._listener:
                    self._listener.receipt_signed(self.rank, receipt)
            case ReceiptRefused(reason=reason):
                if self._listener:
                    self._listener.receipt_refused(self.rank, reason)
            case LinkLost(rank=other, reason=reason):
                if self._listener and not self._gone:
                    await self._listener.link_lost(self.rank, other, reason)
            case LineMeasured(upload=upload, download=download):
                if self._listener and not self._gone:
                    self._listener.line_measured(self.rank, upload, download)
            case LogPart(offset=offset, total=total):
                self._heard_log(offset, total, payload)
            case LogNews():
                await self._heard_news(message, payload)
            case WorkerStarted(seconds=seconds):
                self.worker_started = True
                log.debug("worker started", peer=self.name, seconds=round(seconds, 2))
            case _ if isinstance(message, OwnersMessage):
                if not self._gone and (why_gone := self._owner.says(message, time.monotonic())):
                    self._lost(why_gone)
            case WorkerEnded(reason=reason, limit=limit, log_tail=tail):
                self.log_tail, self.limit = tail, limit
                self._lost(f"its worker ended: {reason}")
            case LeaseEnded(reason=reason) if LeaseEnded not in self._answers:
                self._refusal = Unreachable(f"the peer ended the lease: {reason or 'no reason given'}")
                raise self._refusal
            case Refusal():
                # The request is refused. If that is also the end of the lease, the session's end says so next.
                self._refused(error_of(message, f"peer {self.name}"))
            case _ if isinstance(message, BlobWord):
                self.blobs.heard(message)
            case RosterSet(epoch=epoch) if epoch != self._roster_epoch:
                pass  # of one that was only posted
            case RosterSet() | LeaseEnded():
                self._resolve(type(message))
            case _:
                raise PeerMisbehaved(f"peer {self.name} said {type(message).__name__} out of turn")

    def _heard_log(self, offset: int, total: int, payload: memoryview) -> None:
        if self._log is None or offset != len(self._log) or total > LONGEST_LOG or offset + len(payload) > total:
            raise PeerMisbehaved(f"peer {self.name} sent a log that does not fit together")
        self._log += payload
        if len(self._log) == total:
            self._resolve(LogPart)

    async def _heard_news(self, news: LogNews, payload: memoryview) -> None:
        if self._log_heard is None or not self.log_end <= news.start < news.end or len(payload) > MOST_LOG_NEWS:
            raise PeerMisbehaved(f"peer {self.name} sent news of a log that do not fit")
        if self._log is not None:
            return  # the whole was asked for, from the last one on that was heard
        await in_time(self._log_pace, cost=len(payload))
        left_out, self.log_end = news.start - self.log_end, news.end
        text = (b"\n[... %d bytes left out ...]\n" % left_out if left_out else b"") + bytes(payload)
        self._log_tail_heard = (self._log_tail_heard + text)[-LOG_TAIL_BYTES:]
        self._log_heard(text)

    def _resolve(self, kind: type[Message]) -> None:
        answer = self._answers.get(kind)
        if answer and not answer.done():
            answer.set_result(None)

    def _fail_answers(self, error: AxonError, *kinds: type[Message]) -> None:
        for kind, answer in self._answers.items():
            if not answer.done() and (not kinds or kind in kinds):
                answer.set_exception(error)

    def _refused(self, error: AxonError) -> None:
        log.warning("refused by a peer", peer=self.name, reason=error.message)
        self._refusal = error
        self._fail_answers(error, RosterSet)  # a log or an end is never refused
        self.blobs.fail(error)

    def _is_gone(self, error: AxonError) -> None:
        lost = isinstance(error, Unreachable) and self._session.closed
        self._cut_off = lost and not self._gone and self._refusal is None
        error = self._refusal or error
        self._fail_answers(error)
        self.blobs.fail(error)
        self._lost(error.in_a_line)

    def _lost(self, reason: str, *, tell: bool = True) -> None:
        if not self._gone:
            self._gone = reason
            if tell and self._listener:
                self._listener.peer_gone(self.rank, reason)
