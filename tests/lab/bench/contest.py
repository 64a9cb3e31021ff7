"""All contestants over the same lines, one after the other, and the limit beside them: DDP on bare loopback."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.bench.baselines import Baselines
from tests.lab.bench.curve import Curve, NoSteps
from tests.lab.bench.ground import Ground, on_lines, on_loopback
from tests.lab.bench.ours import AUTO, DENSE, Ours
from tests.lab.bench.settings import Trial

REFERENCE, DDP, HIVEMIND, HIVEMIND_8, FLOWER = "DDP, loopback", "DDP", "hivemind", "hivemind, 8 bits", "Flower"
AXON_DENSE, AXON = "Axon, dense", "Axon, auto"
EVERYBODY = (DDP, HIVEMIND, HIVEMIND_8, FLOWER, AXON_DENSE, AXON)
WARM_UP = 1


class Contest:
    """Everything of it happens in a folder."""

    def __init__(self, folder: Path, measured_steps: int, without: Collection[str] = ()) -> None:
        """`measured_steps`: over how many DDP and hivemind, whose steps all take the same, are measured on lines."""
        self._without = without
        self._folder = folder
        self._measured = measured_steps
        self._grounds = 0

    def reference(self, trial: Trial) -> Curve:
        """The whole training over loopback."""
        what = f"{REFERENCE}, {trial.all_steps} steps of {trial.millions} M"
        with on_loopback(trial.members) as ground, told(what):
            return Baselines(ground, self._new_folder()).ddp(trial, REFERENCE)

    def on_lines(self, trial: Trial, names: tuple[str, ...]) -> Iterator[Curve]:
        """Each of them, as it ends. Those of DDP and hivemind hold no loss, only what a step takes."""
        with on_lines(trial.lines, trial.members) as ground:
            home = self._new_folder()
            for name in names:
                if name in self._without:
                    continue
                try:
                    with told(f"{name}, {trial.millions} M, {trial.lines}"):
                        curve = self._one(ground, home, trial, name)
                except NoSteps as error:
                    print(f"... left out: {error}", file=sys.stderr, flush=True)
                else:
                    yield curve

    def _one(self, ground: Ground, home: Path, trial: Trial, name: str) -> Curve:
        baselines, ours = Baselines(ground, home / name), Ours(ground, home / name)
        few = trial.shorter(self._measured + WARM_UP)
        if name == DDP:
            return baselines.ddp(few, name, evaluate=False, warm_up=WARM_UP)
        if name in (HIVEMIND, HIVEMIND_8):
            bits = 8 if name == HIVEMIND_8 else 32
            return baselines.hivemind(few, name, bits=bits, evaluate=False, warm_up=WARM_UP)
        if name == FLOWER:
            return baselines.flower(trial, name)
        if name == AXON_DENSE:
            return ours.train(trial, name, DENSE | {"exchange_every": trial.steps})
        return ours.train(trial, name, AUTO)

    def _new_folder(self) -> Path:
        self._grounds += 1
        folder = self._folder / f"ground-{self._grounds}"
        folder.mkdir(mode=0o755)
        return folder


@contextmanager
def told(what: str) -> Iterator[None]:
    """People wait for this: say what runs."""
    print(f"... {what}", file=sys.stderr, flush=True)
    yield
