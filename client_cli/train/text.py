"""A training in words: how it stands, and what it came to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.train.kept.best_round import UNLESS_SAID, BestBy
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.kind_text import Command, KindEnd, KindLines, KindText, KindWords, credits_line, peers_line
from client_cli.text.render import duration_text, metric_text
from client_cli.train import lines


def _summary(event: JobFinished, told: Sequence[Event]) -> str:
    """As `KindEnd` has it."""
    metrics = "".join(f"   held-out {metric_text(name, value)}" for name, value in event.metrics.items())
    lines = [
        f"Done in {duration_text(event.seconds)}.   loss {event.loss:.4g}{metrics}",
        peers_line(event),
        f"  samples  {event.samples:,}   bytes on the wire {bytes_text(event.wire_bytes)}",
        credits_line(event),
    ]
    return "\n".join(lines)


def _data(event: JobFinished, told: Sequence[Event]) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(event)
    return facts


def _no_failure(event: JobFinished, told: Sequence[Event], command: Command) -> None:
    """A client that has weights has what was wanted."""


def _at_work(record: JobRecord, peers: int) -> str:
    if record.done >= record.units:
        return "all rounds are trained; the weights are on their way"
    return f"trains round {record.done + 1} of {record.units} on {plural(peers, 'peer')}"


def _finished(record: JobRecord) -> str:
    assert isinstance(record, TrainRecord)
    of = f" of {record.rounds}" if record.round < record.rounds else ""
    return f"{plural(record.round, 'round')}{of} trained"


def loss(job: dict[str, Any]) -> str:
    """Of a job's facts."""
    return "-" if job["loss"] is None else f"{job['loss']:.4g}"


def _metrics(job: dict[str, Any]) -> str:
    return ", ".join(metric_text(name, value) for name, value in job["metrics"].items())


def _facts(job: dict[str, Any]) -> dict[str, str]:
    best = job["best"] and f"after round {job['best']['rounds']}: {metric_text(_metric(job), job['best']['value'])}"
    return {
        "round": f"{job['round']} of {job['rounds']}",
        "loss": loss(job),
        "held-out": _metrics(job) or "-",
        "best": best or "-",
    }


def _metric(job: dict[str, Any]) -> str:
    return BestBy.read(job["spec"].get("train", {}).get("best", UNLESS_SAID)).metric


def _so_far(job: dict[str, Any]) -> str:
    return ", ".join(part for part in (f"loss {loss(job)}", _metrics(job)) if part != "loss -" and part)


TEXT = KindText(
    lines=KindLines(lines.stays, lines.round_line, lines.end, lines.bar, lines.again),
    words=KindWords(
        unit=KINDS["train"].unit,
        after=lambda done, rounds: f"after round {done} of {rounds}",
        during=lambda done, rounds: f"in round {min(done + 1, rounds)} of {rounds}",
        at_work=_at_work,
        finished=_finished,
        pausing="after this round",
        nothing_yet="no round is done yet, so there are no weights",
        result="weights",
        fetching="copies weights, metrics and logs into a folder.",
    ),
    end=KindEnd(_summary, _data, _no_failure),
    facts=_facts,
    so_far=_so_far,
)
"""The text that a terminal shows of a training."""
