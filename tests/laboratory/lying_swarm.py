"""Real trackers, daemons and sandboxes on loopback, some of whose workers lie: whole jobs, and what they came to."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import TracebackType

import axonp2p
from axonp2p.client.events.events import JobFinished
from axonp2p.errors import AxonError
from tests.system.processes import Processes


class LyingSwarm:
    """A tracker and so many honest peers, in `base`; liars come and go with each attack. Use it in a `with`."""

    def __init__(self, base: Path, honest: int, liars: int) -> None:
        self._base = base
        self._processes = Processes(base)
        self._honest = [f"honest{number}" for number in range(honest)]
        self._count = liars
        self._liars: list[str] = []
        self._attacks = 0

    def __enter__(self) -> LyingSwarm:
        self._processes.__enter__()
        self._processes.start_peers(*self._honest)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def lie(self, attack: str) -> None:
        """From now on the last peers do so; "none": they are honest."""
        for name in self._liars:
            self._processes.stop(name)
        self._attacks += 1
        self._liars = [f"other{self._attacks}-{number}" for number in range(self._count)]
        for name in self._liars:
            honest, lying = ("peer_daemon.main",), ("tests.laboratory.lying_daemon", attack)
            self._processes.begin_peer(name, program=honest if attack == "none" else lying)
        for name in self._liars:
            self._processes.wait_for_peer(name)

    def accuracy(self, job: Path) -> float:
        """Of the job in that folder, held-out, after its last round; 0 when it failed, which is told."""
        with axonp2p.Swarm(trackers=[self._processes.tracker], home=self._base / f"client{self._attacks}") as swarm:
            try:
                last = swarm.submit(job).wait()
            except AxonError as error:
                print(f"{job.name}: {error.message}", file=sys.stderr)
                return 0.0
        assert isinstance(last, JobFinished), last
        return last.metrics["accuracy"]


def with_keys(file: Path, section: str, **keys: object) -> None:
    """Set keys of a section of a job file, underscores for dashes, in place of what stands there."""
    text = file.read_text()
    for name, value in keys.items():
        key = name.replace("_", "-")
        text = re.sub(rf"(?m)^{key} = .*\n", "", text)
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        text = text.replace(f"[{section}]\n", f"[{section}]\n{key} = {shown}\n")
    file.write_text(text)
