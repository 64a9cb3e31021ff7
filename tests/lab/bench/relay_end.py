"""One end of `scripts/bench/relay`, run inside of a host of the laboratory.

relay_end listen HOST:PORT RELAY RELAY_ID HOME   a peer, registered with the relay; prints where it is, as JSON
relay_end call WHERE SECONDS                     measures the way that each line of its input names (direct, relay)
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from axonp2p.errors import AxonError, Unreachable
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress, parse_listen
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.messages import Carry
from axonp2p.transport.relay.registration import Registration
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import BareWhereabouts, Way, ways_to

PART = bytes(256 * 1024)
PINGS = 20


async def listen(at: str, relay: str, relay_id: str, home: str) -> None:
    """Take what comes, and say at the end how much it was."""
    key, app = PrivateKey.generate(), web.Application()
    add_ping(app)
    certificate = make_certificate(key, Path(home) / "certificate.pem")
    listener = Listener(key, certificate, app)
    listener.serve_sessions(app, _drink)
    host, port = parse_listen(at)
    await listener.start(host, port)
    place = {"peer": key.peer_id, "addresses": [at], "certificate": certificate.fingerprint.hex(), "relays": [relay]}
    registration = Registration(key, PinnedAddress.parse(relay), relay_id, listener, called="the relay")
    with suppress(Unreachable):  # the relay is stopped first
        await registration.hold(lambda terms: print(json.dumps(place), flush=True))


async def _drink(session: Session) -> None:
    try:
        while True:
            await session.receive(Carry)
    except AxonError:
        return


async def call(where: str, seconds: float) -> None:
    """Measure again and again, until there is no more input."""
    told: dict[str, Any] = json.loads(where)
    place = BareWhereabouts(told["peer"], told["addresses"], bytes.fromhex(told["certificate"]), told["relays"])
    ways = {"relay" if way.relay else "direct": way for way in ways_to(place, None)}
    while line := await asyncio.to_thread(sys.stdin.readline):
        way = ways[line.strip()]
        found = {"rtt_ms": 1000 * await _rtt(way), "mbit": await _throughput(place, way, seconds)}
        print(json.dumps(found), flush=True)


async def _rtt(way: Way) -> float:
    async with HttpCaller(way.address, called="the peer", relay=way.relay) as caller:
        times = sorted([await caller.round_trip() for _ in range(PINGS)])
    return times[len(times) // 2]


async def _throughput(place: BareWhereabouts, way: Way, seconds: float) -> float:
    """Mbit/s that the other side's application has taken, once the line has found its speed."""
    session = await dial(PrivateKey.generate(), place, called="the peer", ways=[way])
    loop = asyncio.get_running_loop()
    sending = asyncio.create_task(_pour(session))
    try:
        await asyncio.sleep(seconds / 4)
        began, before = loop.time(), session.taken_frames
        await asyncio.sleep(seconds)
        taken = session.taken_frames - before
        return taken * len(PART) * 8 / 1e6 / (loop.time() - began)
    finally:
        sending.cancel()
        await session.close()


async def _pour(session: Session) -> None:
    while True:
        await session.send(Carry(), PART, bulk=True)


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "listen":
        asyncio.run(listen(*words))
    else:
        asyncio.run(call(words[0], float(words[1])))
