"""Two daemons as far as parts are concerned, each a process with a worker of its own, and nothing else of a job.

The first worker says parts as fast as it may, the second takes them. Printed: processor seconds of each daemon, without
its worker, and seconds in all.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable
from pathlib import Path

from aiohttp import web

from axonp2p.errors import Unreachable
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import FromMember, MayTell, ToMember
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.lanes.lane import BulkLane
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.mesh.link import MeshMember
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.transport.messages import JoinMesh
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from peer_daemon.execution.worker_credit import WorkerCredit
from tests.lab.bench.ground import Ground
from tests.lab.laboratory import ROOT

PART = 256 * 1024
_RESERVATION = "00000000-0000-4000-8000-000000000000"


class Daemon:
    """The member with that rank."""

    def __init__(self, rank: int, folder: Path, address: str, *, lanes: bool) -> None:
        self.rank, self.other = rank, 1 - rank
        self._address = address
        self._folder = folder
        ours, theirs = socket.socketpair()
        words = [sys.executable, "-m", "tests.lab.bench.carrying", "worker", str(theirs.fileno()), str(self.other)]
        self._worker = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        theirs.close()
        self.channel = WorkerChannel(ours)
        self.credit = WorkerCredit()
        self._key = PrivateKey.generate()
        certificate = make_certificate(self._key, folder / f"{rank}.pem")
        app = web.Application()
        self.listener = Listener(self._key, certificate, app)
        self.listener.serve_sessions(app, self._serve)
        own = BulkLanes(certificate) if lanes else None
        if own is not None:
            self.listener.take_lanes(own)
        self.mesh = Mesh(
            self._key, _RESERVATION, self.deliver, self.lost, self, policy=DialPolicy(lambda: [address]), lanes=own
        )
        self.taken = 0
        self.moved = asyncio.Event()

    async def begin(self) -> None:
        """Listen, and meet the other one by what both write into the folder."""
        port = await self.listener.start(self._address, 0)
        own = {
            "peer": self._key.peer_id,
            "at": f"{self._address}:{port}",
            "print": self.listener._fingerprints[0].hex(),
        }
        (self._folder / f"{self.rank}.new").write_text(json.dumps(own))
        (self._folder / f"{self.rank}.new").rename(self._folder / f"{self.rank}.json")
        theirs = self._folder / f"{self.other}.json"
        await asyncio.to_thread(_until_there, theirs)
        one = json.loads(theirs.read_text())
        member = MeshMember(self.other, one["peer"], "other", [one["at"]], bytes.fromhex(one["print"]))
        self.credit.begin(self.mesh.set_roster(self.rank, [member]))

    async def send(self, count: int) -> None:
        """Carry so many parts from the worker to the other member."""
        telling = asyncio.create_task(self.credit.keep_telling(self._tell))
        for _ in range(count):
            message, payload = await self.channel.receive()
            assert isinstance(message, ToMember)
            self.mesh.post(message.rank, payload)
            self.credit.said(message.rank, len(payload))
        telling.cancel()

    async def take(self, count: int) -> None:
        """Wait until so many parts have come to the worker."""
        while self.taken < count:
            self.moved.clear()
            await self.moved.wait()

    async def end(self) -> None:
        """The worker's too."""
        self._worker.kill()
        self._worker.wait()
        await self.mesh.close()
        await self.listener.stop()

    async def deliver(self, rank: int, payload: memoryview) -> None:
        await self.channel.send(FromMember(rank=rank), payload)
        self.taken += 1
        self.moved.set()

    async def lost(self, rank: int, reason: str) -> None:
        print(f"lost: {reason}", file=sys.stderr)

    async def turn(self, link: Hashable, count: int) -> None:
        """Nobody limits it."""

    async def word(self, count: int) -> None:
        """Nobody limits it."""

    def went(self, rank: int, count: int) -> None:
        self.credit.went(rank, count)

    def opened(self, session: Session) -> None:
        """Nobody counts."""

    def lane_opened(self, lane: BulkLane) -> None:
        """Nobody counts."""

    def hold_back(self, count: int) -> float:
        return 0.0

    async def _tell(self, word: MayTell) -> None:
        await self.channel.send(word)

    async def _serve(self, session: Session) -> None:
        await session.receive(JoinMesh)
        await self.mesh.adopt(session)


def _until_there(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


async def daemon(rank: int, folder: Path, address: str, parts: int, *, lanes: bool) -> None:
    """One of them, until all parts are carried; its figures are printed."""
    own = Daemon(rank, folder, address, lanes=lanes)
    await own.begin()
    warm = min(parts, 64)
    await (own.take(warm) if rank else own.send(warm))
    began, used = time.monotonic(), time.process_time()
    await (own.take(parts + warm) if rank else own.send(parts))
    print(json.dumps({"processor": time.process_time() - used, "seconds": time.monotonic() - began}), flush=True)
    (folder / f"{rank}.done").touch()
    await asyncio.to_thread(_until_there, folder / f"{own.other}.done")
    await own.end()


def worker(descriptor: int, to: int) -> None:
    """Says parts for as far as it has credit, and takes what comes, until the daemon is gone."""
    inside, part, left = Inside(descriptor), os.urandom(PART), 0
    try:
        while True:
            message, _ = inside.receive()
            left += message.bytes if isinstance(message, MayTell) else 0
            while left > 0:
                inside.send(ToMember(rank=to), part)
                left -= PART + 256
    except Unreachable:
        return


def carry(ground: Ground, count: int, *, lanes: bool) -> dict[str, float]:
    """Nanoseconds a byte of the daemon that sends and of the one that receives, and seconds, for so many bytes."""
    parts = max(1, count // PART)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.lab.bench.carrying", "daemon"]
        way = "lanes" if lanes else "session"
        both = [
            subprocess.Popen(
                [*ground.inside(rank), *words, str(rank), folder, ground.address(rank), str(parts), way],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for rank in (0, 1)
        ]
        found = [json.loads(one.communicate()[0]) for one in both]
    sends, receives = (one["processor"] * 1e9 / (parts * PART) for one in found)
    return {"sends": sends, "receives": receives, "seconds": found[1]["seconds"]}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["worker", descriptor, to]:
            worker(int(descriptor), int(to))
        case ["daemon", rank, folder, address, parts, way]:
            asyncio.run(daemon(int(rank), Path(folder), address, int(parts), lanes=way == "lanes"))
