"""Looks around for `axon doctor`: at this computer, at every tracker that is known, at the DHT. Judges nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

import axonp2p
from axonp2p.client.discovery.trackers import dial_policy, nobody_known, which_trackers
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, KeyFileUnsafe, MalformedMessage, SettingsError
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.log_watch import FILE, keep_watched, look_at_logs, read_watched
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.missing_modules import installed_versions
from axonp2p.peers.capability import Need, as_map
from axonp2p.peers.rtt import PingTarget, measure
from axonp2p.sandbox.walls.diagnosis import LINUX_ONLY
from axonp2p.settings import ClientSettings, read_settings
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.routing.node_state import load_state
from axonp2p.table.health import ask_health
from axonp2p.table.records import MOST_ROWS, Row
from axonp2p.table.shared_table import dht_contacts_of
from axonp2p.table.side_by_side import ask_all
from axonp2p.table.tracker_client import dht_contacts, known_trackers, line_to, query
from axonp2p.table.tracker_file import read_health
from axonp2p.transport.address import PinnedAddress, split_host_port
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from client_cli.doctor.checks import groups_of
from client_cli.doctor.facts import ClientFacts, ClientMachineFacts, ClientTrackerFacts, DhtFacts, LogFacts

LOOK_AGAIN_AFTER_S = 3.0
"""Rows that are on their way between trackers arrive within this time."""
TRACKER_WITHIN_S = 8.0
"""For a tracker when no other one has answered."""
DHT_WITHIN_S = 8.0
NODES_TRIED = 5
"""Of nodes that are silent over UDP, so many are called over TCP."""


@dataclasses.dataclass(frozen=True)
class _Heard:
    address: str
    facts: ClientTrackerFacts
    contacts: list[str]
    """HOST:PORT (UDP) of DHT nodes."""
    nodes: list[Row]
    """Peers that are DHT nodes."""
    others: list[str]
    """Addresses of trackers that it knows."""


async def probe(home: Path, given: Iterable[str], clock: Clock) -> ClientFacts:
    """Everything, side by side, in a bounded time. Raises `SettingsError` when config.toml cannot be read."""
    settings = read_settings(home)
    machine = asyncio.create_task(asyncio.to_thread(_look_at_machine, home))
    trouble = fix = ""
    configured: list[str] = []
    try:
        configured = [str(address) for address in which_trackers(given, settings, home)]
    except SettingsError as error:
        trouble, fix = error.in_a_line, error.fix
    known = dict.fromkeys([*configured, *read_health(home / "trackers.json", configured, clock.now()).addresses])
    if not known and not trouble:
        nobody = nobody_known(home)
        trouble, fix = nobody.message, nobody.fix
    named = [PinnedAddress.parse(address) for address in configured]
    dials = await asyncio.to_thread(dial_policy, named, settings.client)
    heard = await _ask_all(known, configured, dials, clock)
    learnt = {other: None for one in heard for other in one.others if other not in known}
    heard += await _ask_all(learnt, configured, dials, clock)
    trackers = [one.facts for one in heard]
    if len(groups_of([tracker for tracker in trackers if not tracker.trouble])) > 1:
        await asyncio.sleep(LOOK_AGAIN_AFTER_S)
        trackers = [one.facts for one in await _ask_all({**known, **learnt}, configured, dials, clock)]
    logs = await look_at_logs_of(home, [one.address for one in heard if not one.facts.trouble])
    dht = await _look_at_dht(home, settings.client, heard, dials, clock)
    return ClientFacts(await machine, trackers, dht, logs, trouble, fix)


async def _ask_all(
    addresses: Iterable[str], configured: Iterable[str], dials: DialPolicy, clock: Clock
) -> list[_Heard]:
    named = set(configured)

    def late(address: str, seconds: float) -> _Heard:
        facts = ClientTrackerFacts(PinnedAddress.parse(address).host_port, configured=address in named)
        return _Heard(address, facts.silent(seconds), [], [], [])

    return await ask_all(
        list(addresses),
        lambda one: _ask(one, None if one in named else dials, clock),
        is_answer=lambda heard: not heard.facts.trouble,
        late=late,
    )


async def _ask(address: str, dials: DialPolicy | None, clock: Clock) -> _Heard:
    pinned = PinnedAddress.parse(address)
    facts = ClientTrackerFacts(pinned.host_port, configured=dials is None)
    async with line_to(pinned, dials) as line:
        try:
            async with asyncio.timeout(TRACKER_WITHIN_S):
                return await _ask_everything(address, line, facts, clock)
        except TimeoutError:
            told = facts.silent(TRACKER_WITHIN_S)
        except AxonError as error:
            told = facts.ended_by(error)
    return _Heard(address, told, [], [], [])


async def _ask_everything(address: str, line: HttpCaller, facts: ClientTrackerFacts, clock: Clock) -> _Heard:
    health = await ask_health(line, clock)
    found = await query(line, as_map(Need(also_taken=True)), MOST_ROWS, now=health.time)
    others = [row.address for row in (await known_trackers(line, now=health.time)).rows]
    told = dataclasses.replace(
        facts,
        rtt_s=health.rtt_s,
        clock_off_s=health.clock_off_s,
        version=health.version,
        hindered=" ".join(health.trouble.split()),
        alive=found.fitting,
        peers=frozenset(row.peer for row in found.rows),
        names={row.peer: row.name for row in found.rows},
    )
    return _Heard(address, told, await dht_contacts(line), [row for row in found.rows if row.dht], others)


async def _look_at_dht(
    home: Path, settings: ClientSettings, heard: Sequence[_Heard], dials: DialPolicy, clock: Clock
) -> DhtFacts:
    if not settings.dht:
        return DhtFacts(wanted=False)
    saved = [contact.address for contact in load_state(home / "dht.json", clock.now())]
    told = [one for each in heard for one in each.contacts if dials.allows(split_host_port(one)[0])]
    told += [one for each in heard for row in each.nodes for one in dht_contacts_of(row, dials)]
    contacts = list(dict.fromkeys([*told, *settings.dht_contacts, *saved]))
    if not contacts:
        return DhtFacts(wanted=True)
    node = DhtNode(PrivateKey.generate(), clock, random.SystemRandom(), serves=False)
    try:
        await node.listen("0.0.0.0", 0)  # noqa: S104 (a free port, on which nobody is served)
    except AxonError as error:
        return DhtFacts(wanted=True, known=len(contacts), trouble=error.in_a_line)
    try:
        async with asyncio.timeout(DHT_WITHIN_S):
            answering = await node.bootstrap(contacts)
    except TimeoutError:
        answering = len(node.contacts(MOST_ROWS))
    finally:
        await node.stop()
    nodes = {row.peer: row for one in heard for row in one.nodes}
    over_tcp = await _answering_over_tcp(list(nodes.values())[:NODES_TRIED], dials) if nodes and not answering else None
    return DhtFacts(wanted=True, known=len(contacts), answering=answering, over_tcp=over_tcp)


async def _answering_over_tcp(peers: Iterable[Row], dials: DialPolicy) -> int:
    distances = await measure({row.peer: PingTarget(row.name, row) for row in peers}, dials)
    return sum(distance.seconds is not None for distance in distances.values())


def _look_at_machine(home: Path) -> ClientMachineFacts:
    key_trouble = key_fix = ""
    key = home / "client.key"
    if key.exists():
        try:
            load_or_create_key(key)
        except KeyFileUnsafe as error:
            key_trouble, key_fix = error.in_a_line, error.fix
    return ClientMachineFacts(
        home=str(home),
        versions=installed_versions(axonp2p.__version__),
        key_trouble=key_trouble,
        key_fix=key_fix,
        sandbox_trouble=_sandbox_trouble(),
        disk_free_mb=shutil.disk_usage(home).free // 2**20,
        memory_mb=psutil.virtual_memory().total // 2**20,
    )


def _sandbox_trouble() -> str:
    if sys.platform == "win32":
        return LINUX_ONLY
    # Its modules do not load on Windows.
    from axonp2p.sandbox.child import why_no_sandbox

    return why_no_sandbox()


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
