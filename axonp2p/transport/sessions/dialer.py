"""Opens sessions: pinned to the certificate of one peer, proving our key to it; direct, or through its relays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp

from axonp2p.errors import AxonError, MalformedMessage, PeerMisbehaved, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, translated
from axonp2p.transport.handshake import SESSION_PATH, answer_challenge, check_welcome
from axonp2p.transport.http.http_client import open_client
from axonp2p.transport.sessions.session import CLOSE_S, Session
from axonp2p.transport.tls import client_context, fingerprint_shown
from axonp2p.transport.ways import Way, Whereabouts, patience, ways_to
from axonp2p.wire.frame import FRAME_LIMIT


async def dial(
    key: PrivateKey,
    where: Whereabouts,
    *,
    called: str,
    ways: Sequence[Way] | None = None,
    tells_why: bool = True,
    local_address: str | None = None,
    timeout_s: float = 10,
) -> Session:
    """A session with the peer that is to be found there, on the first of its `ways` that leads.

    Without `ways` all addresses are tried: only where this machine's owner chose them. `tells_why` is
    `DialPolicy.tells_why`: without it only a plain `Unreachable` is raised, or what the peer itself refused with.
    `timeout_s` holds for each way. Raises `Unreachable` naming what failed where, `Refused` with its reason, or
    `PeerMisbehaved`, also when somebody else answers at the only address that answers.
    """
    ways = ways_to(where, None) if ways is None else ways
    failures: list[AxonError] = []
    for way in ways:
        client = open_client(way, local_address=local_address, timeout_s=timeout_s, connections=1)
        try:
            async with asyncio.timeout(patience(way, ways, timeout_s)):
                return await _open(client, way, key, where.peer, called)
        except (*NETWORK_ERRORS, AxonError) as error:
            await client.close()
            failure = error if isinstance(error, AxonError) else translated(error, called)
            if not isinstance(failure, (Unreachable, PeerMisbehaved)):
                raise failure from error
            failures.append(failure)
        except asyncio.CancelledError:
            await client.close()
            raise
    if not tells_why:
        raise Unreachable(f"{called} cannot be reached", cause=NOT_REACHED)
    for failure in failures:
        if isinstance(failure, PeerMisbehaved):
            raise failure
    causes = [f"{way}: {failure.cause or failure.message}" for way, failure in zip(ways, failures, strict=True)]
    raise Unreachable(f"{called} cannot be reached", cause="; ".join(causes) or NO_ADDRESS)


async def _open(client: aiohttp.ClientSession, way: Way, key: PrivateKey, peer: PeerId, called: str) -> Session:
    pinned = way.address.fingerprint
    line = await client.ws_connect(
        way.address.url + SESSION_PATH,
        ssl=client_context(verified=pinned is None),
        autoping=False,
        compress=0,
        max_msg_size=FRAME_LIMIT + 1,
        timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
    )
    challenge = await _next(line, called)
    # Where an authority vouched for the certificate, the proof is bound to the one that was shown.
    fingerprint = pinned or fingerprint_shown(line.get_extra_info("ssl_object"))
    await line.send_bytes(answer_challenge(challenge, key, peer=peer, fingerprint=fingerprint, called=called))
    check_welcome(await _next(line, called), called)
    address, port = line.get_extra_info("peername", (way.address.host, way.address.port))[:2]
    relay = "" if way.relay is None else str(way)
    session = Session(line, peer=peer, address=address, called=called, relay=relay, release=client.close)
    if way.relay is None:
        session.lanes_to = PinnedAddress(address, port, fingerprint)
    return session


async def _next(line: aiohttp.ClientWebSocketResponse, called: str) -> bytes:
    """The next message of the handshake."""
    kind, data, _ = await line.receive()
    if kind is aiohttp.WSMsgType.BINARY:
        return bytes(data)
    if kind is aiohttp.WSMsgType.TEXT:
        raise MalformedMessage(f"{called} sends text where only binary messages travel")
    raise Unreachable(f"{called} cannot be reached", cause="it hung up during the handshake")
