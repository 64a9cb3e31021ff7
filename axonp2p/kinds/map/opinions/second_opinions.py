"""Results that wait until other peers have given theirs: which of them are equal, what each is owed, and what the book
of trust gets to know.

The queue decides (`queue`, with `quorum.verdict`); results.sqlite has the values. In memory an opinion is a digest.
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.trust_book import KnownKey, TrustBook, known_of
from axonp2p.errors import JobFailed, TaskError
from axonp2p.identity.peer_id import PeerId
from axonp2p.kinds.map.call_forms import CallOutcome, open_outcome, pack_error
from axonp2p.kinds.map.calls.own_function import load_own
from axonp2p.kinds.map.messages import LARGEST_RESULT
from axonp2p.kinds.map.opinions.agreement import close
from axonp2p.kinds.map.opinions.quorum import Accepted, Vote, quorum_for
from axonp2p.kinds.map.results.results_store import ItemOpinion, ItemResult, ResultsStore, WorkDone
from axonp2p.kinds.map.section import MapSection
from axonp2p.plain_text import plural

MOST_NOTED = 10_000
"""Chunks of which it is remembered that the book of trust knows of them."""


@dataclass(frozen=True)
class VerdictPay:
    """The outcome of a verdict."""

    work: list[WorkDone]
    """Of those that agree: as much for each as half of them claim at most."""
    agreed: list[str]
    """Their names."""
    outvoted: list[str]


class SecondOpinions:
    """Of one life of the client."""

    def __init__(
        self,
        section: MapSection,
        journal: JobJournal,
        store: ResultsStore,
        book: TrustBook,
        chance: Callable[[], float],
        written: Callable[[], Any],
    ) -> None:
        """`written()` is waited for before values are read from `store`."""
        self._section = section
        self._journal = journal
        self._store = store
        self._book = book
        self._chance = chance
        self._written = written
        self._known: dict[PeerId, KnownKey] = {}
        self._kept: dict[int, dict[str, ItemOpinion]] = {}
        """By item and peer, in the order in which they came."""
        self._names: dict[str, str] = {}
        self._noted: set[tuple[str, int, bool]] = set()
        self._same: Callable[[Any, Any], Any] = close
        self.fails_at: float | None = None
        """When the job fails because nobody is there who could give another opinion."""

    def open(self) -> None:
        """Take up the opinions that earlier lives left, while `store` is open. Blocks. Raises `JobFailed`."""
        self._known = self._book.all()
        for one in self._store.opinions():
            self._add(one)
        if ":" in self._section.agree:
            self._same = self._load_own()

    def for_queue(self) -> dict[int, tuple[int, list[Vote]]]:
        """As `QueuePlan.opinions` has it."""
        return {
            item: (
                max(one.needed for one in opinions.values()),
                [Vote(one.peer, one.group) for one in opinions.values()],
            )
            for item, opinions in self._kept.items()
        }

    def quorum_of(self, peer: str, others: int) -> int:
        """How many equal results a chunk of that peer needs, while so many others could be asked."""
        if self._section.quorum is None and not others:
            return 1
        return quorum_for(self._section.quorum, known_of(peer, self._known).trust, self._chance)

    def error_quorum_of(self, others: int) -> int:
        """How many equal exceptions an item needs that must not fail, while so many others could be asked."""
        return 2 if self._section.quorum is None and others else 1

    async def groups(self, items: Sequence[int], outcomes: Sequence[CallOutcome], values: Sequence[Any]) -> list[int]:
        """For each result, to which of the earlier ones of its item it is equal. Raises `JobFailed`."""
        if not any(item in self._kept for item in items):
            return [0] * len(items)
        return [
            await self._group(self._kept.get(item, {}), outcome, value)
            for item, outcome, value in zip(items, outcomes, values, strict=True)
        ]

    def keep(self, opinions: Sequence[ItemOpinion]) -> None:
        """These wait from now on."""
        for one in opinions:
            self._add(one)

    def settle(self, item: int, verdict: Accepted, last: ItemOpinion) -> VerdictPay:
        """An item has its result, which `last` agrees with."""
        opinions = self._forget(item) | {last.peer: last}
        agreed = [opinions[peer] for peer in verdict.agreed]
        outvoted = [opinions[peer] for peer in verdict.outvoted]
        flops = statistics.median_low(one.flops for one in agreed)
        for one in agreed:
            self._note(one, self._book.passed, good=True)
        for one in outvoted:
            self._note(one, self._book.doubted, good=False)
        return VerdictPay(
            [WorkDone(one.place, item, min(flops, one.flops), one.milliseconds) for one in agreed],
            [one.name for one in agreed],
            [one.name for one in outvoted],
        )

    def undecided(self, item: int, peers: Sequence[str], last: str) -> tuple[TaskError, ItemResult]:
        """Nobody can tell which result is right."""
        self._forget(item)
        names = ", ".join(self._names.get(peer, last) for peer in peers)
        error = TaskError("NoQuorum", f"no {self._wished} of {names} found the same; see quorum and agree")
        return error, ItemResult(item, "error", pack_error(error.kind, error.reason), last, agreed=0)

    def drop(self, item: int) -> None:
        """It has a result without a verdict."""
        self._forget(item)

    def distrust(self, peer: str) -> str:
        """Forget what that peer found; its name."""
        for item in [item for item, opinions in self._kept.items() if peer in opinions]:
            del self._kept[item][peer]
        return self._names.get(peer, peer)

    def look_for_voices(self, awaited: int, there: Iterable[str], now: float, wait: float) -> None:
        """So many items cannot go on without a peer that has not come yet; 0: another thing goes on.

        Raises `JobFailed` when none has come for `wait` seconds. `there`: names of those that have given theirs.
        """
        if not awaited:
            self.fails_at = None
            return
        self.fails_at = self.fails_at or now + wait
        if now >= self.fails_at:
            raise JobFailed(
                f"{plural(awaited, 'result')} wait for the opinion of another peer, and there is none",
                cause=f"those that are there have given theirs: {', '.join(sorted(there))}",
                fix=f"axon resume {self._journal.record.id}, once there are more peers; "
                "a function whose results differ from call to call needs quorum = 1",
            )

    # --- how it works ---

    @property
    def _wished(self) -> int:
        return self._section.quorum or 2

    def _add(self, opinion: ItemOpinion) -> None:
        self._names[opinion.peer] = opinion.name
        self._kept.setdefault(opinion.item, {})[opinion.peer] = replace(opinion, value=b"")

    def _forget(self, item: int) -> dict[str, ItemOpinion]:
        return self._kept.pop(item, {})

    async def _group(self, opinions: dict[str, ItemOpinion], outcome: CallOutcome, value: Any) -> int:
        digest = digest_of(outcome, value)
        for one in opinions.values():
            if one.digest == digest:
                return one.group
        if self._section.agree != "exact" and not outcome.raised:
            firsts = {one.group: one for one in reversed(opinions.values()) if one.outcome == "value"}
            for group, one in sorted(firsts.items()):
                await self._written()
                if await asyncio.to_thread(self._is_same, one, value):
                    return group
        return max((one.group for one in opinions.values()), default=-1) + 1

    def _is_same(self, opinion: ItemOpinion, value: Any) -> bool:
        _, packed = self._store.opinion(opinion.item, opinion.peer)
        other = open_outcome(CallOutcome(False, packed), LARGEST_RESULT)
        try:
            return bool(self._same(other, value))
        except Exception as error:
            # A value may be made for this: it is the function's fault if it fails with each of the two alone.
            if not (self._fails_with(value) and self._fails_with(other)):
                return False
            raise JobFailed(
                f"{self._section.agree} failed when it compared two results of item {opinion.item}",
                cause=f"{type(error).__name__}: {error}"[:500],
                fix="correct the function and submit the job again",
            ) from error

    def _fails_with(self, value: Any) -> bool:
        try:
            self._same(value, value)
        except Exception:
            return True
        return False

    def _load_own(self) -> Callable[[Any, Any], Any]:
        try:
            return load_own(self._section.agree, self._journal.folder.bundle)
        except Exception as error:
            raise JobFailed(
                f"{self._section.agree} cannot be loaded to compare results",
                cause=f"{type(error).__name__}: {error}"[:500],
                fix="it has to be a function of two values in a file of the job's folder",
            ) from error

    def _note(self, one: ItemOpinion, note: Callable[[PeerId], None], *, good: bool) -> None:
        """Once for each chunk of a peer."""
        if (one.peer, one.chunk, good) in self._noted:
            return
        if len(self._noted) >= MOST_NOTED:
            self._noted.clear()
        self._noted.add((one.peer, one.chunk, good))
        self._journal.disk.do(partial(note, one.peer))
        self._journal.disk.do(self._read)

    def _read(self) -> None:
        self._known = self._book.all()


def digest_of(outcome: CallOutcome, value: Any) -> bytes:
    """Equal for equal results: of an exception, its traceback does not count."""
    said = f"{value.kind}\0{value.reason}".encode() if outcome.raised else outcome.value
    return hashlib.sha256((b"error " if outcome.raised else b"value ") + said).digest()
