"""What a worker says without credit is read at a pace: the worker stands in its channel, and nothing piles up."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from axonp2p.errors import MalformedMessage, Unreachable
from axonp2p.sandbox.messages import Control, ToMember
from axonp2p.wire.frame import FRAME_COST
from peer_daemon.execution.worker_credit import WorkerCredit
from peer_daemon.execution.worker_side import UNPAID_A_SECOND, WorkerSide
from peer_daemon.links.credit import FIRST_BYTES


class Flooding:
    """A worker that says the same for ever."""

    def __init__(self, message, payload=b"x"):
        self.said = 0
        self._message = message
        self._payload = memoryview(payload)
        self.channel = self

    async def receive(self):
        self.said += 1
        assert self.said < 20_000, "read without a pause"
        return self._message, self._payload


class Nobody:
    """The mesh and the client: takes everything, reaches nobody."""

    def __init__(self, reaches=()):
        self.words = 0
        self.held = 0
        self._reaches = reaches

    async def word(self, message, payload=b""):
        self.words += 1

    def bulk(self, payload):
        self.held += len(payload) + FRAME_COST

    def post(self, rank, payload):
        if rank in self._reaches:
            self.held += len(payload) + FRAME_COST
            return
        raise Unreachable("rank 9 is not in the job")


async def heard_in_seconds(message, seconds, monkeypatch):
    """How many messages are read while so much time passes."""
    now = itertools.count(0)
    clock = [0.0]
    worker, nobody = Flooding(message), Nobody()

    async def sleep(wait):
        clock[0] += max(wait, 1e-6)  # as any clock
        if clock[0] >= seconds:
            raise asyncio.CancelledError

    async def lost(rank, reason):
        next(now)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    side = WorkerSide(nobody, nobody, WorkerCredit(), lost, lambda payload: b"")
    with pytest.raises(asyncio.CancelledError):
        await side.hear(worker)
    return worker.said


@pytest.mark.parametrize("message", [Control(), Control(sign=True), ToMember(rank=9)])
async def test_a_flood_of_what_needs_no_credit_is_read_at_a_pace(message, monkeypatch):
    assert await heard_in_seconds(message, 6.0, monkeypatch) <= 6.5 * UNPAID_A_SECOND


@pytest.mark.parametrize("message", [Control(bulk=True), ToMember(rank=1)])
async def test_bulk_without_a_payload_is_refused(message):
    nobody = Nobody()
    with pytest.raises(MalformedMessage, match="without a payload"):
        await WorkerSide(nobody, nobody, WorkerCredit(), None, None).hear(Flooding(message, b""))


@pytest.mark.parametrize("message", [Control(bulk=True), ToMember(rank=1)])
@pytest.mark.parametrize("payload", [b"x", bytes(100_000)])
async def test_no_more_bulk_is_held_for_who_takes_none_than_there_was_credit_for(message, payload):
    slow, credit = Nobody(reaches=[1]), WorkerCredit()
    credit.begin([None, 1])
    with pytest.raises(MalformedMessage, match="credit"):
        await WorkerSide(slow, slow, credit, None, None).hear(Flooding(message, payload))
    assert slow.held <= FIRST_BYTES + 2 * (len(payload) + FRAME_COST)
