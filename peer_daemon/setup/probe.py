"""Finds out for `axon-peer setup`: what this computer is, and which trackers its network names."""

from __future__ import annotations

import asyncio
from pathlib import Path

from axonp2p.table.dht.lan import Lan, LanPeer
from peer_daemon.idle.power import Power
from peer_daemon.lending.hardware import processor_model
from peer_daemon.lending.offer import MeasuredMachine

LISTEN_S = 2.0


def computer_text(machine: MeasuredMachine) -> str:
    """ "AMD EPYC, 2 cores, 23 GB memory, no GPU, 79 GB free, on the mains"."""
    on_battery, _ = Power(Path("/")).read()
    gpus = ", ".join(gpu.name for gpu in machine.gpus.cards) or "no GPU"
    power = "" if on_battery is None else ", on battery" if on_battery else ", on the mains"
    cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
    sizes = f"{machine.memory_mb / 1024:.0f} GB memory, {gpus}, {machine.disk_mb / 1024:.0f} GB free"
    return f"{processor_model()}, {cores}, {sizes}{power}"


async def trackers_of_lan() -> dict[str, str]:
    """Trackers that peers on the local network are in touch with, and the name of one such peer; within two seconds."""
    found: dict[str, str] = {}
    first = asyncio.Event()

    def heard(peer: LanPeer) -> None:
        for tracker in peer.trackers:
            found.setdefault(tracker, peer.name)
            first.set()

    lan = Lan(None, heard)
    if await lan.start():
        try:
            async with asyncio.timeout(LISTEN_S):
                await first.wait()
        except TimeoutError:
            pass  # nobody there
    await lan.stop()
    return found
