"""The findings of `axon check` about a training, and the text about them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axonp2p.kinds.train.local.trial_messages import TrialFound
from axonp2p.kinds.train.section import TrainJob
from axonp2p.ledger.balances import credits_of
from axonp2p.plain_text import bytes_text, plural
from client_cli.check_peers import PeersAsked, common_data, common_facts, in_order
from client_cli.text.render import credits_text, duration_text, flops_text, metric_text


@dataclass(frozen=True)
class TaskTrial:
    """The outcome of trying the task here."""

    found: TrialFound | None = None
    """None when it was not tried."""
    not_tried: str = ""
    """Why not."""
    no_sandbox: str = ""
    """Why it was tried without the sandbox; empty when it was in it."""


@dataclass(frozen=True)
class Checked:
    """A job without a mistake so far."""

    spec: TrainJob
    files: int
    bundle_bytes: int
    trial: TaskTrial
    asked: PeersAsked

    @property
    def samples(self) -> int:
        """How many samples all peers train on together."""
        train = self.spec.train
        return self.spec.need.peers * train.all_steps * train.batch

    def passes(self, found: TrialFound) -> float | None:
        """How often the job reads each sample to train on; None: nobody knows how many samples a stream has."""
        return None if found.train_samples is None else self.samples / found.train_samples

    def flops(self, found: TrialFound) -> int:
        """An estimate of the work, from the steps that were counted."""
        return round(self.samples * found.flops_per_sample)


def as_data(checked: Checked) -> dict[str, Any]:
    """The JSON object of `axon check --json`; of a task that was not tried it has no more than all jobs have."""
    trial = checked.trial
    common = {
        **common_data(checked.spec, checked.files, checked.bundle_bytes, checked.asked, trial.not_tried),
        "no_sandbox": trial.no_sandbox,
        "samples": checked.samples,
    }
    if (found := trial.found) is None:
        return common
    return {
        **common,
        "parameters": found.parameters,
        "train_samples": found.train_samples,
        "test_samples": found.test_samples,
        "metrics": found.metrics,
        "unchecked": found.unchecked,
        "not_loaded": found.not_loaded,
        "passes": checked.passes(found),
        "flops": checked.flops(found),
        "credits": credits_of(checked.flops(found)),
        "step_seconds": found.step_s,
        "round_bytes": found.first_exchange(checked.spec).bytes_a_round,
        "state_bytes": found.state_bytes,
        "frozen_bytes": found.frozen_bytes,
    }


def as_text(folder: str, checked: Checked, command: Callable[..., str]) -> str:
    """The same for people; `command` spells a next command."""
    trial = checked.trial
    bundle = f"{plural(checked.files, 'file')}, {bytes_text(checked.bundle_bytes)} to each peer"
    facts = {
        "not tried": trial.not_tried,
        "no sandbox": f"peers may refuse what went well here: {trial.no_sandbox}" if trial.no_sandbox else "",
        **(_found_facts(checked, trial.found) if trial.found else {}),
        "bundle": bundle,
        **common_facts(checked.spec.need, checked.asked),
    }
    return in_order(folder, facts, checked.asked, command, tried=not trial.not_tried)


def _found_facts(checked: Checked, found: TrialFound) -> dict[str, str]:
    untrained = ", ".join(metric_text(name, value) for name, value in found.metrics.items())
    work = checked.flops(found)
    return {
        "model": plural(found.parameters, "parameter"),
        "data": f"{_read(checked, found)}; {found.test_samples:,} held out",
        "untrained": f"held-out {untrained}" if untrained else "",
        "work": f"about {flops_text(work)}, {credits_text(credits_of(work))} credits;"
        f" a step took {_step_text(found.step_s)} here",
        "exchange": _exchange_text(checked, found),
        "state": f"{bytes_text(found.state_bytes)} to this computer {_how_often(checked.spec.train.checkpoint)}",
        "frozen": _frozen_text(found),
        "unchecked": found.unchecked,
        "not loaded": found.not_loaded,
    }


def _exchange_text(checked: Checked, found: TrialFound) -> str:
    if checked.spec.need.peers == 1:
        return ""
    choice = found.first_exchange(checked.spec)
    every = choice.settings.exchange_every
    often = "every step" if every == 1 else f"every {every} steps"
    return (
        f"about {bytes_text(choice.bytes_a_round)} a round among the peers: {plural(choice.bits, 'bit')} a value"
        f" {often}, until their lines are measured"
    )


def _frozen_text(found: TrialFound) -> str:
    """The text about the part of the model that is in no exchange and in no state; empty where all of it is."""
    if not found.frozen_bytes:
        return ""
    return f"{bytes_text(found.frozen_bytes)} of the model: once to this computer, and each peer has them of model()"


def _how_often(checkpoint: int) -> str:
    return "after each round" if checkpoint == 1 else f"after every {checkpoint} rounds"


def _step_text(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else duration_text(seconds)


def _read(checked: Checked, found: TrialFound) -> str:
    if found.train_samples is None or (passes := checked.passes(found)) is None:
        return f"a stream, of which the job reads {plural(checked.samples, 'sample')}"
    return f"{plural(found.train_samples, 'sample')} to train on, each {passes:.3g} times"
