"""What checks come to for this client: told as events, and kept of each key in its book of trust."""

from __future__ import annotations

import random
from collections.abc import Callable

from axonp2p.client.account import JobAccount
from axonp2p.client.crew import LeasedCrew
from axonp2p.client.events import WorkChecked as WorkCheckedEvent
from axonp2p.client.trust_book import TrustBook
from axonp2p.clock import Clock
from axonp2p.jobs.spec import JobSpec
from axonp2p.logs import get_logger
from axonp2p.training.checking.desk import Settings
from axonp2p.training.checking.opinions import Outcome
from axonp2p.training.round_messages import WorkChecked

log = get_logger(__name__)


class CheckedWork:
    """Of one job."""

    def __init__(self, book: TrustBook, crew: LeasedCrew, account: JobAccount, clock: Clock) -> None:
        self._book = book
        self._crew = crew
        self._account = account
        self._clock = clock
        self.liars: set[int] = set()
        """Ranks that were convicted in this job: what they told of their work is not paid for."""

    def settings(self, spec: JobSpec, chance: Callable[[], float] | None = None) -> Settings | None:
        """How this job is checked; None when its author wants none of it. `chance` is the system's own otherwise."""
        if not spec.train.checks:
            return None
        return Settings(
            wished=spec.train.checks,
            memory_bytes=spec.need.memory * 2**20,
            trust_of=lambda rank: self._book.known(self._crew.leases[rank].row.peer).trust,
            chance=chance or random.SystemRandom().random,
        )

    def show(self, checked: WorkChecked) -> None:
        """A check came to an end."""
        judgement = checked.judgement
        event = WorkCheckedEvent(
            peer=self._name(checked.of),
            by=[self._name(rank) for rank in checked.by],
            round=checked.round,
            first=checked.first,
            last=checked.last,
            outcome=judgement.outcome.name.lower(),
            distance=judgement.distance,
            step=judgement.step,
            convicted=[self._name(rank) for rank in checked.convicted],
            flops=checked.flops,
        )
        self._account.tell(event)
        if judgement.outcome is Outcome.PASSED:
            self._book.passed(self._peer(checked.of))
        elif checked.of not in checked.convicted:
            self._book.doubted(self._peer(checked.of))
        for rank in (*judgement.contradicted, *judgement.false_accusers):
            if rank not in checked.convicted:
                self._book.doubted(self._peer(rank))
        self.liars.update(checked.convicted)
        for rank in checked.convicted:
            which = f"steps {event.first + 1} to {event.last} of round {event.round + 1}"
            why = f"its {which}" if rank == checked.of else f"what it said of {which} of {event.peer}"
            log.warning("convicted", peer=self._name(rank), job=self._account.record.id, why=why)
            self._book.convict(self._peer(rank), self._account.record.id, why, self._clock.now())

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name

    def _peer(self, rank: int) -> str:
        return self._crew.leases[rank].row.peer
