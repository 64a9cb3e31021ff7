"""The fourth show: machines die without a word, others come, and the job goes on, beside a calm run of the same."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path
from typing import Any

from tests.lab.bench.contest import told
from tests.lab.bench.departures import changes
from tests.lab.bench.ground import Ground, on_lines
from tests.lab.bench.jobs import write_text
from tests.lab.bench.ours import AUTO
from tests.lab.bench.settings import Trial
from tests.lab.swarm import LabSwarm, Told, now

HALF_LIFE_S = 3600.0
AWAY = 0.25
"""How long a line is empty, in half-lives."""
SPARE = 2
"""Lines for each member that the job wants."""


def show(folder: Path, trial: Trial, scale: float) -> dict[str, Any]:
    """Goodput and final loss of both runs. With a `scale` of 10 an hour of dying passes in six minutes."""
    lines = SPARE * trial.members
    found: dict[str, Any] = {"scale": scale, "lines": lines}
    with on_lines(trial.lines, lines) as ground:
        for name, half_life in (("calm", None), ("churn", HALF_LIFE_S / scale)):
            with told(f"{name}, {trial.rounds} rounds"):
                found[name] = _run(ground, folder / name, trial, half_life)
    found["goodput"] = found["churn"]["samples_a_second"] / found["calm"]["samples_a_second"]
    found["loss_difference"] = found["churn"]["loss"] - found["calm"]["loss"]
    return found


def _run(ground: Ground, home: Path, trial: Trial, half_life: float | None) -> dict[str, Any]:
    with LabSwarm(ground, home) as swarm:
        swarm.start(*range(ground.members))
        job = write_text(home / "job", trial, **AUTO)
        fate = Fate(swarm, home, ground.members, half_life) if half_life else None
        try:
            return _told(list(swarm.submit(job))) | {"died": fate.died if fate else 0, "came": fate.came if fate else 0}
        finally:
            if fate:
                fate.stop()


def _told(events: list[Told]) -> dict[str, Any]:
    rounds = [event for event in events if event["event"] == "round_finished"]
    began = next(event["at"] for event in events if event["event"] == "peer_ready")
    samples, seconds = sum(event["samples"] for event in rounds), rounds[-1]["at"] - began
    count = {
        name: sum(event["event"] == name for event in events) for name in ("peer_lost", "peer_hired", "round_redone")
    }
    numbers = {"rounds": len(rounds), "samples": samples, "seconds": seconds, "samples_a_second": samples / seconds}
    return (
        numbers | {"loss": rounds[-1]["metrics"]["loss"], "losses": [one["metrics"]["loss"] for one in rounds]} | count
    )


class Fate:
    """Kills peers, and starts new ones in their places, in a thread of its own."""

    def __init__(self, swarm: LabSwarm, home: Path, lines: int, half_life: float) -> None:
        self.died = 0
        self.came = 0
        self._swarm = swarm
        self._home = home
        self._changes = changes(random.Random(1), lines, half_life, AWAY * half_life)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Nobody dies any more."""
        self._over.set()
        self._thread.join()

    def _go(self) -> None:
        began = now()
        for change in self._changes:
            if self._over.wait(max(0.0, began + change.at - now())):
                return
            if change.comes:
                # Its key too: it is another machine. One that died as soon as it came has no home yet.
                shutil.rmtree(self._home / f"peer-{change.line}", ignore_errors=True)
                self._swarm.begin(change.line)
                self.came += 1
            else:
                self._swarm.kill(change.line)
                self.died += 1


def as_text(found: dict[str, Any], trial: Trial) -> str:
    """A table for people."""
    half_life = HALF_LIFE_S / found["scale"]
    lines = [
        f"{trial.members} members out of {found['lines']} peers, half of which die within {half_life:.0f} s"
        f" (an hour, {found['scale']:g} times as fast)",
        f"{'':10}{'rounds':>8}{'seconds':>10}{'samples/s':>11}{'loss':>8}{'died':>6}{'came':>6}{'lost':>6}{'redone':>8}",
    ]
    for name in ("calm", "churn"):
        run = found[name]
        lines.append(
            f"{name:10}{run['rounds']:8}{run['seconds']:10.1f}{run['samples_a_second']:11.2f}{run['loss']:8.3f}"
            f"{run['died']:6}{run['came']:6}{run['peer_lost']:6}{run['round_redone']:8}"
        )
    lines.append(f"goodput {found['goodput']:.3f} of the calm run's (aim >= 0.9)")
    return "\n".join([*lines, f"final loss {found['loss_difference']:+.4f} (aim within 0.02)"])
