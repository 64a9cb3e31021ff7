"""Looks at the trackers' logs for `axon doctor`, beside what this client saw of them before. Judges nothing itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.log_watch import FILE, keep_watched, look_at_logs, read_watched
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from client_cli.doctor.facts import LogFacts


async def look_at_logs_of(home: Path, addresses: Sequence[str]) -> LogFacts:
    """Ask the trackers at these addresses, and keep what was seen in `home`."""
    kept, trouble, fix = str(home / FILE), "", ""
    try:
        watched = await asyncio.to_thread(read_watched, home)
    except MalformedMessage as error:
        watched, trouble, fix = WatchedLogs(), error.message, error.fix
    pinned = [PinnedAddress.parse(address) for address in addresses]
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(line_to(address)) for address in pinned]
        looked = await look_at_logs(lines, watched)
    if not trouble:  # else the damaged file stays, for whoever wants to read it
        await asyncio.to_thread(keep_watched, home, watched)
    facts = LogFacts(trouble=trouble, fix=fix, kept=kept)
    names: dict[PeerId, str] = {}
    for address, one in zip(pinned, looked, strict=True):
        if one.head is None:
            facts.unproved[address.host_port] = one.trouble
            continue
        names[one.head.tracker] = address.host_port
        facts.entries[address.host_port] = one.head.size
        if one.unproved:
            facts.unproved[address.host_port] = one.unproved
        if one.began_anew:
            facts.anew[address.host_port] = (one.began_anew.size, one.head.size)
    for convicted in watched.convicted:
        name = f"{names.get(convicted.tracker, 'that is silent now')} ({short(convicted.tracker)})"
        facts.false[name] = convicted.why
    return facts
