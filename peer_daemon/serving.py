"""Runs the daemon from start to signal: one for a home folder, and everything put away in the end."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from axonp2p.files import locked
from axonp2p.settings import PeerSettings
from axonp2p.supervision import cancel_and_wait
from peer_daemon.app import Peer


async def serve(home: Path, settings: PeerSettings) -> None:
    """Run a peer until SIGTERM or SIGINT. Raises what makes it impossible, `AlreadyRunning` too."""
    with locked(
        home / "lock",
        f"a peer already runs with {home}",
        fix="stop it first, or give this one its own folder: axon-peer run --home DIR --listen 0.0.0.0:0",
    ):
        await _serve(home, settings)


async def _serve(home: Path, settings: PeerSettings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    peer = Peer(home, settings)
    starting = asyncio.create_task(peer.start())
    asked = asyncio.create_task(stopping.wait())
    await asyncio.wait([starting, asked], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        await cancel_and_wait(starting)
        return
    starting.result()
    broken = asyncio.create_task(peer.until_broken())
    try:
        await asyncio.wait([broken, asked], return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            broken.result()
    finally:
        broken.cancel()
        asked.cancel()
        await peer.stop()
