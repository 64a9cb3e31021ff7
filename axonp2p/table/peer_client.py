"""A peer's own row, asked of the peer itself: what the DHT holds of it is too short for a job to choose by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from axonp2p.errors import AxonError, BadSignature, Unreachable
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.table.records import Row, open_row
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED, DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.ways import Whereabouts, patience, ways_to
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed

ROW_PATH = "/v1/row"
TIMEOUT_S = 3.0
"""For one address: it is one small question, of a machine that published itself minutes ago."""
AT_ONCE = 16

_ROW_LIMIT = Row.LIMIT + ENVELOPE_OVERHEAD


async def fetch_row(caller: HttpCaller, peer: PeerId, *, now: float) -> Row:
    """The row that the peer at the end of this line has published. `now` is Unix time.

    Raises `BadSignature` when it is another peer's, and what `HttpCaller.call` and `open_row` raise.
    """
    row = open_row(await caller.call(ROW_PATH, None, Signed[Row], _ROW_LIMIT), now)
    if row.peer != peer:
        raise BadSignature(f"{caller.called} answers with the row of {short(row.peer)}")
    return row


async def fetch_rows(peers: Sequence[Whereabouts], policy: DialPolicy, *, now: float) -> dict[PeerId, Row | AxonError]:
    """The rows of several peers, side by side; the reason instead where there is none. Raises nothing of the family."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(peer: Whereabouts) -> Row | AxonError:
        async with room:
            return await _fetch(peer, policy, now)

    rows = await asyncio.gather(*(one(peer) for peer in peers))
    return {peer.peer: row for peer, row in zip(peers, rows, strict=True)}


async def _fetch(peer: Whereabouts, policy: DialPolicy, now: float) -> Row | AxonError:
    called = f"peer {short(peer.peer)}"
    failure: AxonError = Unreachable(f"{called} cannot be reached", cause=NO_ADDRESS)
    ways = ways_to(peer, policy)
    for way in ways:
        limit = patience(way, ways, TIMEOUT_S)
        try:
            async with HttpCaller(way.address, called=called, relay=way.relay, timeout_s=limit) as caller:
                return await fetch_row(caller, peer.peer, now=now)
        except AxonError as error:
            failure = error
    return failure if policy.tells_why else Unreachable(f"{called} cannot be reached", cause=NOT_REACHED)
