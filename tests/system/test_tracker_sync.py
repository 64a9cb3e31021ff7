"""Real trackers that share a table: pushes within moments, an empty comeback, a late joiner, a stop and its status."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Need, as_map
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import announce, line_to, query
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import make_row
from tests.laboratory.fork_server import fork_server
from tests.system.processes import Processes

pytestmark = pytest.mark.timeout(300)

PATIENCE_S = 60.0
"""How long a loaded machine may take for what takes a second or two on a quiet one."""
KEYS = [PrivateKey.generate() for _ in range(40)]


def rows_now(keys: list[PrivateKey], **changes: Any) -> list[Signed[Row]]:
    now = time.time()
    return [sign(key, make_row(key, now=now, sequence=int(now * 1000), **changes)) for key in keys]


async def tell(tracker: str, rows: list[Signed[Row]]) -> None:
    async with line_to(PinnedAddress.parse(tracker)) as line:
        for row in rows:
            await announce(line, row)


async def table(tracker: str) -> dict[str, int]:
    """The number of every row that a tracker shows, by peer."""
    async with line_to(PinnedAddress.parse(tracker)) as line:
        found = await query(line, as_map(Need()), 200, now=time.time())
    return {row.peer: row.sequence for row in found.rows}


async def equal(trackers: list[str], rows: list[Signed[Row]]) -> float:
    """Seconds until every tracker shows just these rows."""
    wanted = {row.signer: int(_row(row).sequence) for row in rows}
    began = time.monotonic()
    while True:
        tables = [await table(tracker) for tracker in trackers]
        if all(each == wanted for each in tables):
            return time.monotonic() - began
        assert time.monotonic() - began < PATIENCE_S, [len(each) for each in tables]
        await asyncio.sleep(0.05)


def _row(signed: Signed[Row]) -> Row:
    from axonp2p.wire.codec import decode_as

    return decode_as(signed.payload, Row, Row.LIMIT)


def status(home: Path) -> dict[str, Any]:
    done = fork_server().run("tracker.main", ["status", "--json", "--home", str(home)], 60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def until(what: Callable[[], bool], why: str) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_S, why
        time.sleep(0.2)


def living(home: Path) -> int:
    return sum(other["lives"] for other in status(home)["trackers"])


def test_three_trackers_share_one_table_whatever_becomes_of_one(tmp_path: Path) -> None:
    with Processes(tmp_path, first_tracker="one") as processes:
        processes.start_tracker("two", knows=[processes.tracker])
        processes.start_tracker("three", knows=[processes.tracker])
        one, two, three = (processes.trackers[name] for name in ("one", "two", "three"))
        # Two and three were told of one only: they learn of each other.
        for name in processes.trackers:
            until(lambda name=name: living(tmp_path / name) == 2, f"{name} does not find both others")

        rows = rows_now(KEYS)
        asyncio.run(tell(one, rows))
        asyncio.run(equal([one, two, three], rows))

        # New rows in place of the old, told to another tracker; some leave.
        leaving, staying = rows_now(KEYS[:10], capability=None), rows_now(KEYS[10:])
        asyncio.run(tell(two, [*leaving, *staying]))
        asyncio.run(equal([one, two, three], staying))

        processes.kill("three")
        more = rows_now(KEYS[10:])
        asyncio.run(tell(one, more))
        asyncio.run(equal([one, two], more))
        until(lambda: living(tmp_path / "one") == 1, "the dead one is not missed")
        processes.start_tracker("three")  # with its old table, and no word of the others in its settings
        asyncio.run(equal([one, two, three], more))

        processes.kill("three")
        processes.empty("three")
        processes.start_tracker("three")
        asyncio.run(equal([three], more))

        seen = status(tmp_path / "one")
        assert (seen["alive"], len(seen["trackers"])) == (30, 2)
        assert all(other["lag_s"] is not None and other["lag_s"] < PATIENCE_S for other in seen["trackers"])
        assert all(other["bytes_sent"] > 0 for other in seen["trackers"])
        text = fork_server().run("tracker.main", ["status", "--home", str(tmp_path / "one")], 60).stdout
        assert "trackers 2 of 2 up" in text
        assert text.count(" up ") == 2
