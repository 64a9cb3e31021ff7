"""The messages of a lease's worker, and their destinations: nothing here waits for a member's or the client's line."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from axonp2p.errors import MalformedMessage, Refused, Unreachable
from axonp2p.jobs.messages import FromWorker, WorkerStarted
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.messages import Control, StandsBy, Started, ToMember
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.mesh.mesh import Mesh
from peer_daemon.execution.worker_credit import CLIENT, WorkerCredit
from peer_daemon.links.client_sender import ClientSender

UNPAID_A_SECOND, UNPAID_AT_ONCE = 500.0, 125.0
"""Messages of one worker that take no credit: small ones to the client, and those to members out of reach. In a flood
of them the worker is read no faster, until it stands in its full channel. An honest one says a few in a round."""


class WorkerSide:
    """One worker, heard until it is gone."""

    def __init__(
        self,
        mesh: Mesh,
        client: ClientSender,
        credit: WorkerCredit,
        link_lost: Callable[[int, str], Awaitable[None]],
        sign: Callable[[memoryview], bytes],
    ) -> None:
        """`sign` gives this peer's signature that its worker has said something."""
        self._mesh = mesh
        self._client = client
        self._credit = credit
        self._link_lost = link_lost
        self._sign = sign
        self._unpaid = RateLimit(UNPAID_A_SECOND, UNPAID_AT_ONCE)

    async def hear(self, worker: SandboxedWorker) -> None:
        """Carry what it says. Raises `Unreachable` when it is gone, `PeerMisbehaved` when it breaks the protocol."""
        started = False
        while True:
            message, payload = await worker.channel.receive()
            match message:
                case Control(bulk=True) | ToMember() if not payload:
                    raise MalformedMessage("the worker says bulk without a payload")
                case Control(bulk=True):
                    self._credit.said(CLIENT, len(payload))
                    self._client.bulk(payload)
                case Control(sign=sign):
                    await in_time(self._unpaid)
                    await self._client.word(FromWorker(signature=self._sign(payload) if sign else b""), payload)
                case ToMember():
                    await self._to_member(message.rank, payload)
                case Started() if not started:
                    started = True
                    await self._client.word(WorkerStarted(seconds=round(time.monotonic() - worker.started, 3)))
                case Started():
                    raise MalformedMessage("the worker started twice")
                case StandsBy():
                    raise MalformedMessage("the worker stands by, and has a lease")

    async def _to_member(self, rank: int, payload: memoryview) -> None:
        try:
            self._mesh.post(rank, payload)
        except (Unreachable, Refused) as error:
            # A rank that has left the roster, or cannot be reached: the coordinator decides what becomes of it.
            self._credit.dropped(rank, len(payload))
            await in_time(self._unpaid)
            await self._link_lost(rank, error.message)
        else:
            self._credit.said(rank, len(payload))
