"""Tasks that keep state of their own on real and honest peers with many checks: what each came to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerLost
from axonp2p.client.storage.trust_book import TRUST_FILE, KnownKey, TrustBook, known_of
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.kinds.train.check_events import ChecksOff, NothingLearnt, WorkChecked
from axonp2p.kinds.train.events import RoundFinished
from tests.system.processes import Processes
from tests.system.small_job import write_job

ROUNDS = 6
LEAST_CHECKS = 3
PEERS = ("otter", "heron", "lynx")
_OFTEN = "checks = 0.5\n"


@dataclass
class Seen:
    """What was seen of one job."""

    losses: list[float] = field(default_factory=list)
    """Round after round."""
    checks: list[WorkChecked] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    """Why its work could not be checked."""
    lost: list[str] = field(default_factory=list)
    still: list[str] = field(default_factory=list)
    """Whose steps changed no weight."""
    noted: list[str] = field(default_factory=list)
    """Whom the client's book of trust holds something against now, that it did not before."""
    failed: str = ""

    @property
    def passed(self) -> int:
        """Checks that led to the same end."""
        return sum(one.outcome == "passed" for one in self.checks)

    @property
    def blamed(self) -> list[str]:
        """All that anybody honest was blamed for."""
        bad = [f"{one.peer}: {one.outcome}" for one in self.checks if one.outcome not in ("passed", "undecided")]
        return [*bad, *(name for one in self.checks for name in one.convicted), *self.noted, *self.lost]

    @property
    def moves(self) -> bool:
        """Whether all rounds led somewhere."""
        return len(set(self.losses)) == ROUNDS and not self.still

    def as_it_should_be(self, *, checkable: bool) -> bool:
        """Whether a task whose steps can be done again, or cannot, trained on with nobody blamed."""
        if self.failed or self.blamed or not self.moves:
            return False
        if checkable:
            return not self.off and len(self.checks) == self.passed >= LEAST_CHECKS
        return len(self.off) == 1 and "done again" in self.off[0]


class HiddenSwarm:
    """Three peers, and a client that runs one task after the other on them."""

    def __init__(self, base: Path, swarm: axonp2p.Swarm) -> None:
        self._base, self._swarm = base, swarm
        self._jobs = 0

    @property
    def known(self) -> dict[PeerId, KnownKey]:
        """What the client's book of trust says of all keys."""
        return TrustBook(self._base / "client" / TRUST_FILE).all()

    def run(self, task: str, peers: int = len(PEERS)) -> Seen:
        """A job of this task, on so many of the peers."""
        self._jobs += 1
        job = write_job(
            self._base / f"job{self._jobs}", peers=peers, rounds=ROUNDS, train=_OFTEN,
            task=task.replace("FILES", "/tmp/state"),
        )  # fmt: skip
        seen, before, finished = Seen(), self.known, False
        try:
            for event in self._swarm.submit(job).events():
                match event:
                    case RoundFinished():
                        seen.losses.append(event.loss)
                    case WorkChecked():
                        seen.checks.append(event)
                    case ChecksOff():
                        seen.off.append(event.reason)
                    case PeerLost():
                        seen.lost.append(f"{event.peer} lost: {event.reason}")
                    case NothingLearnt():
                        seen.still += event.legs
                    case JobFinished():
                        finished = True
        except AxonError as error:
            seen.failed = f"{error.message}: {error.cause}"
        if not finished and not seen.failed:
            seen.failed = "it did not finish"
        seen.noted = [
            f"{key} noted" for key, now in self.known.items() if _failed(now) > _failed(known_of(key, before))
        ]
        return seen


def _failed(known: KnownKey) -> int:
    """Checks of its work that did not pass."""
    # A check that did not pass ends a row of those that did, and the row is all that is kept of these.
    return known.checks - known.passed


@contextmanager
def hidden_swarm(base: Path) -> Iterator[HiddenSwarm]:
    """A tracker, three honest peers and a client in `base`."""
    with Processes(base) as processes:
        processes.start_peers(*PEERS)
        with axonp2p.Swarm(trackers=[processes.tracker], home=base / "client") as swarm:
            yield HiddenSwarm(base, swarm)
