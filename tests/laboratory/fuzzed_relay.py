"""A relay's three sides: who registers there, who says CONNECT, and what both say inside of the stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import (
    FromRegistered,
    OpenStream,
    RegisterAtRelay,
    RelayTerms,
    StreamReady,
    StreamRefused,
)
from axonp2p.transport.tunnel.tunnel import ask_relay, pick_up
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.codec import Message, encode
from tests.laboratory.fuzzed_world import HANG_S, Found, World
from tests.laboratory.message_values import KEYS
from tests.laboratory.mutations import mutated


async def feed_relay(world: World, found: Found, relay: PinnedAddress, relay_id: PeerId) -> None:
    """Register, be called, and answer what is nearly right."""
    assert relay.fingerprint
    key, caller = world.values.key(), world.caller()
    place = BareWhereabouts(relay_id, [relay.host_port], relay.fingerprint)
    session = await dial(key, place, called="the relay", local_address=caller)
    streams: list[asyncio.Task[None]] = []
    try:
        await session.send(RegisterAtRelay())
        async with asyncio.timeout(HANG_S):
            await session.receive(RelayTerms)
        for _ in range(world.chance.choice((1, 3))):
            streams.append(asyncio.create_task(_call(world, found, relay, key.peer_id)))
        async with asyncio.timeout(HANG_S):
            for _ in streams:
                await _answer(world, found, session, relay)
    except TimeoutError:
        pass  # it carries nothing to who did not answer
    finally:
        await session.close()
        _, hanging = await asyncio.wait(streams, timeout=2 * HANG_S) if streams else (set(), set())
        found.hangs += len(hanging)
        for one in hanging:
            one.cancel()


async def _call(world: World, found: Found, relay: PinnedAddress, registered: PeerId) -> None:
    chance = world.chance
    name = chance.choice((registered, registered, registered, chance.choice(KEYS).peer_id, "x" * 300, "127.0.0.1"))
    port = chance.choice(("443", "443", "443", "0", "99999", "", "443\t", "-1"))
    head = f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}"
    head += chance.choice(("", "", "", "\r\nContent-Length: 99999999", "\r\nTransfer-Encoding: chunked", "\r\nX: \x7f"))
    found.inputs += 1
    with suppress(AxonError):
        line = await ask_relay(relay, head, granted=200, local_address=world.caller())
        await _speak(world, line)


async def _answer(world: World, found: Found, session: Session, relay: PinnedAddress) -> None:
    order, _ = await session.receive(OpenStream)
    chance, ticket = world.chance, order.ticket
    steps: list[Message | None] = [None, StreamReady(ticket=ticket)]
    steps += [world.values.any_of(FromRegistered), StreamRefused(ticket=ticket, reason="x" * 99)][: chance.randrange(3)]
    if chance.random() < 0.4:
        chance.shuffle(steps)
    lines: list[asyncio.Transport] = []
    for step in steps:
        found.inputs += 1
        if step is None:
            with suppress(AxonError):
                lines.append(await pick_up(relay, chance.choice((ticket, ticket, ticket, ticket[::-1], "0" * 32))))
            continue
        header = encode(step) if chance.random() < 0.7 else mutated(chance, encode(step))
        await session._line.send_bytes(len(header).to_bytes(4) + header)
    for line in lines:
        await _speak(world, line)


async def _speak(world: World, line: asyncio.Transport) -> None:
    """Bytes of no meaning; a relay carries them all, or ends the stream."""
    for _ in range(world.chance.choice((0, 1, 20))):
        if line.is_closing():
            break
        line.write(world.chance.randbytes(world.chance.choice((1, 100, 60_000))))
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    line.abort() if world.chance.random() < 0.5 else line.close()
