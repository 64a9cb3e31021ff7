"""The outcome of `axon demo`: its figures, whether they are good, and the text about them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axonp2p.client.events.events import JobFinished
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.render import credits_text, duration_text, flops_text, percent_text

LEAST_ACCURACY = 0.95
EVALUATION_TOLERANCE = 0.005
"""Peers judge the weights on their shards of the test data; the same weights judged in one piece differ by rounding."""


@dataclass(frozen=True)
class LedgerCheck:
    """The record of the job in the tracker's ledger, beside the client's own record. Credits by peer."""

    tracker_credits: dict[str, float]
    client_credits: dict[str, float]
    receipts: int
    """At the tracker."""
    flops: int
    """At the tracker, of all peers."""

    @property
    def ok(self) -> bool:
        """Whether both say the same of every peer, and there is something to say."""
        return self.receipts > 0 and _positive(self.tracker_credits) == _positive(self.client_credits)


def _positive(credits: dict[str, float]) -> dict[str, float]:
    # Rounded, because a credit is a fraction of whole FLOPs: a million millionth of one is less than one FLOP.
    return {name: round(amount, 12) for name, amount in credits.items() if amount}


@dataclass(frozen=True)
class Accuracies:
    """Accuracies on the held-out data, found by processes that no peer had a hand in."""

    accuracy: float
    """Of the fetched weights."""
    baseline: float
    """Of one process alone, after the same number of samples."""
    test_samples: int


@dataclass(frozen=True)
class DemoResult:
    """One run of the demo."""

    job: JobFinished
    peers: int
    """At the start."""
    parameters: int
    steps: int
    """Local steps in a round."""
    judgement: Accuracies
    ledger: LedgerCheck
    killed: str
    """The peer that was killed on purpose, or empty."""
    out: str
    seconds: float
    """All of it, from the first process to the last check."""

    @property
    def every_gradient_bytes(self) -> int:
        """The bytes that peers would have sent for a ring all-reduce of every step's gradient in float32."""
        return 2 * (self.peers - 1) * 4 * self.parameters * self.steps * self.job.rounds

    @property
    def reported_accuracy(self) -> float:
        """The accuracy of the last weights, as the peers reported it."""
        return self.job.metrics.get("accuracy", 0.0)


def what_is_wrong(result: DemoResult) -> str:
    """The first reason why this run is no success, or an empty text."""
    found = result.judgement.accuracy
    if found < LEAST_ACCURACY:
        return f"held-out accuracy is {percent_text(found)}, less than {percent_text(LEAST_ACCURACY)}"
    if abs(found - result.reported_accuracy) > EVALUATION_TOLERANCE:
        reported = percent_text(result.reported_accuracy)
        return f"the peers reported an accuracy of {reported}, the fetched weights have {percent_text(found)}"
    if not result.ledger.ok:
        return "the tracker's ledger does not say the same as the receipts that the client holds"
    if result.killed and result.killed not in result.job.lost:
        return f"{result.killed} was killed, but the job never noticed"
    return ""


def as_data(result: DemoResult) -> dict[str, Any]:
    """The one JSON object of `axon demo --json`."""
    job = result.job
    return {
        "ok": not what_is_wrong(result),
        "accuracy": result.judgement.accuracy,
        "baseline_accuracy": result.judgement.baseline,
        "reported_accuracy": result.reported_accuracy,
        "peers": result.peers,
        "rounds": job.rounds,
        "samples": job.samples,
        "bytes_on_wire": job.wire_bytes,
        "bytes_of_every_gradient": result.every_gradient_bytes,
        "credits": sum(job.credits.values()),
        "credits_by_peer": job.credits,
        "flops": result.ledger.flops,
        "receipts": result.ledger.receipts,
        "ledger_ok": result.ledger.ok,
        "killed": result.killed,
        "lost": job.lost,
        "seconds": round(result.seconds, 3),
        "job_seconds": round(job.seconds, 3),
        "first_step_seconds": round(job.first_step_s, 3),
        "out": result.out,
    }


def as_text(result: DemoResult) -> str:
    """The same for people."""
    job, judgement, ledger = result.job, result.judgement, result.ledger
    held_out = f"held-out accuracy {percent_text(judgement.accuracy)}"
    unseen = f"({judgement.test_samples:,} samples that no peer trained on)" if judgement.test_samples else ""
    paid = "   ".join(f"{name} {credits_text(amount)}" for name, amount in sorted(job.credits.items()))
    same = "the same as the client's" if ledger.ok else "NOT the same as the client's"
    facts = {
        "bytes on the wire": f"{bytes_text(job.wire_bytes)}   "
        f"(sending every gradient instead: {bytes_text(result.every_gradient_bytes)})",
        "credits": f"{paid}   for {flops_text(ledger.flops)} of counted work",
        "ledger": f"checked: {plural(ledger.receipts, 'receipt')} at the tracker, {same}",
        "lost": f"{' '.join(job.lost)}; the others continued" if job.lost else "",
        "saved": f"{result.out}/  model.safetensors  metrics.csv  report.html  logs/",
    }
    lines = [
        f"Done in {duration_text(result.seconds)}, {duration_text(job.seconds)} of it for the job.",
        f"  {held_out} {unseen}   one process alone: {percent_text(judgement.baseline)}",
        *(f"  {name:<18}  {fact}" for name, fact in facts.items() if fact),
    ]
    return "\n".join(lines)


def next_commands(kept: bool, command: Callable[..., str], activate: str = "") -> str:
    """The commands to try next; with a swarm that was kept, also those that use it and stop it.

    `command` spells a command; `activate` makes the shell find our programs, where it does not yet.
    """
    rows = [(activate, "so that your shell finds axon")] if activate else []
    rows += [("axon init my-job && axon check my-job", "your own model, tried out here")]
    if kept:
        rows += [(command("submit", "my-job"), "train it on this swarm"), (command("swarm", "down"), "stop the swarm")]
    else:
        rows += [
            ("axon swarm up && axon submit my-job", "train it on a swarm of this computer"),
            ("axon swarm down", "stop that swarm"),
        ]
    rows += [("axon-peer run --tracker URL", "lend this computer to others")]
    width = max(len(words) for words, _ in rows)
    return "\n".join(["Next:", *(f"  {words.ljust(width)}   {why}" for words, why in rows)])
