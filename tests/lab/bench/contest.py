"""All contestants over the same lines, one after the other, and the limit beside them: DDP on bare loopback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.lab.bench.baselines import Baselines
from tests.lab.bench.curve import Curve, NoSteps
from tests.lab.bench.ddp import DENSE_STEPS, FP16, POWERSGD
from tests.lab.bench.ground import Ground, on_lines, on_loopback
from tests.lab.bench.kept import Kept, OutOfTime
from tests.lab.bench.ours import AUTO, DENSE, LINE, Ours
from tests.lab.bench.settings import Trial

REFERENCE, DDP, DDP_16, DDP_POWERSGD = "DDP, loopback", "DDP", "DDP, fp16 hook", "DDP, PowerSGD hook"
HIVEMIND, HIVEMIND_8, HIVEMIND_LOCAL = "hivemind", "hivemind, 8 bits", "hivemind, local updates"
DILOCO, FLOWER = "torchft DiLoCo", "Flower"
DDP_MUON = "DDP, Muon"
AXON_DENSE, AXON, AXON_LINE, AXON_MUON = "Axon, dense", "Axon, auto", "Axon, line", "Axon, line, Muon"
OURS = {AXON_DENSE: DENSE, AXON: AUTO, AXON_LINE: LINE, AXON_MUON: LINE}
"""How ours exchange."""
MUON = (DDP_MUON, AXON_MUON)
"""Those that train by Muon; all others do by AdamW."""
EVERYBODY = (DDP, DDP_16, DDP_POWERSGD, DDP_MUON, HIVEMIND, HIVEMIND_8, HIVEMIND_LOCAL, DILOCO, FLOWER, *OURS)
EACH_STEP = {DDP: "", DDP_16: FP16, DDP_POWERSGD: POWERSGD, DDP_MUON: ""}
"""Those that exchange gradients at each step by DDP, and how these are compressed."""
OWN_LOSSES = (DDP_POWERSGD, DDP_MUON)
"""Of these, whose losses are not about DDP's: they are trained to the end over loopback."""
WARM_UP = 1


class Contest:
    """Everything of it happens in a folder."""

    def __init__(
        self,
        folder: Path,
        measured_steps: int,
        without: Collection[str] = (),
        kept: Kept | None = None,
        until: float = float("inf"),
    ) -> None:
        """`measured_steps`: over how many DDP and hivemind, whose steps all take the same, are measured on lines.

        After `until` (monotonic seconds) nobody begins any more: `OutOfTime` is raised.
        """
        self._without = without
        self._folder = folder
        self._measured = measured_steps
        self._kept = kept
        self._until = until
        self._grounds = 0

    def reference(self, trial: Trial) -> Curve:
        """The whole training over loopback."""
        return self._on_loopback(trial, REFERENCE, "")

    def losses_of(self, trial: Trial, name: str) -> Curve:
        """The whole training of one that exchanges gradients by DDP, over loopback, for the sake of its losses."""
        return self._on_loopback(_by_optimizer(trial, name), f"{name}, loopback", EACH_STEP[name])

    def on_lines(self, trial: Trial, names: tuple[str, ...]) -> Iterator[Curve]:
        """Each of them, as it ends. Those of DDP and hivemind hold no loss, only what a step takes."""
        for name in names:
            if name in self._without:
                continue
            asked = _by_optimizer(trial, name)
            whole = asked if name in (HIVEMIND_LOCAL, DILOCO, FLOWER, *OURS) else self._few(asked, name)
            try:
                yield self._found_or(name, whole, self._on_ground(whole, name))
            except NoSteps as error:
                print(f"... left out: {error}", file=sys.stderr, flush=True)

    def _few(self, trial: Trial, name: str) -> Trial:
        """Steps enough to measure one; what a step takes does not depend on the seed."""
        return replace(trial.shorter(self._measured + _warm_up(name)), seed=0)

    def _on_loopback(self, trial: Trial, name: str, hook: str) -> Curve:
        def run() -> Curve:
            with on_loopback(trial.members) as ground:
                return Baselines(ground, self._new_folder()).ddp(trial, name, hook=hook)

        return self._found_or(name, trial, run)

    def _on_ground(self, trial: Trial, name: str) -> Callable[[], Curve]:
        def run() -> Curve:
            with on_lines(trial.lines, trial.members) as ground:
                return self._one(ground, self._new_folder() / name, trial, name)

        return run

    def _found_or(self, name: str, trial: Trial, run: Callable[[], Curve]) -> Curve:
        if self._kept and (found := self._kept.find(name, trial)):
            return found
        what = f"{name}, {trial.all_steps} steps of {trial.millions} M, seed {trial.seed}"
        if time.monotonic() > self._until:
            raise OutOfTime(what)
        with told(f"{what}, {trial.lines}"):
            curve = run()
        if self._kept:
            self._kept.keep(name, trial, curve)
        return curve

    def _one(self, ground: Ground, home: Path, trial: Trial, name: str) -> Curve:
        baselines, ours = Baselines(ground, home), Ours(ground, home)
        if name in EACH_STEP:
            return baselines.ddp(trial, name, hook=EACH_STEP[name], evaluate=False, warm_up=_warm_up(name))
        if name in (HIVEMIND, HIVEMIND_8):
            bits = 8 if name == HIVEMIND_8 else 32
            return baselines.hivemind(trial, name, bits=bits, evaluate=False, warm_up=_warm_up(name))
        if name == HIVEMIND_LOCAL:
            return baselines.hivemind_local(trial, name)
        if name == DILOCO:
            return baselines.diloco(trial, name)
        if name == FLOWER:
            return baselines.flower(trial, name)
        more: dict[str, object] = {"exchange_every": trial.steps} if name == AXON_DENSE else {}
        return ours.train(trial, name, OURS[name] | more)

    def _new_folder(self) -> Path:
        self._grounds += 1
        folder = self._folder / f"ground-{self._grounds}"
        folder.mkdir(mode=0o755)
        return folder


def _by_optimizer(trial: Trial, name: str) -> Trial:
    return replace(trial, muon=name in MUON)


def _warm_up(name: str) -> int:
    return DENSE_STEPS + WARM_UP if name == DDP_POWERSGD else WARM_UP


@contextmanager
def told(what: str) -> Iterator[None]:
    """People wait for this: say what runs."""
    print(f"... {what}", file=sys.stderr, flush=True)
    yield
