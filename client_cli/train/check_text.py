"""What `axon check` found out about a training. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axonp2p.kinds.train.section import TrainJob
from axonp2p.ledger.balances import credits_of
from axonp2p.plain_text import bytes_text, plural
from client_cli.check_peers import PeersAsked, common_data, in_order, peers_text
from client_cli.text.render import credits_text, flops_text, metric_text


@dataclass(frozen=True)
class Checked:
    """A job without a mistake so far."""

    spec: TrainJob
    files: int
    bundle_bytes: int
    task: dict[str, Any]
    """What one step of everything told: parameters, train_samples, test_samples, metrics, flops_per_sample.
    `unchecked`: why steps cannot be done again here; empty when they can, or nobody wants them to be."""
    asked: PeersAsked

    @property
    def samples(self) -> int:
        """How many samples all peers train on together."""
        train = self.spec.train
        return self.spec.need.peers * train.all_steps * train.batch

    @property
    def passes(self) -> float | None:
        """How often the job reads each sample to train on; None: nobody knows how many samples a stream has."""
        there = self.task["train_samples"]
        return None if there is None else self.samples / int(there)

    @property
    def flops(self) -> int:
        """An estimate of the work, from the one step that was counted."""
        return round(self.samples * float(self.task["flops_per_sample"]))


def as_data(checked: Checked) -> dict[str, Any]:
    """The JSON object of `axon check --json`."""
    return {
        **common_data(checked.spec, checked.files, checked.bundle_bytes, checked.asked),
        "parameters": checked.task["parameters"],
        "train_samples": checked.task["train_samples"],
        "test_samples": checked.task["test_samples"],
        "metrics": checked.task["metrics"],
        "unchecked": checked.task["unchecked"],
        "samples": checked.samples,
        "passes": checked.passes,
        "flops": checked.flops,
        "credits": credits_of(checked.flops),
    }


def as_text(folder: str, checked: Checked, command: Callable[..., str]) -> str:
    """The same for people; `command` spells a next command."""
    task = checked.task
    untrained = ", ".join(metric_text(name, value) for name, value in task["metrics"].items())
    facts = {
        "model": plural(task["parameters"], "parameter"),
        "data": f"{_read(checked)}; {task['test_samples']:,} held out",
        "untrained": f"held-out {untrained}" if untrained else "",
        "bundle": f"{plural(checked.files, 'file')}, {bytes_text(checked.bundle_bytes)}",
        "work": f"about {flops_text(checked.flops)}, {credits_text(credits_of(checked.flops))} credits",
        "packages": checked.asked.packages,
        "peers": peers_text(checked.spec.need, checked.asked),
        "unchecked": task["unchecked"],
    }
    return in_order(folder, facts, checked.asked, command)


def _read(checked: Checked) -> str:
    if checked.passes is None:
        return f"a stream, of which the job reads {plural(checked.samples, 'sample')}"
    return f"{plural(checked.task['train_samples'], 'sample')} to train on, each {checked.passes:.3g} times"
