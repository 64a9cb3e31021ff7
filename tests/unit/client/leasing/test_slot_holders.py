"""Who holds the slots that a job lacks, and when it asks for them again."""

from __future__ import annotations

from axonp2p.client.leasing.slot_holders import LONGEST_PATIENT_S, PATIENT_AFTER_S, LookPace, SlotHolder, with_holders
from axonp2p.errors import NobodyFits

ERROR = NobodyFits("this job needs 2 peers and can have 0", cause="seen 3 peers: every slot is taken (3)", fix="wait")
TAKEN = {"otter", "heron", "lynx"}


def holder(job: str, *peers: str, runs: bool = False) -> SlotHolder:
    return SlotHolder(job, frozenset(peers), runs)


def test_own_dead_jobs_are_named_before_those_that_run() -> None:
    holders = [holder("line-2", "lynx", runs=True), holder("cnn-1", "otter", "heron")]
    error = with_holders(ERROR, TAKEN, holders)
    assert error.message == ERROR.message
    assert error.cause == (
        "seen 3 peers: every slot is taken (3); of the slots 2 by your own job cnn-1, whose program is dead"
        " and 1 by your own job line-2, which runs"
    )
    assert error.fix == "axon resume cnn-1 continues it, axon cancel cnn-1 gives its slots back at once"


def test_a_job_that_runs_is_waited_for() -> None:
    error = with_holders(ERROR, TAKEN, [holder("line-2", "lynx", runs=True)])
    assert error.fix == "axon watch line-2 shows how far it is; axon submit DIR --wait 10min waits for it"


def test_what_others_hold_is_no_matter_of_own_jobs() -> None:
    assert with_holders(ERROR, TAKEN, []) is ERROR
    assert with_holders(ERROR, TAKEN, [holder("cnn-1", "wren")]) is ERROR


def test_a_job_asks_again_and_again_with_longer_pauses() -> None:
    pace = LookPace(2.0, 15.0, lambda: 0.5)
    assert [pace.pause(1000.0) for _ in range(5)] == [2.0, 4.0, 8.0, 15.0, 15.0]
    waited = 44.0
    while waited < PATIENT_AFTER_S:
        waited += pace.pause(1000.0)
    assert [pace.pause(1000.0) for _ in range(3)] == [30.0, LONGEST_PATIENT_S, LONGEST_PATIENT_S]
    assert pace.pause(7.0) == 7.0


def test_two_that_wait_do_not_ask_in_step() -> None:
    assert LookPace(4.0, 15.0, lambda: 0.0).pause(99.0) == 3.0
    assert LookPace(4.0, 15.0, lambda: 1.0).pause(99.0) == 5.0
