"""Looks around for `axon-peer doctor`: at this computer, its wall, its ports, its trackers. Judges nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import axonp2p
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, KeyFileUnsafe, NoDaemon, SandboxMissing, SettingsError
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.missing_modules import installed_versions
from axonp2p.sandbox.attacks.run import try_the_wall
from axonp2p.sandbox.card_trial import why_no_cuda
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.limits import Priority
from axonp2p.sandbox.walls import landlock
from axonp2p.sandbox.walls.seccomp import filter_program
from axonp2p.sandbox.watch.priority import lower
from axonp2p.sandbox.watch.worker_group import what_holds
from axonp2p.settings import PeerSettings, read_settings
from axonp2p.table.health import ask_health
from axonp2p.table.tracker_checks import TrackerFacts
from axonp2p.table.tracker_client import line_to
from axonp2p.table.tracker_file import read_health
from axonp2p.transport.address import PinnedAddress, parse_listen
from peer_daemon.control.caller import ask_status
from peer_daemon.doctor.facts import ContainFacts, MachineFacts, PeerFacts, PortFacts, Trouble
from peer_daemon.gpus.gpu_lending import why_no_power_limit
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.idle.read_idle_settings import idle_settings_of
from peer_daemon.idle.sensors import Sensors, Told
from peer_daemon.lending.hardware import look as look_at_machine
from peer_daemon.lending.lend_settings import limits_to_lend, priority_of
from peer_daemon.lending.lent_gpus import gpus_to_lend

TRACKER_WITHIN_S = 8.0


async def probe(home: Path, clock: Clock) -> PeerFacts:
    """Everything, in a bounded time; a daemon need not run."""
    settings, trouble = _settings(home)
    trackers = asyncio.create_task(_trackers(home, settings, clock))
    machine, senses = await asyncio.gather(
        asyncio.to_thread(_machine, home, settings, trouble), asyncio.to_thread(_senses, home)
    )
    ports = await _ports(home, settings)
    # Last and alone: what else is looked at shall not disturb the attempts.
    told = await trackers
    # As the jobs get it that have a GPU, where any may.
    gpus = gpus_to_lend(machine.gpus, allowed=settings.gpu, memory_mb=settings.gpu_memory_mb)
    contain = await _contain(priority_of(settings), gpus[0].access if gpus else None)
    return PeerFacts(machine, contain, senses, ports, told)


def _settings(home: Path) -> tuple[PeerSettings, Trouble]:
    try:
        settings = read_settings(home).peer
        idle_settings_of(settings)
        limits_to_lend(settings)
        for address in settings.trackers:
            PinnedAddress.parse(address)
        parse_listen(settings.listen)
    except SettingsError as error:
        return PeerSettings(), Trouble(error.in_a_line, error.fix)
    return settings, Trouble()


def _machine(home: Path, settings: PeerSettings, trouble: Trouble) -> MachineFacts:
    key = Trouble()
    if (home / "peer.key").exists():
        try:
            load_or_create_key(home / "peer.key")
        except KeyFileUnsafe as error:
            key = Trouble(error.in_a_line, error.fix)
    seen = look_at_machine(home)
    return MachineFacts(
        home=str(home),
        versions=installed_versions(axonp2p.__version__),
        key=key,
        settings=trouble,
        disk_free_mb=seen.disk_mb,
        keep_disk_free_mb=settings.keep_disk_free_mb,
        memory_mb=seen.memory_mb,
        cores=seen.cores,
        kinds=tuple(settings.kinds),
        gpus=seen.gpus,
        lends_gpu=settings.gpu,
        no_power_limit=why_no_power_limit(settings.gpu_power_percent if settings.gpu else 0, root=os.geteuid() == 0),
    )


def _senses(home: Path) -> list[Told]:
    sensors = Sensors(IdleSettings(), home, lambda: [os.getpid()])
    sensors.start()
    try:
        return sensors.what_can_be_read()
    finally:
        sensors.stop()


async def _contain(priority: Priority, gpu: GpuAccess | None) -> ContainFacts:
    no_sandbox = await asyncio.to_thread(why_no_sandbox)
    seccomp = Trouble()
    try:
        filter_program()
    except SandboxMissing as missing:
        seccomp = Trouble(missing.in_a_line, missing.fix)
    return ContainFacts(
        no_sandbox=no_sandbox,
        holds=what_holds(),
        seccomp=seccomp,
        landlock=landlock.version(),
        priority=priority,
        no_idle=await asyncio.to_thread(_why_not, priority),
        attempts=[] if no_sandbox else await try_the_wall(gpu, priority),
        no_cuda=await why_no_cuda(gpu, priority) if gpu and not no_sandbox else "",
    )


def _why_not(priority: Priority) -> str:
    """Lower a child as a worker is lowered; why that cannot be."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            lower(child.pid, priority)
        except OSError as error:
            return error.strerror or str(error)
        finally:
            child.kill()
    return ""


async def _ports(home: Path, settings: PeerSettings) -> PortFacts:
    ports = PortFacts(settings.listen, settings.page)
    try:
        status = await ask_status(home)
    except NoDaemon:
        return dataclasses.replace(
            ports,
            tcp=_why_not_bound(settings.listen, socket.SOCK_STREAM),
            udp=_why_not_bound(settings.listen, socket.SOCK_DGRAM) if settings.dht else "",
            page_port=_why_not_bound(settings.page, socket.SOCK_STREAM) if settings.page else "",
        )
    except AxonError as error:
        return dataclasses.replace(ports, running=f"one runs here, but: {error.in_a_line}")
    running = f"{status.name} runs here, {status.state}: {status.sentence}"
    return dataclasses.replace(
        ports, running=running, reachable=status.network.reachable, relays=tuple(status.network.relays)
    )


def _why_not_bound(listen: str, kind: socket.SocketKind) -> str:
    try:
        host, port = parse_listen(listen)
        family, *_, address = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind) as line:
            if kind is socket.SOCK_STREAM:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind(address)
    except SettingsError as error:
        return error.in_a_line
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def _trackers(home: Path, settings: PeerSettings, clock: Clock) -> list[TrackerFacts]:
    configured = [str(PinnedAddress.parse(address)) for address in settings.trackers]
    known: Iterable[str] = read_health(home / "trackers.json", configured, clock.now()).addresses
    asked = dict.fromkeys([*configured, *known])
    return list(await asyncio.gather(*(_ask(address, address in configured, clock) for address in asked)))


async def _ask(address: str, configured: bool, clock: Clock) -> TrackerFacts:
    pinned = PinnedAddress.parse(address)
    facts = TrackerFacts(pinned.host_port, configured)
    async with line_to(pinned) as line:
        try:
            async with asyncio.timeout(TRACKER_WITHIN_S):
                health = await ask_health(line, clock)
        except TimeoutError:
            return facts.silent(TRACKER_WITHIN_S)
        except AxonError as error:
            return facts.ended_by(error)
    hindered = " ".join(health.trouble.split())
    return dataclasses.replace(facts, rtt_s=health.rtt_s, clock_off_s=health.clock_off_s, hindered=hindered)
