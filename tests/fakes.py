"""What many tests need: time that a test moves, and well-formed things to say, with one thing changed if wanted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axonp2p import supervision
from axonp2p.client.storage.disk_work import DiskWork, Work
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import DoublySigned, Receipt, accept
from axonp2p.peers.capability import Capability, as_map
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import ReserveRequest
from axonp2p.table.records import Row
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.envelope import Signed, sign
from axonp2p.wire.schema import SCHEMAS

NOW = 1_800_000_000.0
HERE = DialPolicy(lambda: ["127.0.0.1"])
"""Of a swarm on one computer."""
NEARBY = DialPolicy(lambda: ["192.0.2.1", "198.51.100.1", "2001:db8::1"])
"""Of somebody in the networks that documents use (RFC 5737, RFC 3849)."""


SIGNED = SignedFrame(peer="a" * 52, name="otter", reservation="0" * 36, frame=b"", signature=bytes(64))
"""What stands for a daemon's signature where nobody looks into it."""


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class AtOnce(DiskWork):
    """What is to be written is written when the call returns."""

    def do(self, work: Work) -> None:
        work()


class AsLateAsMayBe(DiskWork):
    """What is to be written is written once somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._works: list[Work] = []

    def do(self, work: Work) -> None:
        self._works.append(work)

    def finish(self) -> None:
        works, self._works = self._works, []
        for work in works:
            work()


def key_of(name: str) -> PrivateKey:
    """The same key for the same name."""
    return PrivateKey(name.encode().ljust(32, b"."))


def make_offer(**changes: Any) -> Capability:
    usual: dict[str, Any] = {"cores": 4, "memory_mb": 8192, "disk_mb": 4096, "gflops": 40.0, "slots": 2, "free": 2}
    return Capability(
        **(
            usual
            | {"python": "3.11.2", "packages": {"numpy": "2.4.6", "torch": "2.13.0"}, "kinds": ["train"]}
            | changes
        )
    )


def make_row(key: PrivateKey, *, now: float = NOW, offer: Capability | None = None, **changes: Any) -> Row:
    """The row of a living peer."""
    usual: dict[str, Any] = {
        "peer": key.peer_id,
        "name": f"peer-{key.peer_id[:8]}",
        "sequence": 1,
        "addresses": ["127.0.0.1:7071"],
        "certificate": b"c" * 32,
        "expires": int(now) + 600,
        "schema": SCHEMAS["train"],
        "capability": as_map(offer or make_offer()),
    }
    return Row(**(usual | changes))


def make_request(named: list[PeerId], *, now: float = NOW, **changes: Any) -> ReserveRequest:
    """A wish for a token for these peers."""
    usual: dict[str, Any] = {"uuid": new_uuid(), "peers": named, "kinds": ["train"], "seconds": 60, "time": int(now)}
    return ReserveRequest(**(usual | changes))


def make_receipt(client: PrivateKey, peer: PrivateKey, reservation: str, number: int = 1, **changes: Any) -> Receipt:
    usual: dict[str, Any] = {"job": "job-1", "round": number, "flops": 10**12, "samples": 64, "milliseconds": 900}
    who = {"reservation": reservation, "number": number, "client": client.peer_id, "peer": peer.peer_id}
    return Receipt(**(usual | who | {"issued": int(NOW)} | changes))


def sign_both(client: PrivateKey, peer: PrivateKey, receipt: Receipt) -> DoublySigned:
    """A receipt with both signatures."""
    signed: Signed[Receipt] = sign(client, receipt)
    return accept(peer, signed)


def fails_once(monkeypatch: pytest.MonkeyPatch, supervised: type) -> asyncio.Event:
    """The first `run()` of a supervised task ends by a mistake of ours; the event is set once it is begun again."""
    begun, again = 0, asyncio.Event()

    async def run(self: object) -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise ValueError("year 285427423 is out of range")
        again.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(supervision, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(supervised, "run", run)
    return again
