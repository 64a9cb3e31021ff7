"""Receipts asked of a real tracker, checked, and proved to a program that knows nothing of ours."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonp2p.client.ledger.credit_history import CreditHistory, PendingCredit, ask_history, compare_heads, pending_of
from axonp2p.client.ledger.own_keys import own_keys
from axonp2p.client.queries import ask_credits
from axonp2p.client.storage.job_record import JobRecord, NumberedReceipts
from axonp2p.errors import LogForked
from axonp2p.hosting.host import job_key
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.credit_proof import CreditProof
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.receipt import open_doubly_signed
from axonp2p.reservation.token import Token
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import open_signed, sign
from client_cli.text.credits_table import credits_table, history_csv, history_table, pending_text
from tests.fakes import ManualClock, key_of, make_receipt, sign_both
from tests.unit.tracker.conftest import Running, start_tracker
from tests.unit.tracker.logs import ADA, BEN, CLIENT, convicted, paid, rewrite

SCRIPT = Path(__file__).parents[4] / "client_cli" / "verify_ledger.py"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Running]:
    (tmp_path / "tracker").mkdir()
    running = await start_tracker(tmp_path / "tracker")
    yield running
    await running.stop()


async def history(lab: Running, home: Path, *keys: str, **changes: int | bool) -> CreditHistory:
    lab.clock.time += 2
    health = TrackerHealth([str(lab.address)])
    lines = TrackerLines(health, ManualClock(), random.Random(1))
    try:
        usual: dict[str, int | bool] = {"most": 0, "prove": True}
        return await ask_history(lines, home, keys, **(usual | changes))  # type: ignore[arg-type]
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


async def by_host(lab: Running, key: PrivateKey, job: str, rounds: int) -> None:
    """A host works on a job, with the job's own key."""
    lab.clock.time += 1
    await lab.announce(ADA, sequence=int(lab.clock.now()))
    uuid = open_signed(await lab.reserve(job_key(key, job), ADA), Token).uuid
    receipts = [make_receipt(job_key(key, job), ADA, uuid, number) for number in range(1, rounds + 1)]
    kept = await hand_in(lab.caller, [sign_both(job_key(key, job), ADA, receipt) for receipt in receipts])
    assert kept.new == rounds


async def test_what_hosts_signed_for_is_in_history_balance_and_proof(lab: Running, tmp_path: Path):
    jobs = [f"job-{number}" for number in range(210)]  # more than one question may name
    own = own_keys(CLIENT, jobs)
    await by_host(lab, CLIENT, "job-7", 105)
    await paid(lab, ADA, rounds=3)
    await by_host(lab, CLIENT, "job-209", 2)
    await by_host(lab, key_of("somebody else"), "job-7", 4)
    found = await history(lab, tmp_path, *own)
    mine = [CLIENT.peer_id, job_key(CLIENT, "job-7").peer_id, job_key(CLIENT, "job-209").peer_id]
    assert found.keys == mine
    assert [line.number for line in found.lines] == list(range(109, -1, -1))
    assert "to ada" in history_table(found, own | {ADA.peer_id: "ada"})
    newest = await history(lab, tmp_path, *own, most=3, prove=False)
    assert [line.number for line in newest.lines] == [109, 108, 107]
    (tmp_path / "proof").write_bytes(found.proof)
    code, said = verified(tmp_path / "proof", "--json")
    assert code == 0, said
    told = json.loads(said)
    assert (told["keys"], told["receipts"], told["owed_flops"]) == (mine, 110, str(110 * 10**12))
    assert "and 2 more keys" in verified(tmp_path / "proof")[1]

    lab.clock.time += 2
    lines = TrackerLines(TrackerHealth([str(lab.address)]), ManualClock(), random.Random(1))
    try:
        credits = await ask_credits(lines, tmp_path, own, {ADA.peer_id: "ada"}, "")
    finally:
        await lines.close()
    assert [(one.name, one.owed_flops, one.receipts) for one in credits.balances if one.name == "you"] == [
        ("you", 110 * 10**12, 110)
    ]
    assert [one.name for one in credits.balances] == ["ada", "you"]
    assert {one.name: one.receipts for one in credits.hosted} == {"job-7": 105, "job-209": 2}
    assert "what hosts signed for: job-7" in credits_table(credits)


async def test_a_proof_about_others_or_with_a_key_twice_is_wrong(lab: Running, tmp_path: Path):
    await paid(lab, ADA, rounds=1)
    good = decode_as((await history(lab, tmp_path, ADA.peer_id)).proof, CreditProof, 10**6)
    for keys in ([], [BEN.peer_id], [ADA.peer_id, ADA.peer_id]):
        (tmp_path / "proof").write_bytes(encode(msgspec.structs.replace(good, keys=keys)))
        assert verified(tmp_path / "proof")[0] == 1


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


@pytest.mark.slow
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


def record_with(*signed: bytes, state: JobState = JobState.PAUSED) -> JobRecord:
    waiting = NumberedReceipts(reservation="r", peer=ADA.peer_id, last=len(signed), open=list(signed))
    return TrainRecord(
        id="job-1",
        name="job",
        folder="",
        spec={},
        created=0,
        updated=0,
        peers_wanted=1,
        rounds=1,
        state=state,
        receipts=[waiting],
    )


def test_what_jobs_wait_for_is_pending():
    own = own_keys(CLIENT, ["job-1"])
    assert pending_of([], own) == PendingCredit(0, 0)
    assert pending_text(PendingCredit(0, 0)) == ""
    assert "2 receipts of yours, 2.31 credits" in pending_text(PendingCredit(2, 10**12))
    by_me, by_host, by_another = (
        encode(sign(key, make_receipt(key, ADA, "0" * 36)))
        for key in (CLIENT, job_key(CLIENT, "job-1"), key_of("somebody else"))
    )
    # What a host's copy says of others, or cannot be read, is not this client's.
    assert pending_of([record_with(by_me, by_host, by_another, b"nonsense")], own) == PendingCredit(2, 2 * 10**12)
    assert pending_of([record_with(by_me, state=JobState.FINISHED)], own) == PendingCredit(0, 0)


def test_the_verifier_uses_nothing_of_ours():
    assert "axonp2p" not in SCRIPT.read_text()
