"""What the demo, a check, and the lists of jobs, peers and credits say."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import JobFinished
from axonp2p.client.queries import Credits, CreditTotal
from axonp2p.client.storage.job_record import ErrorRecord, PeerRecord
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import NeedSpec
from axonp2p.kinds.train.local.trial_messages import TrialFound
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.kinds.train.section import TrainJob, TrainSpec
from axonp2p.plain_text import bytes_text
from client_cli.check_peers import PeersAsked
from client_cli.demo import demo_report
from client_cli.text import credits_table, job_text
from client_cli.train import check_text

GOOD = demo_report.DemoResult(
    job=JobFinished(
        job="digits-7f3a", folder="/h", rounds=20, loss=0.1, metrics={"accuracy": 0.975}, samples=12800, seconds=9.0,
        first_step_s=2.0, wire_bytes=3_100_000, credits={"otter": 0.25, "wren": 0.125}, receipts=30,
        peers=["otter"], lost=["wren"],
    ),
    peers=4,
    parameters=4810,
    steps=10,
    judgement=demo_report.Accuracies(accuracy=0.975, baseline=0.97, test_samples=360),
    ledger=demo_report.LedgerCheck({"otter": 0.25, "wren": 0.125}, {"otter": 0.25, "wren": 0.125}, 30, 10**9),
    killed="wren",
    out="demo-out",
    seconds=12.0,
)  # fmt: skip


def spelled(*words: str) -> str:
    return " ".join(["axon", *words])


def test_a_good_demo_has_nothing_wrong_and_says_what_it_found() -> None:
    assert demo_report.what_is_wrong(GOOD) == ""
    text = demo_report.as_text(GOOD)
    assert "held-out accuracy 97.5 % (360 samples that no peer trained on)   one process alone: 97.0 %" in text
    assert "3.1 MB   (sending every gradient instead: 23.1 MB)" in text
    assert "30 receipts at the tracker, the same as the client's" in text
    assert "wren; the others continued" in text


def test_the_demos_json_has_what_scripts_need() -> None:
    data = json.loads(json.dumps(demo_report.as_data(GOOD)))
    assert {
        "accuracy",
        "baseline_accuracy",
        "peers",
        "rounds",
        "bytes_on_wire",
        "credits",
        "ledger_ok",
        "seconds",
    } <= set(data)
    assert data["ok"] is True
    assert data["credits"] == 0.375


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judgement": demo_report.Accuracies(0.94, 0.97, 360)}, "less than 95.0 %"),
        ({"judgement": demo_report.Accuracies(0.96, 0.97, 360)}, "the peers reported an accuracy of 97.5 %"),
        ({"ledger": demo_report.LedgerCheck({"otter": 0.2}, {"otter": 0.25}, 30, 1)}, "ledger"),
        ({"ledger": demo_report.LedgerCheck({}, {"otter": 0.25}, 0, 0)}, "ledger"),
        ({"ledger": demo_report.LedgerCheck({}, {}, 0, 0)}, "ledger"),
        ({"killed": "lynx"}, "lynx was killed"),
    ],
)
def test_what_makes_a_demo_no_success(change: dict[str, Any], said: str) -> None:
    assert said in demo_report.what_is_wrong(dataclasses.replace(GOOD, **change))


def test_next_commands_of_a_kept_swarm_lead_to_it() -> None:
    assert "axon swarm down" in demo_report.next_commands(True, spelled)
    assert "axon swarm up && axon submit my-job" in demo_report.next_commands(False, spelled)
    assert "activate" not in demo_report.next_commands(False, spelled)
    assert ". .venv/bin/activate " in demo_report.next_commands(False, spelled, ". .venv/bin/activate")


FOUND = TrialFound(
    parameters=4482, coded=4482, values=4490, exact=8, train_samples=2000, test_samples=500, flops_per_sample=1e6,
    frozen_bytes=0, step_s=0.02, metrics={"accuracy": 0.5}, unchecked="", not_loaded="",
)  # fmt: skip
CHECKED = check_text.Checked(
    TrainJob(name="x", need=NeedSpec(peers=4, min_peers=2), train=TrainSpec(rounds=10, steps=10, batch=10)),
    files=2, bundle_bytes=2800, trial=check_text.TaskTrial(FOUND), asked=PeersAsked(4),
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (4, "4 wanted, 4 would take it now"),
        (3, "only 3 would take it now: it can start with fewer"),
        (1, "only 1 would take it now: fewer than the 2 that it needs"),
        (None, "nobody was asked: no tracker is known"),
    ],
)
def test_a_check_says_how_many_peers_would_take_the_job(found: int | None, said: str) -> None:
    checked = dataclasses.replace(CHECKED, asked=PeersAsked(found, "no tracker is known", needed=2))
    text = check_text.as_text("x", checked, spelled)
    assert said in text
    assert ("x is in order." in text) == (found != 1)
    assert ("x has no mistake, but too few peers would take it now." in text) == checked.asked.too_few == (found == 1)


def test_a_check_says_why_work_could_not_be_checked() -> None:
    assert "unchecked" not in check_text.as_text("x", CHECKED, spelled)
    unchecked = msgspec.structs.replace(FOUND, unchecked="the task fails")
    checked = dataclasses.replace(CHECKED, trial=check_text.TaskTrial(unchecked))
    assert "unchecked   the task fails" in check_text.as_text("x", checked, spelled)
    assert check_text.as_data(checked)["unchecked"] == "the task fails"


def test_a_check_says_what_is_frozen_and_travels_once() -> None:
    assert "frozen" not in check_text.as_text("x", CHECKED, spelled)
    found = msgspec.structs.replace(FOUND, frozen_bytes=58_800_000)
    checked = dataclasses.replace(CHECKED, trial=check_text.TaskTrial(found))
    said = "frozen      58.8 MB of the model: once to this computer, and each peer has them of model()"
    assert said in check_text.as_text("x", checked, spelled)
    assert check_text.as_data(checked)["frozen_bytes"] == 58_800_000


def test_a_check_estimates_the_work_from_the_step_it_counted() -> None:
    assert CHECKED.flops(FOUND) == 4 * 10 * 10 * 10 * 10**6
    data = json.loads(json.dumps(check_text.as_data(CHECKED)))
    assert data["ok"] is True
    assert data["passes"] == 2.0
    text = check_text.as_text("x", CHECKED, spelled)
    assert "2,000 samples to train on, each 2 times; 500 held out" in text
    assert "a step took 20 ms here" in text
    assert data["credits"] == pytest.approx(4e9 * 200 / 86400e9)


def test_a_check_says_what_will_travel() -> None:
    text, data = check_text.as_text("x", CHECKED, spelled), check_text.as_data(CHECKED)
    assert "2 files, 2.8 KB to each peer" in text
    assert data["state_bytes"] == 4 * (4482 + 4490)
    assert "35.9 KB to this computer after each round" in text
    assert 0 < data["round_bytes"] < 10 * 4 * 4490 * 6
    assert f"about {bytes_text(data['round_bytes'])} a round among the peers: " in text
    alone = TrainJob(name="x", need=NeedSpec(peers=1))
    assert "among the peers" not in check_text.as_text("x", dataclasses.replace(CHECKED, spec=alone), spelled)


def test_a_task_that_cannot_be_tried_here_may_go_to_those_who_have_what_it_needs() -> None:
    lacks = "transformers>=4.40 cannot be had here"
    trial = check_text.TaskTrial(not_tried=lacks)
    asked = PeersAsked(2, needed=2, names=("otter", "lynx"), refusing=Counter({"lacks transformers>=4.40": 1}))
    checked = dataclasses.replace(CHECKED, trial=trial, asked=asked)
    text = check_text.as_text("x", checked, spelled)
    assert text.startswith("x has no mistake that can be found here.")
    assert lacks in text
    assert "4 wanted, only 2 would take it now (otter, lynx): it can start with fewer" in text
    assert "lacks transformers>=4.40 (1)" in text
    assert check_text.as_data(checked)["tried"] is False
    assert "parameters" not in check_text.as_data(checked)


def test_a_check_without_the_sandbox_says_what_it_is_worth() -> None:
    trial = check_text.TaskTrial(FOUND, no_sandbox="there is no bwrap")
    text = check_text.as_text("x", dataclasses.replace(CHECKED, trial=trial), spelled)
    assert "peers may refuse what went well here: there is no bwrap" in text


RECORD = TrainRecord(
    id="x-7f3a", name="x", folder="/x", spec={}, state=JobState.RUNNING, created=1000.0, updated=1001.0,
    peers_wanted=2, rounds=20, round=5, loss=0.25, metrics={"accuracy": 0.9}, credits={"otter": 0.001},
    peers=[
        PeerRecord(name="otter", peer="o" * 52, rank=0, reservation="r", rtt_s=0.001),
        PeerRecord(name="wren", peer="w" * 52, rank=1, reservation="r", rtt_s=0.002, lost="the line was cut"),
    ],
)  # fmt: skip


def test_a_job_that_nobody_works_on_though_it_is_not_over_was_interrupted() -> None:
    assert job_text.job_data(RECORD, at_work=True)["state"] == "running"
    assert job_text.job_data(RECORD, at_work=False)["state"] == "interrupted"
    finished = msgspec.structs.replace(RECORD, state=JobState.FINISHED)
    assert job_text.job_data(finished, at_work=False)["state"] == "finished"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (JobState.FINISHED, "axon fetch x-7f3a -o OUT"),
        (JobState.PAUSED, "axon resume x-7f3a"),
        (JobState.FAILED, "axon resume x-7f3a"),
        (JobState.CANCELLED, "left: the line was cut"),
    ],
)
def test_a_status_ends_with_the_command_that_makes_sense(state: JobState, said: str) -> None:
    record = msgspec.structs.replace(RECORD, state=state)
    facts = job_text.job_data(record, at_work=False) | {"kept_in": "/h/jobs/x-7f3a"}
    assert job_text.status_text(facts, spelled).splitlines()[-1].endswith(said)


def test_a_failed_job_says_why() -> None:
    error = ErrorRecord(code="AX-101", message="no peer is left", fix="submit again")
    record = msgspec.structs.replace(RECORD, state=JobState.FAILED, error=error)
    facts = job_text.job_data(record, at_work=False) | {"kept_in": "/h"}
    assert "error AX-101: no peer is left\nfix: submit again" in job_text.status_text(facts, spelled)


def test_a_job_that_waits_for_a_paused_peer_says_so_while_it_does() -> None:
    (otter, wren) = RECORD.peers
    peers = [msgspec.structs.replace(otter, paused="another program uses 87 % CPU"), wren]
    record = msgspec.structs.replace(RECORD, peers=peers, waits_for=["otter"])
    facts = job_text.job_data(record, at_work=True) | {"kept_in": "/h"}
    text = job_text.status_text(facts, spelled)
    assert "waiting for otter: it cannot continue without" in text
    assert "paused: another program uses 87 % CPU" in text
    facts = job_text.job_data(record, at_work=False) | {"kept_in": "/h"}
    assert "paused:" not in job_text.status_text(facts, spelled)
    assert "waits for" not in job_text.status_text(facts, spelled)


def test_a_line_a_job() -> None:
    lines = job_text.jobs_text([job_text.job_data(RECORD, at_work=True)], now=1075.0).splitlines()
    assert lines[1].split() == [
        "x-7f3a", "running", "5/20", "rounds", "loss", "0.25,", "accuracy", "90.0", "%", "2", "0.00100",
        "1", "min", "15", "s", "ago",
    ]  # fmt: skip


def test_the_state_of_a_job_that_a_host_carries_on_is_marked_as_what_it_said_last() -> None:
    facts = job_text.job_data(RECORD, at_work=True) | {"hosted": "10.0.0.1:7070, asked 5 min ago"}
    text = job_text.jobs_text([facts], now=1075.0)
    assert "running *" in text
    assert text.endswith("* as told by 10.0.0.1:7070, asked 5 min ago; axon jobs --hosted asks it now")
    assert "*" not in job_text.jobs_text([facts | {"state": "finished"}], now=1075.0)


def test_balances_say_what_they_are_the_sum_of() -> None:
    credit = CreditTotal(
        name="you", key="o" * 52, earned=0.0, owed=0.0023, earned_flops=0, owed_flops=10**9, receipts=60
    )
    text = credits_table.credits_table(Credits(tracker="tracker lab", receipts=60, balances=[credit]))
    assert text.splitlines()[-1] == "sum of 60 receipts at tracker lab"
    assert "0.00230" in text
    assert "stands" not in text


def test_balances_say_what_of_them_stands() -> None:
    credit = CreditTotal("otter", "o" * 52, 4.0, 0.0, 4 * 432 * 10**9, 0, 60, stands=1.5)
    text = credits_table.credits_table(Credits(tracker="tracker lab", receipts=60, balances=[credit]))
    assert text.splitlines()[0].split() == ["who", "id", "earned", "stands", "owed", "work", "receipts"]
    assert text.splitlines()[1].split()[2:5] == ["4.00", "1.50", "0"]
