"""Real and honest peers that compute as machines of several kinds do, and what checks find of their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerLost
from axonp2p.kinds.train.check_events import WorkChecked
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.ledger.balances import credits_of
from tests.system.processes import Processes

OLD = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
KINDS: dict[str, Mapping[str, str]] = {
    "plain": {},
    "plain-too": {},
    "two-threads": {"THREADS": "2"},
    "old": OLD,
    "old-two-threads": {**OLD, "THREADS": "2"},
}
"""By the name of the peer: what its worker is held to (`held_daemon`)."""
_A_CREDIT = 1e12 / credits_of(10**12)
"""In FLOPs."""


@dataclass
class Found:
    """What was seen of one job."""

    rounds: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    equal: int = 0
    """Checks that led to the same bits."""
    convicted: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    of_limit_most: float = 0.0
    """Of all checks: how far apart, over half of what leaving one step out makes; 1 is not believed at once."""
    redone_flops: int = 0
    flops: float = 0.0
    late_redone_flops: int = 0
    late_flops: float = 0.0
    """The same of the second half of the rounds."""

    @property
    def shares(self) -> tuple[float, float]:
        """What was done again, as a share of the rest: of all rounds, and of the second half."""
        return (
            self.redone_flops / (self.flops - self.redone_flops),
            self.late_redone_flops / (self.late_flops - self.late_redone_flops),
        )

    def as_plain(self) -> dict[str, object]:
        """For --json."""
        return {**asdict(self), "outcomes": dict(self.outcomes), "shares": self.shares}


def honest_job(base: Path, folder: Path, rounds: int) -> Found:
    """Run the job in `folder`, of so many rounds, on one peer of each kind. Raises what the job failed with."""
    found = Found()
    with Processes(base) as processes:
        for name, settings in KINDS.items():
            words = [f"{key}={value}" for key, value in settings.items()]
            processes.begin_peer(name, program=("tests.laboratory.held_daemon", *words, "--"))
        for name in KINDS:
            processes.wait_for_peer(name)
        with axonp2p.Swarm(trackers=[processes.tracker], home=base / "client") as swarm:
            for event in swarm.submit(folder).events():
                match event:
                    case RoundFinished():
                        _round(found, event, rounds)
                    case WorkChecked():
                        _check(found, event, rounds)
                    case PeerLost():
                        found.lost.append(f"{event.peer}: {event.reason}")
                    case JobFinished():
                        found.rounds = event.rounds
    return found


def _round(found: Found, event: RoundFinished, rounds: int) -> None:
    flops = event.credits * _A_CREDIT
    if event.round >= rounds // 2:
        found.late_flops += flops - found.flops
    found.flops = flops


def _check(found: Found, event: WorkChecked, rounds: int) -> None:
    found.outcomes[event.outcome] += 1
    found.convicted += event.convicted
    found.equal += event.distance == 0
    found.redone_flops += event.flops
    if event.round >= rounds // 2:
        found.late_redone_flops += event.flops
    if event.step:
        found.of_limit_most = max(found.of_limit_most, event.distance / (event.step / 2))
