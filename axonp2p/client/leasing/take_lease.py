"""Taking a lease: dial, prove our key, show the token, and hear yes or no."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from axonp2p.client.leasing.lease import ANSWER_S, Lease
from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.errors import PeerMisbehaved, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import LeaseTaken, PeerMessage, TakeLease
from axonp2p.table.records import Row, decode_own_row
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.messages import Refusal, error_of
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.ways import ways_to
from axonp2p.wire.codec import encode
from axonp2p.wire.schema import SCHEMAS


@dataclass(frozen=True)
class LeaseRequest:
    """The terms that `TakeLease` asks for."""

    job: str
    kind: str
    cores: int
    memory_mb: int
    datasets: tuple[str, ...] = ()
    """Names of data on the peer's machine that the job reads."""
    grace_s: int = 0
    """For how long the worker shall wait when this client vanishes."""
    gpu_memory_mb: int = 0
    """MiB on a GPU of its own; 0 and no capability: none."""
    gpu_capability: str = ""
    """The least that the GPU must be capable of."""


async def take_lease(
    key: PrivateKey,
    dials: DialPolicy,
    row: Row,
    promise: Reservation,
    wanted: LeaseRequest,
    *,
    name: str,
    spread: int = 0,
) -> Lease:
    """Dial the peer (through its relays in an order that `spread` turns), prove our key, show the token.

    Only addresses that `dials` allows are dialled. Raises `Unreachable`, `Refused` (`Busy`) or `PeerMisbehaved`.
    """
    ways = ways_to(row, dials, spread=spread)
    session = await dial(key, row, called=f"peer {name}", ways=ways, tells_why=dials.tells_why)
    try:
        async with asyncio.timeout(ANSWER_S):
            await session.send(
                TakeLease(
                    token=encode(promise.token),
                    job=wanted.job,
                    kind=wanted.kind,
                    cores=wanted.cores,
                    memory_mb=wanted.memory_mb,
                    datasets=list(wanted.datasets),
                    grace=wanted.grace_s,
                    schema=SCHEMAS[wanted.kind],
                    gpu_memory_mb=wanted.gpu_memory_mb,
                    gpu_capability=wanted.gpu_capability,
                )
            )
            answer, _ = await session.receive(PeerMessage)
        if isinstance(answer, Refusal):
            raise error_of(answer, f"peer {name}")
        if not isinstance(answer, LeaseTaken):
            raise PeerMisbehaved(f"peer {name} answered TakeLease with {type(answer).__name__}")
        if answer.memory_mb < wanted.memory_mb or answer.cores < wanted.cores:
            raise PeerMisbehaved(f"peer {name} takes the job with less than the job asks for")
        if decode_own_row(answer.row).peer != row.peer:
            raise PeerMisbehaved(f"peer {name} answered TakeLease with the row of another peer")
    except TimeoutError as error:
        await session.close()
        raise Unreachable(f"peer {name} did not answer within {ANSWER_S:g} s") from error
    except BaseException:
        await session.close()
        raise
    session.wait_for_long()  # the peer's owner may pause its worker
    return Lease(session, row, promise, answer, name=name)
