"""Doors of real processes on loopback, fed with messages that are nearly right; and what is watched meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import psutil

from axonp2p.errors import AxonError
from axonp2p.hosting.messages import HostAsk
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import ClientMessage, FirstMessage
from axonp2p.ledger.log_messages import EntriesAsked, HistoryAsked, InclusionAsked, LeavesAsked, ProofAsked
from axonp2p.ledger.receipt import BalancesAsked, Receipts
from axonp2p.ledger.voiding import EvidenceAsked, VoidingHandedIn
from axonp2p.reservation.token import ReserveRequest
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.messages import FromWorkerMessage
from axonp2p.table.dht.rpc import datagrams
from axonp2p.table.dht.rpc.rpc import Call, Find, Get, Hi, Put
from axonp2p.table.records import KnownTrackers, Query, Report, Row, TrackerRow
from axonp2p.table.sync_messages import Push, SyncAsked
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.messages import DialBack
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.tunnel.messages import FromRegistered
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.envelope import Signed
from tests.laboratory.fuzzed_answers import feed_answers
from tests.laboratory.fuzzed_homes import break_a_file, feed_client_homes, host_a_job
from tests.laboratory.fuzzed_leases import feed_true_leases
from tests.laboratory.fuzzed_relay import feed_relay
from tests.laboratory.fuzzed_world import HANG_S, TROUBLE, Feed, Found, World
from tests.laboratory.message_values import KEYS, Values
from tests.laboratory.mutations import mutated
from tests.system.processes import QUIET, Processes

FEED_S = 200.0
"""One feed may be a whole job among liars; what it asks has bounds of its own."""
RUNS_S = 8.0
"""A program that has not ended by then runs."""

TRACKER_ENDPOINTS: dict[str, Any] = {
    "announce": Signed[Row],
    "query": Query,
    "reserve": Signed[ReserveRequest],
    "receipts": Receipts,
    "voidings": VoidingHandedIn,
    "evidence": EvidenceAsked,
    "report": Signed[Report],
    "balances": BalancesAsked,
    "consistency": ProofAsked,
    "inclusion": InclusionAsked,
    "leaves": LeavesAsked,
    "entries": EntriesAsked,
    "history": HistoryAsked,
    "trackers": KnownTrackers,
    "push": Push,
    "sync": SyncAsked,
}
PEER_ENDPOINTS: dict[str, Any] = {"reserve": Signed[ReserveRequest], "dialback": DialBack, "row": Signed[TrackerRow]}
SESSION_WORDS: tuple[Any, ...] = (FirstMessage, HostAsk, ClientMessage, FromRegistered)


async def _post(world: World, found: Found, where: PinnedAddress, endpoints: dict[str, Any]) -> None:
    connector = aiohttp.TCPConnector(ssl=False, local_addr=(world.caller(), 0), force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=HANG_S)) as client:
        for _ in range(8):
            name = world.chance.choice(list(endpoints))
            found.inputs += 1
            try:
                async with client.post(f"{where.url}/v1/{name}", data=world.encoded(endpoints[name])) as answer:
                    await answer.read()
                    found.fives += answer.status == 500
            except TimeoutError:
                found.hangs += 1
            except (aiohttp.ClientError, OSError):
                continue


async def feed_tracker(world: World, found: Found) -> None:
    """Every address of a tracker."""
    await _post(world, found, world.tracker, TRACKER_ENDPOINTS)


async def feed_peer(world: World, found: Found) -> None:
    """Every address of a peer."""
    assert world.peer_address
    await _post(world, found, world.peer_address, PEER_ENDPOINTS)


async def _converse(world: World, found: Found, peer: PeerId, where: PinnedAddress) -> None:
    assert where.fingerprint
    place = BareWhereabouts(peer, [where.host_port], where.fingerprint)
    try:
        session = await dial(world.values.key(), place, called="the fuzzed", local_address=world.caller())
    except AxonError:
        found.inputs += 1
        return
    line: Any = session._line
    try:
        for _ in range(world.chance.choice((1, 2, 5))):
            found.inputs += 1
            header = world.encoded(world.chance.choice(SESSION_WORDS))
            length = world.chance.choice((len(header), len(header), len(header), 0, 2**32 - 1, len(header) + 1))
            frame = length.to_bytes(4) + header + world.chance.randbytes(world.chance.choice((0, 0, 10, 3000)))
            with suppress(ConnectionError, aiohttp.ClientError):
                await asyncio.wait_for(line.send_bytes(frame), HANG_S)
        await asyncio.sleep(0.01)
    except TimeoutError:
        found.hangs += 1
    finally:
        await session.close()


async def feed_sessions(world: World, found: Found) -> None:
    """First messages, hosted jobs and registrations at a tracker."""
    tracker = world.tracker
    await _converse(world, found, await _id_of(world, tracker), tracker)


async def feed_relays(world: World, found: Found) -> None:
    """The tracker's relay and that of a peer which relays."""
    assert world.peer_address
    places = [(world.tracker, await _id_of(world, world.tracker)), (world.peer_address, world.peer_id)]
    together = [feed_relay(world, found, *world.chance.choice(places)) for _ in range(8)]
    for came in await asyncio.gather(*together, return_exceptions=True):
        if isinstance(came, Exception) and not isinstance(came, (AxonError, OSError)):
            raise came


