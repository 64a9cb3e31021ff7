"""Real peers without a tracker, and with trackers that die: how they find each other, and how they are found."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import tomlkit

from axonp2p.clock import SystemClock
from axonp2p.errors import AxonError, Refused
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import EndLease, LeaseEnded, LeaseTaken, PeerMessage, TakeLease
from axonp2p.peers.capability import Need, as_map, read_capability
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.records.index_keys import RowQuery
from axonp2p.table.peer_client import fetch_row
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import query
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.dialer import dial
from axonp2p.wire.codec import encode
from axonp2p.wire.schema import SCHEMAS
from tests.system.network import Network, why_not
from tests.system.processes import Processes

pytestmark = pytest.mark.timeout(300)

PATIENCE_S = 60.0
"""How long a loaded machine may take for what takes a second or two on a quiet one."""
NO_NETWORK = why_not()
IDLE_LIMIT_KB = 66 * 1024
CLIENT = PrivateKey(b"c" * 32)


def write_config(base: Path, name: str, **settings: object) -> None:
    (base / name).mkdir(exist_ok=True)
    lines = tomlkit.dumps({"peer": {key.replace("_", "-"): value for key, value in settings.items()}})
    (base / name / "config.toml").write_text(lines)


def address_of(base: Path, name: str) -> str:
    return (base / name / "ready").read_text().split()[1]


async def until(what: Callable[[], Awaitable[bool]], why: str) -> float:
    """Seconds until it is so."""
    began = time.monotonic()
    while not await what():
        assert time.monotonic() - began < PATIENCE_S, why
        await asyncio.sleep(0.1)
    return time.monotonic() - began


@asynccontextmanager
async def stranger(contact: str) -> AsyncIterator[DhtNode]:
    """Somebody who knows one node and asks the DHT."""
    node = DhtNode(PrivateKey.generate(), SystemClock(), random.SystemRandom(), serves=False)
    await node.listen("127.0.0.1", 0)
    try:
        assert await node.bootstrap([contact])
        yield node
    finally:
        await node.stop()


def line_to(row: CompactRow) -> HttpCaller:
    return HttpCaller(PinnedAddress.of(row.addresses[0], row.certificate), called="the peer")


@pytest.fixture
def alone(tmp_path):
    """No tracker anywhere: otter is the first, heron and lynx know it."""
    with Processes(tmp_path, first_tracker="", warm=False) as processes:  # their memory is looked at
        write_config(tmp_path, "otter", datasets={"digits": str(tmp_path)}, upload_mbit=20, download_mbit=100)
        processes.start_peers("otter")
        for name in ("heron", "lynx"):
            write_config(tmp_path, name, dht_contacts=[address_of(tmp_path, "otter")], issue_tokens=name == "heron")
        processes.start_peers("heron", "lynx")
        yield processes


async def find(node: DhtNode, base: Path, *names: str) -> dict[str, tuple[CompactRow, Row]]:
    """These peers by name, once the DHT shows exactly them; with the rows that they give themselves."""
    wanted = {address_of(base, name): name for name in names}
    found: dict[str, CompactRow] = {}

    async def shows_them() -> bool:
        found.clear()
        found.update({row.addresses[0]: row for row in await node.find(RowQuery(), 20)})
        return set(found) == set(wanted)

    await until(shows_them, f"the DHT shows {set(found)} instead of {set(wanted)}")
    rows = {}
    for address, compact in found.items():
        async with line_to(compact) as line:
            rows[wanted[address]] = compact, await fetch_row(line, compact.peer, now=time.time())
    return rows


def test_peers_without_a_tracker_are_found_and_tell_all_of_themselves(alone, tmp_path):
    async def conversation() -> None:
        async with stranger(address_of(tmp_path, "lynx")) as node:
            rows = await find(node, tmp_path, "otter", "heron", "lynx")
            compact, row = rows["otter"]
            assert (row.name, row.addresses, row.certificate) == ("otter", compact.addresses, compact.certificate)
            offer = read_capability(row.capability)
            assert (offer.datasets, offer.upload_mbit, offer.download_mbit) == (["digits"], 20, 100)
            assert [rows[name][1].issues_tokens for name in ("otter", "heron", "lynx")] == [True, True, False]

            async def all_are_nodes() -> bool:
                found = await find(node, tmp_path, "otter", "heron", "lynx")
                return all(compact.dht and row.dht for compact, row in found.values())

            await until(all_are_nodes, "some are no nodes, although others reach them")
            # Who leaves is gone at once.
            await asyncio.to_thread(alone.stop, "heron")
            async with stranger(address_of(tmp_path, "lynx")) as other:
                await find(other, tmp_path, "otter", "lynx")

    asyncio.run(conversation())
    for name in ("otter", "lynx"):
        assert "Traceback" not in alone.output(name)


def test_an_idle_node_is_small_and_loads_neither_numpy_nor_torch(alone):
    for name in ("otter", "heron"):
        process = Path(f"/proc/{alone.process(name).pid}")
        status = (process / "status").read_text()
        assert int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) < IDLE_LIMIT_KB
        maps = (process / "maps").read_text()
        assert "libtorch" not in maps
        assert "numpy" not in maps
        assert "zeroconf" not in maps  # it listens on loopback alone


def test_a_node_finds_its_way_back_after_a_restart(alone, tmp_path):
    """It remembers whom it met; the one that it was told of in the settings is dead by then."""

    async def conversation() -> None:
        async with stranger(address_of(tmp_path, "heron")) as node:
            await find(node, tmp_path, "otter", "heron", "lynx")
        await asyncio.to_thread(alone.stop, "lynx")
        alone.kill("otter")
        write_config(tmp_path, "lynx")
        await asyncio.to_thread(alone.start_peers, "lynx")
        async with stranger(address_of(tmp_path, "heron")) as node:
            found = {row.addresses[0] for row in await node.find(RowQuery(), 20)}

            async def is_back() -> bool:
                found.update(row.addresses[0] for row in await node.find(RowQuery(), 20))
                return address_of(tmp_path, "lynx") in found

            await until(is_back, "lynx did not come back")

    asyncio.run(conversation())


@pytest.mark.sandbox
@pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here")
def test_a_lease_with_a_token_of_the_peer_itself(alone, tmp_path):
    async def conversation() -> None:
        async with stranger(address_of(tmp_path, "otter")) as node:
            rows = await find(node, tmp_path, "otter", "heron", "lynx")
        wish = {"uuid": new_uuid(), "kinds": ["train"], "seconds": 60, "now": time.time()}
        lynx, _ = rows["lynx"]
        async with line_to(lynx) as line:
            with pytest.raises(Refused, match="gives no tokens"):
                await reserve(line, CLIENT, [lynx.peer], **wish)
        compact, row = rows["heron"]
        async with line_to(compact) as line:
            with pytest.raises(Refused, match="for itself alone"):
                await reserve(line, CLIENT, [compact.peer, lynx.peer], **wish)
            token = await reserve(line, CLIENT, [compact.peer], **wish)
        assert token.signer == compact.peer
        session = await dial(CLIENT, row, called="heron", local_address=None)
        await session.send(
            TakeLease(schema=SCHEMAS["train"], token=encode(token), job="digits", kind="train", cores=1, memory_mb=512)
        )
        await session.receive(LeaseTaken)
        async with line_to(compact) as line:

            async def says_so() -> bool:
                newest = await fetch_row(line, compact.peer, now=time.time())
                return read_capability(newest.capability).free == 0

            await until(says_so, "the row does not say that the slot is taken")
        await session.send(EndLease())
        while not isinstance((await session.receive(PeerMessage))[0], LeaseEnded):
            pass
        await session.close()

    asyncio.run(conversation())


@pytest.mark.skipif(bool(NO_NETWORK), reason=NO_NETWORK or "network namespaces can be had")
def test_two_peers_of_one_local_network_find_each_other_untold(tmp_path, monkeypatch):
    monkeypatch.setenv("AXON_PEER_LAN", "true")  # alone in its network namespace

    async def have_met() -> bool:
        return all("published in the DHT" in processes.output(name) for name in ("otter", "heron"))

    with Network() as network, Processes(tmp_path, first_tracker="") as processes:
        inside = network.inside("left")
        for number, name in enumerate(("otter", "heron")):
            processes.start_peers(name, listen=f"{network.host('left', number)}:7071", inside=inside)
        asyncio.run(until(have_met, "they have not met"))


def test_a_peer_moves_among_trackers_as_they_die_and_come_back(tmp_path):
    async def knows(tracker: str) -> bool:
        try:
            async with HttpCaller(PinnedAddress.parse(tracker), called="the tracker") as line:
                return bool((await query(line, as_map(Need()), 10, now=time.time())).rows)
        except AxonError:
            return False

    async def conversation(processes: Processes) -> None:
        for name in ("two", "three"):
            processes.kill(name)
        await until(lambda: knows(processes.trackers["one"]), "the last tracker was not found")
        processes.kill("one")
        await asyncio.sleep(2)
        processes.empty("two")
        await asyncio.to_thread(processes.start_tracker, "two")
        took = await until(lambda: knows(processes.trackers["two"]), "it did not come back to an empty tracker")
        assert processes.process("otter").poll() is None
        assert took < 30  # 2 to 4 s where the machine is quiet
        await asyncio.to_thread(processes.stop, "otter")
        assert not await knows(processes.trackers["two"])

    with Processes(tmp_path, first_tracker="one") as processes:
        for name in ("two", "three"):
            processes.start_tracker(name, knows=[processes.tracker])
        processes.start_peers("otter")
        known = asyncio.run(until(lambda: knows(processes.trackers["one"]), "nobody knows the peer"))
        assert known < PATIENCE_S
        asyncio.run(conversation(processes))
        assert "Traceback" not in processes.output("otter")
