"""Finds out for `axon-peer setup`: what this computer is, which trackers its network names, and whether one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, TrackerUnreachable
from axonp2p.plain_text import mebibytes_text
from axonp2p.table.dht.lan import LanPeer
from axonp2p.table.dht.mdns import Lan
from axonp2p.table.health import ask_health
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, nobody_vouches
from axonp2p.transport.tls import presented_fingerprint
from peer_daemon.gpus.gpu_lending import gpu_words
from peer_daemon.idle.power import Power
from peer_daemon.lending.hardware import processor_model
from peer_daemon.lending.offer import MeasuredMachine
from peer_daemon.setup.tracker_trial import TrackerTrial, judged

LISTEN_S = 2.0
TRACKER_WITHIN_S = 8.0


def computer_text(machine: MeasuredMachine) -> str:
    """ "AMD EPYC, 2 cores, 23.5 GiB memory, no GPU, 79.1 GiB free, on the mains"."""
    on_battery, _ = Power(Path("/")).read()
    gpus = gpu_words(machine.gpus)
    power = "" if on_battery is None else ", on battery" if on_battery else ", on the mains"
    cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
    memory, disk = mebibytes_text(machine.memory_mb), mebibytes_text(machine.disk_mb)
    return f"{processor_model()}, {cores}, {memory} memory, {gpus}, {disk} free{power}"


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


async def try_trackers(addresses: Iterable[str], clock: Clock) -> list[TrackerTrial]:
    """Call each once, side by side, within some seconds."""
    return list(await asyncio.gather(*(_try(PinnedAddress.parse(address), clock) for address in addresses)))


async def _try(address: PinnedAddress, clock: Clock) -> TrackerTrial:
    async with line_to(address) as line:
        try:
            async with asyncio.timeout(TRACKER_WITHIN_S):
                return judged(address, await ask_health(line, clock))
        except TimeoutError:
            cause = f"no answer within {TRACKER_WITHIN_S:.0f} s"
            return TrackerTrial(address, TrackerUnreachable(f"{line.called} cannot be reached", cause=cause))
        except AxonError as error:
            presented = b""
            if nobody_vouches(error.__cause__):  # an authority's certificate is replaced often: nothing may pin it
                with suppress(TimeoutError, *NETWORK_ERRORS):
                    presented = await presented_fingerprint(address.host, address.port, TRACKER_WITHIN_S)
            return TrackerTrial(address, error, presented=presented)
