"""What `axon check` found out about a job. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axonp2p.jobs.spec import JobSpec
from axonp2p.ledger.balances import credits_of
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.render import credits_text, flops_text, metric_text, pairs


@dataclass(frozen=True)
class Checked:
    """A job without a mistake so far."""

    spec: JobSpec
    files: int
    bundle_bytes: int
    task: dict[str, Any]
    """What one step of everything told: parameters, train_samples, test_samples, metrics, flops_per_sample.
    `unchecked`: why steps cannot be done again here; empty when they can, or nobody wants them to be."""
    peers_found: int | None
    """Peers that would take it now; None when no tracker could be asked."""
    trouble: str
    """Why none could."""

    @property
    def samples(self) -> int:
        """How many samples all peers train on together."""
        train = self.spec.train
        return self.spec.need.peers * train.rounds * train.steps * train.batch

    @property
    def flops(self) -> int:
        """An estimate of the work, from the one step that was counted."""
        return round(self.samples * float(self.task["flops_per_sample"]))


def as_data(checked: Checked) -> dict[str, Any]:
    """The JSON object of `axon check --json`."""
    return {
        "ok": True,
        "name": checked.spec.name,
        "files": checked.files,
        "bundle_bytes": checked.bundle_bytes,
        "parameters": checked.task["parameters"],
        "train_samples": checked.task["train_samples"],
        "test_samples": checked.task["test_samples"],
        "metrics": checked.task["metrics"],
        "unchecked": checked.task["unchecked"],
        "samples": checked.samples,
        "flops": checked.flops,
        "credits": credits_of(checked.flops),
        "peers_wanted": checked.spec.need.peers,
        "peers_found": checked.peers_found,
        "tracker_trouble": checked.trouble,
    }


def as_text(folder: str, checked: Checked, command: Callable[..., str]) -> str:
    """The same for people; `command` spells a next command."""
    task = checked.task
    untrained = ", ".join(metric_text(name, value) for name, value in task["metrics"].items())
    facts = {
        "model": plural(task["parameters"], "parameter"),
        "data": f"{plural(task['train_samples'], 'sample')} to train on, {task['test_samples']:,} held out",
        "untrained": f"held-out {untrained}" if untrained else "",
        "bundle": f"{plural(checked.files, 'file')}, {bytes_text(checked.bundle_bytes)}",
        "work": f"about {flops_text(checked.flops)}, {credits_text(credits_of(checked.flops))} credits",
        "peers": _peers(checked),
        "unchecked": task["unchecked"],
    }
    told = pairs({name: fact for name, fact in facts.items() if fact}, indent="  ")
    steps = [command("submit", folder)]
    if checked.peers_found is None:
        steps.insert(0, command("swarm", "up"))
    return "\n".join([f"{folder} is in order.", told, "Next:", *(f"  {step}" for step in steps)])


def _peers(checked: Checked) -> str:
    need, found = checked.spec.need, checked.peers_found
    if found is None:
        return f"{need.peers} wanted; nobody was asked: {checked.trouble}"
    if found >= need.peers:
        return f"{need.peers} wanted, {found} would take it now"
    verdict = "it can start with fewer" if found >= need.min_peers else f"fewer than the {need.min_peers} that it needs"
    return f"{need.peers} wanted, only {found} would take it now: {verdict}"
