"""What a run of the fuzzer shares: its processes, its chance, and what it found."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.codec import encode
from tests.laboratory.fork_server import fork_server
from tests.laboratory.message_values import CannotBuild, Values
from tests.laboratory.mutations import mutated
from tests.system.processes import QUIET, Processes

HANG_S = 10.0
TROUBLE = re.compile(r"Traceback|a mistake of ours|exception was never retrieved|AX-001")


@dataclass
class Found:
    """What came of one door."""

    door: str
    inputs: int = 0
    crashes: list[str] = field(default_factory=list)
    fives: int = 0
    hangs: int = 0
    rss_before: int = 0
    rss_after: int = 0
    """MiB of the process behind the door."""

    @property
    def sound(self) -> bool:
        """Whether nothing but growth is to be told."""
        return not (self.crashes or self.fives or self.hangs)


@dataclass
class World:
    """The processes that are fuzzed, and all chance there is."""

    base: Path
    chance: random.Random
    processes: Processes
    values: Values
    peer_address: PinnedAddress | None = None
    peer_id: PeerId = ""
    tracker_id: PeerId = ""
    udp_ports: list[int] = field(default_factory=list)

    def axon(self, words: Sequence[str], within_s: float) -> tuple[int | None, str]:
        """Run a command of `axon`: its exit code (None: it had to be ended), and what it said."""
        try:
            done = fork_server().run("client_cli.main", words, within_s, {**os.environ, **QUIET})
        except subprocess.TimeoutExpired as late:
            return None, f"{late.stdout}{late.stderr}"
        return done.returncode, done.stdout + done.stderr

    @property
    def tracker(self) -> PinnedAddress:
        """Where the tracker is."""
        return PinnedAddress.parse(self.processes.tracker)

    def encoded(self, kind: Any) -> bytes:
        """A message of that type, nearly right."""
        try:
            message = self.values.any_of(kind)
        except CannotBuild:
            return self.chance.randbytes(40)
        return mutated(self.chance, encode(message))

    def caller(self) -> str:
        """One of many households of this machine, so that no limit by source turns everything away."""
        return f"127.{self.chance.randint(1, 250)}.{self.chance.randint(0, 250)}.{self.chance.randint(1, 250)}"


Feed = Callable[[World, Found], Awaitable[None]]
