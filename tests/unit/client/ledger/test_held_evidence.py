"""What trackers hold about a key, asked of real ones, and examined here."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from axonp2p.client.ledger.held_evidence import HeldEvidence, ask_evidence
from axonp2p.errors import MalformedMessage, TrackerUnreachable
from axonp2p.ledger.log_client import history
from axonp2p.ledger.log_messages import KeyHistoryTold
from axonp2p.ledger.voiding import open_voiding
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.verification.evidence import examine, read_evidence
from client_cli.text.trust_table import file_name, held_data, held_text
from tests.fakes import ManualClock
from tests.unit.tracker.conftest import Running, start_tracker
from tests.unit.tracker.logs import ADA, BEN, CLIENT, convicted, paid, reserved, tamper

NOWHERE = "https://127.0.0.1:9#" + "a" * 52


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Running]:
    (tmp_path / "tracker").mkdir()
    running = await start_tracker(tmp_path / "tracker")
    yield running
    await running.stop()


async def held(key: str, *addresses: str) -> list[HeldEvidence]:
    lines = TrackerLines(TrackerHealth(addresses), ManualClock(), random.Random(1))
    try:
        return await ask_evidence(lines, key)
    finally:
        await lines.close()


async def test_whoever_asks_about_the_accused_or_the_client_is_shown_it(lab: Running) -> None:
    uuid = await reserved(lab, ADA)
    handed_in = await convicted(lab, of=ADA, reservation=uuid)
    for key in (ADA.peer_id, CLIENT.peer_id):
        lab.clock.time += 2
        (one,) = await held(key, NOWHERE, str(lab.address))
        assert one.voiding == open_voiding(handed_in.voided)
        assert one.held_by == [f"tracker {lab.address.host_port}"]
        assert one.evidence == handed_in.evidence
        assert one.examined
        assert one.examined.convicts
        text = held_text(key, [one])
        assert f"This convicts otter ({ADA.peer_id})" in text
        assert "not a verdict" in text
        assert held_data(one)["examined"]["convicts"]
        assert file_name(one).startswith(ADA.peer_id[:8])
        assert examine(read_evidence(one.evidence)).convicts


async def test_against_whom_nothing_is_held_that_is_said(lab: Running) -> None:
    await paid(lab, ADA)
    lab.clock.time += 2
    assert await held(BEN.peer_id, str(lab.address)) == []
    assert held_text(BEN.peer_id, []) == f"No tracker that answers holds evidence about {BEN.peer_id}."
    with pytest.raises(TrackerUnreachable):
        await held(BEN.peer_id, NOWHERE)


async def test_what_a_tracker_holds_without_evidence_shows_nothing(lab: Running, tmp_path: Path) -> None:
    await convicted(lab, of=ADA, reservation=await reserved(lab, ADA))
    lab.clock.time += 2
    tamper(tmp_path / "tracker", ("DELETE FROM evidence", []))
    (one,) = await held(ADA.peer_id, str(lab.address))
    assert (one.examined, one.evidence) == (None, b"")
    assert "shows nothing: its evidence was not told" in held_text(ADA.peer_id, [one])


class Liar:
    """In the place of a line: a tracker whose history begins anew again and again."""

    called = "tracker liar"

    def __init__(self, told: KeyHistoryTold) -> None:
        self.told = told

    async def call(self, *asked: object) -> KeyHistoryTold:
        return self.told


async def test_a_history_that_never_ends_is_not_read_for_ever(lab: Running) -> None:
    await paid(lab, ADA, rounds=3)
    lab.clock.time += 2
    told = await history(lab.caller, ADA.peer_id)
    assert [one.number for one in told.entries] == [2, 1, 0]
    liar: Any = Liar(told)
    assert await history(liar, ADA.peer_id) == told
    with pytest.raises(MalformedMessage, match="out of order"):
        await history(liar, ADA.peer_id, before=2)
