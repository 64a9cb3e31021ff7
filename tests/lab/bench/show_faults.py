"""The fifth show: real faults on real lines, one a run, each in the middle of a round. What does it cost?"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.lab.bench.contest import told
from tests.lab.bench.ground import Ground, on_lines
from tests.lab.bench.jobs import write_text
from tests.lab.bench.ours import AUTO
from tests.lab.bench.settings import Trial
from tests.lab.swarm import LabSwarm, Told

WHEN = 3
"""The round in which it happens, counted from 0: by then deadlines are learnt."""
LEAST_ROUNDS = WHEN + 3


@dataclass(frozen=True)
class Fault:
    """What happens, and, if it ends by itself, what ends it after so many seconds."""

    name: str
    begin: Callable[[Ground, LabSwarm], None]
    end: Callable[[Ground, LabSwarm], None] | None = None
    seconds: float = 0.0


FAULTS = (
    Fault("a member is killed", lambda _, swarm: swarm.kill(1)),
    Fault("a member is frozen for a minute", lambda _, swarm: swarm.freeze(1), lambda _, swarm: swarm.thaw(1), 60),
    Fault("link cut between two members", lambda ground, _: ground.lab.cut(0, 1)),
    Fault("link cut one way", lambda ground, _: ground.lab.cut(0, 1, one_way=True)),
    Fault("a line is out for 20 s", lambda ground, _: ground.lab.unplug(1), lambda ground, _: ground.lab.plug(1), 20),
    Fault("a line loses 2 % of all packets", lambda ground, _: ground.lab.lose(1, 0.02)),
    Fault("the client is killed and resumes", lambda _, swarm: swarm.kill_client()),
)


def show(folder: Path, trial: Trial) -> dict[str, Any]:
    """Each on a new swarm and new lines."""
    rows = []
    for number, fault in enumerate(FAULTS):
        with told(fault.name), on_lines(trial.lines, trial.members) as ground:
            rows.append(_run(ground, folder / f"fault-{number}", trial, fault))
    return {"rows": rows}


def _run(ground: Ground, home: Path, trial: Trial, fault: Fault) -> dict[str, Any]:
    later: threading.Timer | None = None
    rounds: list[Told] = []
    words: list[str] = []
    with LabSwarm(ground, home) as swarm:
        swarm.start(*range(trial.members))
        job = write_text(home / "job", trial, **AUTO)
        for event in _to_the_end(swarm, job):
            if event["event"] == "round_finished":
                rounds.append(event)
            elif event["event"] in ("peer_lost", "round_redone", "peer_joined"):
                words.append(f"{event['event']}: {event.get('reason', event.get('peer', ''))}")
            elif (
                event["event"] == "round_progress"
                and event["round"] == WHEN
                and event["fraction"] > 0
                and later is None
            ):
                fault.begin(ground, swarm)
                later = threading.Timer(fault.seconds, fault.end or _nothing, (ground, swarm))
                later.start()
        if later is not None:
            later.cancel()
    seconds = [round["at"] - before["at"] for before, round in pairwise(rounds)]
    calm = statistics.median(seconds[: WHEN - 1])
    return {
        "name": fault.name,
        "rounds": len(rounds),
        "calm_s": calm,
        "fault_s": seconds[WHEN - 1] if len(seconds) >= WHEN else None,
        "after_s": seconds[WHEN:],
        "words": words,
        "loss": rounds[-1]["metrics"]["loss"],
    }


def _to_the_end(swarm: LabSwarm, job: Path) -> Iterator[Told]:
    """The job's events; a job whose client died is resumed."""
    name = ""
    last: Told = {}
    for last in swarm.submit(job):
        name = last.get("job", name)
        yield last
    if last["event"] != "job_finished":
        yield from swarm.resume(name)


def _nothing(_: Ground, __: LabSwarm) -> None:
    pass


def as_text(found: dict[str, Any]) -> str:
    """A table for people."""
    lines = [f"{'':34}{'calm round':>11}{'with fault':>11}{'rounds':>8}   told"]
    for row in found["rows"]:
        fault = f"{row['fault_s']:10.1f}s" if row["fault_s"] is not None else f"{'':11}"
        lines.append(f"{row['name']:34}{row['calm_s']:10.1f}s{fault}{row['rounds']:8}   {'; '.join(row['words'])}")
    return "\n".join(lines)
