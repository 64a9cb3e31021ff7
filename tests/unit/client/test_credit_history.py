"""Receipts asked of a real tracker, checked, and proved to a program that knows nothing of ours."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonp2p.client.credit_history import History, Pending, ask_history, compare_heads, pending_of
from axonp2p.errors import LogForked
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.receipt import open_doubly_signed
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from client_cli.credit_history_text import history_csv, history_table, pending_text
from tests.fakes import ManualClock, key_of
from tests.unit.tracker.conftest import Running, start_tracker
from tests.unit.tracker.logs import ADA, BEN, CLIENT, convicted, paid, rewrite

SCRIPT = Path(__file__).parents[3] / "scripts" / "verify_ledger"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Running]:
    (tmp_path / "tracker").mkdir()
    running = await start_tracker(tmp_path / "tracker")
    yield running
    await running.stop()


async def history(lab: Running, home: Path, key: str, **changes: int | bool) -> History:
    lab.clock.time += 2
    health = TrackerHealth([str(lab.address)])
    lines = TrackerLines(health, ManualClock(), random.Random(1))
    try:
        usual: dict[str, int | bool] = {"most": 0, "prove": True}
        return await ask_history(lines, home, key, **(usual | changes))  # type: ignore[arg-type]
    finally:
        await lines.close()


def verified(path: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, path, *words], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


async def test_a_proof_is_checked_by_a_program_that_knows_nothing_of_ours(lab: Running, tmp_path: Path):
    await paid(lab, ADA, BEN, rounds=130)
    found = await history(lab, tmp_path, CLIENT.peer_id)
    (tmp_path / "proof").write_bytes(found.proof)
    code, said = verified(tmp_path / "proof", "--json", "--root", found.head.root.hex())
    assert code == 0, said
    told = json.loads(said)
    assert (told["receipts"], told["owed_flops"], told["earned"]) == (260, str(260 * 10**12), 0)
    assert told["owed"] == pytest.approx(credits_of(260 * 10**12))
    assert verified(tmp_path / "proof", "--root", "00" * 32)[0] == 1


async def test_the_history_is_whole_and_the_newest_first(lab: Running, tmp_path: Path):
    await paid(lab, ADA, BEN, rounds=130)
    found = await history(lab, tmp_path, ADA.peer_id, prove=False)
    assert [line.number for line in found.lines] == list(range(258, -1, -2))
    assert all(line.counts for line in found.lines)
    some = await history(lab, tmp_path, ADA.peer_id, most=3, prove=False)
    assert [line.number for line in some.lines] == [258, 256, 254]
    table = history_table(some, {CLIENT.peer_id: "me"}).splitlines()
    assert table[1].split()[:4] == ["258", "2027-01-15", "08:00", "job-1"]
    assert "from me" in table[1]
    assert "log of 260 entries" in table[-1]
    rows = history_csv(found).splitlines()
    assert len(rows) == 131
    assert rows[1].startswith("0,2027-01-15T08:00:00+00:00,job-1,1,")


async def test_receipts_of_a_convicted_peer_are_void_in_its_history_and_in_the_proof(lab: Running, tmp_path: Path):
    (first, *_) = await paid(lab, ADA, BEN, rounds=3)
    await convicted(lab, of=ADA, reservation=open_doubly_signed(first).reservation)
    await paid(lab, ADA, rounds=4)
    found = await history(lab, tmp_path, ADA.peer_id)
    assert len(found.lines) == 7
    assert not any(line.counts for line in found.lines)
    # However few are asked for: the word that makes them void may be older, or newer.
    assert not any(line.counts for line in (await history(lab, tmp_path, ADA.peer_id, most=2, prove=False)).lines)
    assert all(line.counts for line in (await history(lab, tmp_path, BEN.peer_id, prove=False)).lines)
    (tmp_path / "proof").write_bytes((await history(lab, tmp_path, CLIENT.peer_id)).proof)
    code, said = verified(tmp_path / "proof", "--json")
    assert code == 0, said
    told = json.loads(said)
    assert (told["receipts"], told["void"], told["owed_flops"]) == (3, 7, str(3 * 10**12))
    (tmp_path / "proof").write_bytes(found.proof)
    assert "7 more are void" in verified(tmp_path / "proof")[1]


async def test_a_key_without_receipts_has_an_empty_proof(lab: Running, tmp_path: Path):
    found = await history(lab, tmp_path, key_of("stranger").peer_id)
    assert found.lines == []
    (tmp_path / "proof").write_bytes(found.proof)
    code, said = verified(tmp_path / "proof")
    assert (code, "0 receipts" in said) == (0, True)


async def test_a_tracker_that_rewrote_its_log_is_not_believed(lab: Running, tmp_path: Path):
    await paid(lab, ADA, rounds=5)
    await history(lab, tmp_path, ADA.peer_id)
    await lab.stop()
    rewrite(tmp_path / "tracker", lambda entries: entries[::-1])
    again = await start_tracker(tmp_path / "tracker", lab.clock)
    try:
        with pytest.raises(LogForked, match="two logs of 5 entries"):
            await history(again, tmp_path, ADA.peer_id)
        # It stays named, whatever it shows later.
        with pytest.raises(LogForked):
            await compare_heads(again.caller, tmp_path)
    finally:
        await again.stop()


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A credit proof of seven receipts, and of what would make those of another job void."""
    import asyncio

    async def make() -> bytes:
        home = tmp_path_factory.mktemp("proof")
        (home / "tracker").mkdir()
        running = await start_tracker(home / "tracker")
        try:
            (first, *_) = await paid(running, ADA, rounds=6)
            await paid(running, ADA)
            await convicted(running, of=ADA, reservation=open_doubly_signed(first).reservation, job="another")
            return (await history(running, home, ADA.peer_id)).proof
        finally:
            await running.stop()

    return asyncio.run(make())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_of_a_proof_can_be_changed(proof: bytes, data: st.DataObject):
    verify = _verifier()
    good = verify["verify"](proof)
    changed = bytearray(proof)
    changed[data.draw(st.integers(0, len(proof) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = verify["verify"](bytes(changed))
    except Exception:
        return
    assert found == good, "a changed proof says something else and is believed"


def _verifier() -> dict[str, object]:
    names: dict[str, object] = {"__name__": "verify_ledger"}
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), names)
    return names


def test_what_jobs_wait_for_is_pending():
    assert pending_of([]) == Pending(0, 0)
    assert pending_text(Pending(0, 0)) == ""
    assert "2 receipts of yours, 2.31 credits" in pending_text(Pending(2, 10**12))


def test_the_verifier_uses_nothing_of_ours():
    assert "axonp2p" not in SCRIPT.read_text()