async def feed_leases(world: World, found: Found) -> None:
    """First messages and the conversation of a lease at a peer."""
    assert world.peer_address
    await _converse(world, found, world.peer_id, world.peer_address)


async def _id_of(world: World, tracker: PinnedAddress) -> PeerId:
    if not world.tracker_id:
        connector = aiohttp.TCPConnector(ssl=False)
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.get(f"{tracker.url}/v1/health") as answer,
        ):
            world.tracker_id = (await answer.json())["tracker"]
    return world.tracker_id


async def feed_datagrams(world: World, found: Found) -> None:
    """The DHT's port of a peer; what it must do without is decoded here as well."""
    chance = world.chance
    id_, key, nonce = chance.randbytes(20), chance.randbytes(20), chance.randbytes(16)
    question = chance.choice((Hi(nonce), Find(key, b"", b""), Get(key, b"", b""), Put(key, 0, b"", b"x" * 100)))
    raw = datagrams.encode_call(Call(chance.randbytes(20), id_, True, question), 300)
    head, body = raw[:21], raw[21:]
    wrong = head + mutated(chance, body)
    found.inputs += 1
    for decode in (datagrams.decode_call, lambda data: datagrams.decode_answer(data, question)):
        try:
            decode(wrong)
        except AxonError:
            continue
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        for port in _udp_ports(world):
            with suppress(OSError):
                line.sendto(wrong[:60_000], ("127.0.0.1", port))
    await asyncio.sleep(0)


def _udp_ports(world: World) -> list[int]:
    if not world.udp_ports:
        process = psutil.Process(world.processes.process("peer").pid)
        world.udp_ports = [one.laddr.port for one in process.net_connections("udp4")]
    return world.udp_ports


async def feed_channel(world: World, found: Found) -> None:
    """What a worker says to its daemon, over a real pair of sockets."""
    ours, theirs = socket.socketpair()
    channel = WorkerChannel(ours)
    header = world.encoded(FromWorkerMessage)
    body = len(header).to_bytes(4) + header
    length = world.chance.choice((len(body), len(body), 0, 3, 2**32 - 1))
    found.inputs += 1
    try:
        theirs.send(length.to_bytes(4) + body[:100_000])
        theirs.close()
        async with asyncio.timeout(HANG_S):
            await channel.receive()
    except AxonError:
        pass
    except TimeoutError:
        found.hangs += 1
    finally:
        channel.close()


_PROGRAMS = (
    ("tracker.main", "tracker", ["run", "--listen", "127.0.0.1:0"]),
    ("peer_daemon.main", "peer", ["run", "--listen", "127.0.0.1:0"]),
    ("peer_daemon.main", "peer", ["doctor"]),
)


async def feed_files(world: World, found: Found) -> None:
    """A home with one broken file: its program runs all the same, or ends in an error of the family."""
    found.inputs += 1
    await asyncio.to_thread(_try_broken_home, world, found)


