"""What a terminal says of copies of one command, without words of a training."""

from __future__ import annotations

import pytest

from axonp2p.client.events import events
from axonp2p.client.events.event import Event
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import CopiesFailed
from axonp2p.kinds.run import events as run_events
from client_cli.text.event_text import after, end_line, line_of, line_without_bar
from client_cli.text.job_text import job_data, jobs_text, status_text
from client_cli.text.kind_text import Shown, text_of

OF_A_TRAINING = ("round", "loss", "train", "weight", "shard", "model")


def spelled(*words: str) -> str:
    return " ".join(["axon", *words])


def last(job: JobFolder) -> events.JobFinished:
    event = job.read_events()[-1]
    assert isinstance(event, events.JobFinished)
    return event


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            events.JobSubmitted(job="s-1", folder="s", peers=4, rounds=8, bundle_bytes=410_000),
            "submitted s-1: 8 copies on up to 4 peers, bundle 410 KB",
        ),
        (
            events.JobSubmitted(job="s-1", folder="s", peers=4, rounds=8, bundle_bytes=10, resumed_from_round=3),
            "resumed s-1 after 3 of 8 copies: up to 4 peers, bundle 10 B",
        ),
        (run_events.CopyBegun(index=3, attempt=0, peer="wren"), ""),
        (
            run_events.CopyRetried(index=3, attempt=1, peer="wren", reason="exit code 1"),
            "copy 3 begins again at wren (attempt 2): exit code 1",
        ),
        (
            run_events.SpeculativeCopy(index=3, attempt=1, peer="wren", slow_peer="otter"),
            "copy 3 is begun at wren as well: it is stuck at otter",
        ),
        (run_events.CopyEnded(index=3, attempt=0, peer="wren", code=0, seconds=1.0), ""),
        (
            run_events.CopyEnded(index=3, attempt=0, peer="wren", code=-9, seconds=1.0, reason="timeout"),
            "copy 3 ended with signal 9 at wren after 1.0 s (timeout)",
        ),
        (run_events.CopyEnded(index=3, attempt=0, peer="wren", code=-9, seconds=1.0, reason="order"), ""),
        (
            run_events.OutputsKept(index=3, peer="wren", files=1, bytes=2000, done=5, copies=8, left_out=2),
            "copy 3 is done at wren, 1 file of 2.0 KB: 5 of 8; 2 files that fit too did not come",
        ),
        (run_events.OutputsKept(index=3, peer="wren", files=1, bytes=2000, done=5, copies=800), ""),
        (
            run_events.IndexFailed(index=3, peer="wren", code=5, reason="", done=5, copies=8),
            "warning: copy 3 failed, its attempts are spent: exit code 5 at wren",
        ),
        (
            run_events.ResultsDamaged(file="results.csv.damaged", done=1),
            "warning: results.csv was damaged (put aside as results.csv.damaged): 1 result is kept,"
            " the others are made again",
        ),
        (
            run_events.OutputsLost(indices=[3, 7], done=1),
            "warning: files of results are not here, and are made again: 3 7",
        ),
        (events.PeerLost(peer="wren", round=2, reason="gone", left=3), "wren left: gone. The 3 peers left continue."),
        (events.PeerLost(peer="wren", round=2, reason="gone", left=0), "wren left: gone. No peer is left."),
    ],
)
def test_lines_that_stay(event: Event, said: str) -> None:
    assert line_of(event, "run") == said


def test_nothing_that_is_said_of_copies_speaks_of_a_training(job: JobFolder) -> None:
    told = job.read_events()
    lines = [line_without_bar(event, "run") + end_line(event, "run") for event in told]
    shown = Shown()
    for event in told:
        shown = after(shown, event, "run")
        lines += [shown.doing, shown.headline, shown.peers, shown.facts]
    lines.append(text_of("run").end.summary(last(job), told))
    facts = job_data(job.read(), at_work=False) | {"kept_in": "/k"}
    lines += [status_text(facts, spelled), jobs_text([facts], 2000.0)]
    assert not [line for line in lines for word in OF_A_TRAINING if word in line.lower()]


def test_the_bar_counts_copies_and_says_what_each_peer_runs(job: JobFolder) -> None:
    told = job.read_events()
    shown = Shown()
    for event in told[:10]:
        shown = after(shown, event, "run")
    assert (shown.doing, shown.done, shown.units) == ("1 of 3 copies", 1.0, 3)
    assert shown.peers == "otter runs 2   wren runs 1"
    for event in told[10:]:
        shown = after(shown, event, "run")
    assert (shown.doing, shown.headline, shown.peers) == ("done", "1 failed", "")


def test_without_a_bar_each_result_has_a_line() -> None:
    kept = run_events.OutputsKept(index=3, peer="wren", files=0, bytes=0, done=5, copies=8000)
    assert line_without_bar(kept, "run") == "copy 3 is done at wren: 5 of 8,000"


def test_the_summary_and_the_error_name_the_failed_copies(job: JobFolder) -> None:
    end, told = text_of("run").end, job.read_events()
    summary = end.summary(last(job), told)
    assert summary.startswith("Done in 9.0 s.   3 copies, 1 failed: 2\n")
    assert f"{job.path}/results.csv" in summary
    failure = end.failure(last(job), told, spelled)
    assert isinstance(failure, CopiesFailed)
    assert failure.message == "1 of 3 copies failed: 2"
    assert failure.fix == "axon logs sweep-7f3a --index 2"
    data = end.data(last(job), told)
    assert (data["copies"], data["failed"]) == (3, [2])
    assert "loss" not in data


def test_a_job_whose_copies_all_ended_well_is_no_failure(job: JobFolder) -> None:
    told: list[Event] = [run_events.JobResults(job="s", folder="/s", copies=3, failed=[], seconds=1.0)]
    end = text_of("run").end
    assert end.failure(last(job), told, spelled) is None
    assert "3 copies, all ended well" in end.summary(last(job), told)


def test_status_and_jobs_count_copies(job: JobFolder) -> None:
    facts = job_data(job.read(), at_work=False) | {"kept_in": "/k"}
    status = status_text(facts, spelled)
    assert "copies    3 of 3 done, 1 failed" in status
    assert status.endswith("results: axon fetch sweep-7f3a -o OUT")
    assert "unpaid" not in facts
    assert "3/3 copies  1 failed" in jobs_text([facts], 2000.0)
