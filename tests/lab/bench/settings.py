"""What is trained, by how many, over which lines. Only the standard library: baselines read it too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

WIDTHS = {1: (128, 5), 10: (320, 8)}
"""Millions of parameters of `examples/text`: its width and its layers."""


@dataclass(frozen=True)
class Lines:
    """The lines of the members: Mbit/s, and milliseconds between any two."""

    up: float = 20.0
    down: float = 100.0
    rtt_ms: float = 80.0
    slowest: float = 1.0
    """The last member has this share of the others' rates."""

    def of(self, member: int, members: int) -> tuple[float, float]:
        """Up and down of one member."""
        share = self.slowest if member == members - 1 else 1.0
        return self.up * share, self.down * share


@dataclass(frozen=True)
class Trial:
    """One training of `examples/text`, the same for everybody who is compared."""

    millions: int = 1
    members: int = 4
    rounds: int = 30
    steps: int = 30
    """Local steps a round: held-out loss is measured after each."""
    batch: int = 8
    seed: int = 0
    windows: int = 256
    """Held-out ones."""
    context: int = 128
    """Bytes that the model looks back."""
    step_ms: float = 0.0
    """A step sleeps until so much is over, as if a faster machine had taken it; 0: it does not sleep."""
    lines: Lines = field(default_factory=Lines)
    muon: bool = False
    """With the example's own optimiser, `axonp2p.muon`, instead of AdamW."""

    @property
    def all_steps(self) -> int:
        return self.rounds * self.steps

    @property
    def a_step(self) -> int:
        """Samples that all members together read in a local step."""
        return self.members * self.batch

    def shorter(self, steps: int) -> Trial:
        """The same, but only so many steps."""
        return replace(self, rounds=1, steps=steps)


@dataclass(frozen=True)
class Part:
    """What one baseline's member is told."""

    task: str
    """The file."""
    members: int
    steps: int
    evaluate_every: int
    """Steps; 0: never."""
    batch: int
    seed: int
    device: str
    """Whose bytes are counted."""
    addresses: list[str]
    reports: str
    """Folder in which each member writes its own file."""
    bits: int = 32
    local_steps: int = 1
    bandwidth: list[float] = field(default_factory=list)
    """Mbit/s of each member."""
    patience: float = 60.0
    """Seconds after which a step goes on without the others, if it can."""
    hook: str = ""
    """How DDP compresses gradients (`ddp.FP16`, `ddp.POWERSGD`); empty: not at all."""
    server: str = ""
    """Of a baseline that needs one: where it listens."""

    def write(self, path: Path) -> Path:
        """For `read`."""
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def read(cls, path: str) -> Self:
        """What `write` wrote."""
        return cls(**json.loads(Path(path).read_text()))