def _try_broken_home(world: World, found: Found) -> None:
    program, home, words = world.chance.choice(_PROGRAMS)
    host_a_job(world)
    copy = world.base / "broken"
    shutil.rmtree(copy, ignore_errors=True)
    left_out = ["*.sock", "lock", *(["jobs"] if home == "peer" else [])]  # a tracker's are those that it hosts
    shutil.copytree(world.base / home, copy, ignore=shutil.ignore_patterns(*left_out))
    broken = break_a_file(world.chance, copy)
    told = ["--tracker", world.processes.tracker] if words[0] == "run" else []
    command = [sys.executable, "-m", program, *words, *told, "--home", str(copy)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **QUIET}
    )
    try:
        said, _ = process.communicate(timeout=RUNS_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # it runs
        try:
            said, _ = process.communicate(timeout=3 * HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            found.hangs += 1
    if process.returncode == 70 or TROUBLE.search(said):
        found.crashes.append(f"{program} {words[0]} with {broken} broken: {said[-900:]}")


DOORS: dict[str, tuple[Feed, str]] = {
    "tracker": (feed_tracker, "tracker"),
    "sessions": (feed_sessions, "tracker"),
    "peer": (feed_peer, "peer"),
    "leases": (feed_leases, "peer"),
    "datagrams": (feed_datagrams, "peer"),
    "channel": (feed_channel, ""),
    "relay": (feed_relays, "tracker"),
    "true-leases": (feed_true_leases, "peer"),
    "files": (feed_files, ""),
    "homes": (feed_client_homes, ""),
    "answers": (feed_answers, "peer"),
}
"""Each door with what feeds it and the process behind it; without one it is this process."""
NEEDS_TO_BE_ALONE = ("answers",)
"""Liars name addresses that chance has made: only where no address but loopback's can be reached."""


def fuzz(base: Path, doors: list[str], seconds: float, seed: int) -> list[Found]:
    """Feed each of these doors for its share of so many seconds."""
    chance = random.Random(seed)
    with Processes(base) as processes:
        world = World(base, chance, processes, Values(chance, now=time.time()))
        if set(doors) - {"tracker", "sessions", "channel"}:
            processes.start_peers("peer", inside=("env", "AXON_PEER_RELAY=true"))
            _find_peer(world)
        return asyncio.run(_fuzz(world, doors, seconds))


def _find_peer(world: World) -> None:
    world.peer_id, address = (world.base / "peer" / "ready").read_text().split()
    from axonp2p.identity.certificate import make_certificate
    from axonp2p.identity.key_file import load_or_create_key

    key = load_or_create_key(world.base / "peer" / "peer.key")
    fingerprint = make_certificate(key, world.base / "peer" / "certificate.pem").fingerprint
    world.peer_address = PinnedAddress.of(address, fingerprint)


async def _fuzz(world: World, doors: list[str], seconds: float) -> list[Found]:
    assert KEYS
    results = []
    for door in doors:
        feed, behind = DOORS[door]
        pid = world.processes.process(behind).pid if behind else os.getpid()
        found = Found(door, rss_before=_rss(pid))
        said = len(world.processes.output(behind)) if behind else 0
        until = time.monotonic() + seconds / len(doors)
        while time.monotonic() < until:
            try:
                await asyncio.wait_for(feed(world, found), FEED_S)
            except TimeoutError:
                found.hangs += 1
            except (AxonError, OSError):
                continue
            except Exception as error:
                found.crashes.append(f"{type(error).__name__}: {error}")
        if behind:
            if world.processes.process(behind).poll() is not None:
                found.crashes.append(f"the {behind} ended")
            words = world.processes.output(behind)[said:]
            found.crashes += [words[max(0, one.start() - 200) : one.end() + 1500] for one in TROUBLE.finditer(words)]
        found.rss_after = _rss(pid)
        results.append(found)
    return results


def _rss(pid: int) -> int:
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss) // 2**20
    return 0


def table(results: list[Found]) -> str:
    """For people: a door a line, then what went wrong."""
    lines = [f"{'door':<12} {'inputs':>8} {'crashes':>8} {'500s':>6} {'hangs':>6} {'RSS before':>11} {'after':>6} MiB"]
    for one in results:
        lines.append(
            f"{one.door:<12} {one.inputs:>8} {len(one.crashes):>8} {one.fives:>6} {one.hangs:>6} "
            f"{one.rss_before:>11} {one.rss_after:>6}"
        )
    for one in results:
        lines += [f"\n{one.door}: {crash}" for crash in list(dict.fromkeys(one.crashes))[:5]]
    return "\n".join(lines)


def as_json(results: list[Found]) -> str:
    """The same for programs."""
    return json.dumps(msgspec.to_builtins(results), indent=1)
