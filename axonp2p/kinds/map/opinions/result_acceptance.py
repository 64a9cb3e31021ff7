"""Results that came from a peer go where the queue has decided: they count, or wait as opinions, or are taken
back; each with the work that its peer is paid for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from axonp2p.client.events.event import Event
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.run.processor_time import flops_of
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.errors import JobFailed, TaskError
from axonp2p.kinds.map.call_forms import pack_error
from axonp2p.kinds.map.call_pay import place_of
from axonp2p.kinds.map.chunks.live_chunks import LiveChunk
from axonp2p.kinds.map.events import CallFailed, ChunkDone, OpinionAwaited, PeerOutvoted, ResultsDoubted
from axonp2p.kinds.map.opinions.second_opinions import SecondOpinions, digest_of
from axonp2p.kinds.map.processor_meter import ProcessorMeter
from axonp2p.kinds.map.queue_actions import Distrust, KeepCrash, KeepOpinions, KeepResults, KeepUndecided
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.results.arriving_results import ArrivedResults
from axonp2p.kinds.map.results.result_keeping import ResultKeeping
from axonp2p.kinds.map.results.results_store import ItemOpinion, ItemResult, ResultsStore, WorkDone
from axonp2p.plain_text import plural

MOST_TOLD = 20
"""Calls that failed which are told as events."""
PLAIN = 256
"""Letters of a peer's or a function's words in an event."""

KeepAction = KeepResults | KeepOpinions | KeepUndecided | KeepCrash
_EventOf = Callable[[int, int], Event]
"""Is given how many items are done, and how many of those failed."""


@dataclass(frozen=True)
class _Came:
    """Results of some calls of one peer, and what the queue needs of them."""

    lease: Lease
    arrived: ArrivedResults
    groups: list[int]
    """To which opinions of their items they are equal."""
    seconds: float
    """How long their calls took."""
    cpu_seconds: float
    """What is believed of the processor seconds that the peer claims for all of them."""

    def share(self, calls: int) -> tuple[int, int]:
        """Operations and milliseconds of so many of the calls: the others are not paid."""
        share = calls / len(self.arrived.outcomes)
        return flops_of(self.cpu_seconds * share, self.lease.row.capability), round(1000 * self.seconds * share)

    def opinion(self, place: int, item: int, needed: int) -> ItemOpinion:
        outcome, value = self.arrived.outcomes[place], self.arrived.values[place]
        flops, milliseconds = self.share(1)
        return ItemOpinion(
            item, self.lease.row.peer, self.lease.name, place_of(self.lease), self.arrived.chunk, self.groups[place],
            needed, "error" if outcome.raised else "value", outcome.value, digest_of(outcome, value),
            flops, milliseconds,
        )  # fmt: skip


class ResultAcceptance:
    """Of one life of the client. Tell of results with `came`; the queue's actions on them follow at once."""

    def __init__(
        self,
        journal: JobJournal,
        store: ResultsStore,
        opinions: SecondOpinions,
        keeping: ResultKeeping,
        cores: int,
    ) -> None:
        """`cores`: how many the job has at each peer."""
        self._journal = journal
        self._store = store
        self._opinions = opinions
        self._keeping = keeping
        self._meter = ProcessorMeter(cores)
        self._since: dict[int, dict[int, float]] = {}
        """When the results of a chunk, by rank and number, came last; or when it was sent, taken over, or begun."""
        self._came: _Came | None = None
        self._told_failed = 0
        self._first_failure = ""
        """Of this life: which call, and why."""

    # --- how long calls take ---

    def begun(self, rank: int, chunk: int, now: float) -> None:
        """The calls of this chunk are not under way any earlier."""
        self._since.setdefault(rank, {})[chunk] = now
        self._meter.busy(rank, now)

    def age_of(self, chunk: LiveChunk, now: float) -> float:
        """For how many seconds the calls are under way whose results come next."""
        return max(0.0, now - self._since.get(chunk.rank, {}).get(chunk.number, now))

    def over(self, rank: int, chunk: int) -> None:
        """Nothing more comes of it."""
        chunks = self._since.get(rank, {})
        chunks.pop(chunk, None)
        if not chunks:
            self.forget(rank)

    def forget(self, rank: int) -> None:
        """That peer is gone, or has no chunk."""
        self._since.pop(rank, None)
        self._meter.idle(rank)

    # --- what the queue decides of them ---

    async def came(
        self, rank: int, lease: Lease, items: Sequence[int], arrived: ArrivedResults, now: float
    ) -> list[int]:
        """These are the results of `items`; to which opinions of these they are equal."""
        groups = await self._opinions.groups(items, arrived.outcomes, arrived.values)
        since = self._since.get(rank, {}).get(arrived.chunk, now)
        cpu_seconds = self._meter.granted(rank, arrived.cpu_seconds, since, now)
        self.begun(rank, arrived.chunk, now)  # the next calls of it
        self._came = _Came(lease, arrived, groups, max(0.0, now - since), cpu_seconds)
        return groups

    def carry_out(self, action: KeepAction, peer: str, items: int, awaited: int) -> None:
        """`peer`: the name of the one whose words led to it. `items`: how many there are; `awaited`: those that wait
        for another opinion."""
        match action:
            case KeepResults():
                self._keep(action, items, awaited)
            case KeepOpinions():
                self._keep_opinions(action, awaited)
            case KeepUndecided(item=item, peers=peers):
                self._keep_error(*self._opinions.undecided(item, peers, peer))
            case KeepCrash(item=item, reason=reason):
                error = TaskError("Crashed", f"its process ended each time: {reason}")
                self._opinions.drop(item)
                self._keep_error(error, ItemResult(item, "error", pack_error(error.kind, error.reason), peer, agreed=0))

    def _keep(self, action: KeepResults, items: int, awaited: int) -> None:
        came = self._came
        assert came is not None
        peer, key = came.lease.name, came.lease.row.peer
        results, values, work = [], [], list[WorkDone]()
        outvoted: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        alone = 0
        for place, item in zip(action.places, action.items, strict=True):
            outcome = came.arrived.outcomes[place]
            verdict = action.verdicts.get(item)
            agreed = len(verdict.agreed) if verdict else 1
            results.append(ItemResult(item, "error" if outcome.raised else "value", outcome.value, peer, agreed, key))
            values.append(came.arrived.values[place])
            if verdict is None:
                alone += 1
                continue
            settled = self._opinions.settle(item, verdict, came.opinion(place, item, agreed))
            work += settled.work
            if settled.outvoted:
                outvoted.setdefault(tuple(settled.agreed), []).extend((one, item) for one in settled.outvoted)
        if alone:
            work.append(WorkDone(place_of(came.lease), action.items[-1], *came.share(alone)))
        events = self._failures(results, values)
        for others, lost in outvoted.items():
            for name, calls in Counter(one for one, _ in lost).items():
                first = next(item for one, item in lost if one == name)
                events.append(_always(PeerOutvoted(peer=name, others=list(others), calls=calls, first=first)))
        events.append(partial(_chunk_done, action.chunk, peer, results, came.seconds, items, awaited))
        self._keeping.put(results, values, work, events)

    def _keep_opinions(self, action: KeepOpinions, awaited: int) -> None:
        came = self._came
        assert came is not None
        opinions = [
            came.opinion(place, item, action.needed) for place, item in zip(action.places, action.items, strict=True)
        ]
        self._opinions.keep(opinions)
        told = OpinionAwaited(
            peer=came.lease.name, calls=len(opinions), first=action.items[0], needed=action.needed, awaited=awaited,
            seconds=came.seconds,
        )  # fmt: skip
        self._keeping.put([], [], events=[_always(told)], opinions=opinions)

    async def distrust(self, action: Distrust, tree: ReduceTree | None, *, again: bool) -> list[int]:
        """A peer lost against several: nothing is believed that it alone has said, nor what that was merged into. The
        items that are called `again`: what the program was given it cannot give back."""
        name = self._opinions.distrust(action.peer)
        await self._keeping.finished()
        found = await asyncio.to_thread(partial(self._store.distrust, action.peer, name, again=again))
        if not found:
            return []
        items, outcomes = [item for item, _ in found], [outcome for _, outcome in found]
        if tree:
            ancestors = sorted(tree.ancestors_of(items))
            for item in ancestors:
                self._opinions.drop(item)
            outcomes += await asyncio.to_thread(self._store.forget, ancestors)
        back, taken = (len(items), 0) if again else (0, len(items))
        self._journal.tell(ResultsDoubted(peer=name, again=back, taken=taken, items=items[:16]))
        if not again:
            return []
        self._keeping.took_back(outcomes)
        return items

    def look_for_failures(self, calls: int, function: str) -> None:
        """Where the results of so many calls are merged, none can be missing. Raises `JobFailed`."""
        if failed := self._keeping.failed:
            raise JobFailed(
                f"{plural(failed, 'call')} of {calls:,} failed, so the results cannot be merged",
                cause=self._first_failure,
                fix=f"correct {function} so that it returns a value for every item, and submit the job again",
            )

    def _keep_error(self, error: TaskError, result: ItemResult) -> None:
        """A result that is no peer's."""
        self._keeping.put([result], [error], events=self._failures([result], [error]))

    def _failures(self, results: list[ItemResult], values: Sequence[Any]) -> list[_EventOf]:
        found = []
        for result, value in zip(results, values, strict=True):
            if isinstance(value, TaskError) and self._told_failed < MOST_TOLD:
                self._told_failed += 1
                kind, message = value.kind[:PLAIN], value.reason[:PLAIN]
                self._first_failure = self._first_failure or f"call {result.item}: {kind}: {message}"
                found.append(_always(CallFailed(item=result.item, peer=result.peer, kind=kind, message=message)))
        return found


def _always(event: Event) -> _EventOf:
    return lambda done, failed: event


def _chunk_done(
    chunk: int, peer: str, came: list[ItemResult], seconds: float, items: int, awaited: int, done: int, failed: int
) -> ChunkDone:
    errors = sum(one.outcome == "error" for one in came)
    return ChunkDone(
        chunk=chunk, peer=peer, calls=len(came), first=came[0].item, seconds=seconds, done=done, items=items,
        failed=failed, errors=errors, awaited=awaited,
    )  # fmt: skip
