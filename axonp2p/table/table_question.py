"""One question to the table, carried to its sources side by side as `asking_order` says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, TrackerUnreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.table.asking_order import LONGEST_S, AskingOrder
from axonp2p.table.dht_source import DhtAnswer, DhtSource
from axonp2p.table.records import Row
from axonp2p.table.sightings import DHT, Sight, SourceAnswer, merged
from axonp2p.table.tracker_client import query
from axonp2p.table.tracker_lines import TrackerLines, reason_of, why_none
from axonp2p.transport.http.http_caller import HttpCaller


@dataclass(frozen=True)
class Question:
    """The question: a `peers.capability.Need` as a map, for how many, and near which coordinate."""

    need: Mapping[str, Any]
    count: int
    enough: int
    """With so many peers seen, nobody else is asked or waited for."""
    near: bytes = b""
    at_once: bool = False
    """Whether every source is asked, and now."""


class TableQuestion:
    """Carries one question to all sources. `run()` is called once."""

    def __init__(
        self,
        question: Question,
        trackers: TrackerLines,
        dht: DhtSource | None,
        clock: Clock,
        answered: Sequence[SourceAnswer] = (),
    ) -> None:
        """`answered`: what the trackers said when they were asked just now; then only the DHT is asked."""
        self._question = question
        self._trackers = trackers
        self._dht = dht
        self._clock = clock
        self._answers = list(answered)
        self._asks_trackers = not answered
        self._silent: dict[PeerId, str] = {}
        self._failures: list[tuple[HttpCaller, AxonError]] = []
        self._running: dict[asyncio.Task[SourceAnswer], str] = {}

    async def run(self) -> Sight:
        """Ask until there is enough. Raises nothing of the family."""
        began = self._clock.monotonic()
        lines: dict[str, HttpCaller] = {}
        for line in self._trackers.in_order() if self._asks_trackers else ():
            lines.setdefault(line.called, line)  # of two that claim one address, the better known is asked
        order = AskingOrder(
            list(lines), dht=self._dht is not None, at_once=self._question.at_once, now=self._clock.monotonic()
        )
        try:
            while True:
                now = self._clock.monotonic()
                for source in order.start(now):
                    self._running[asyncio.create_task(self._ask(lines.get(source)))] = source
                if order.over(now):
                    break
                await self._hear(order, order.wait(now))
        finally:
            await cancel_and_wait(*self._running)
        seconds = self._clock.monotonic() - began
        why = f"no answer within {seconds:.1f} s"
        late = [SourceAnswer(source, seconds, trouble=why) for source in self._running.values()]
        self._failures += [(lines[one], TrackerUnreachable(why)) for one in self._running.values() if one in lines]
        return Sight(merged(self._answers), [*self._answers, *late], self._silent, order.complete)

    @property
    def error(self) -> AxonError:
        """Why nobody showed anything: each tracker and the DHT with its reason, or a tracker's refusal."""
        error = why_none(self._failures)
        reasons = [f"the DHT: {answer.trouble}" for answer in self._answers if answer.source == DHT and answer.trouble]
        cause = "; ".join([error.cause, *reasons] if error.cause else reasons)
        return type(error)(error.message, cause=cause, fix=error.fix)

    async def _hear(self, order: AskingOrder, seconds: float) -> None:
        if not self._running:
            await asyncio.sleep(seconds)
            return
        done, _ = await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            source = self._running.pop(task)
            answer = task.result()
            self._answers.append(answer)
            now = self._clock.monotonic()
            if answer.trouble:
                order.failed(source, now)
            else:
                seen = len({row.peer for answer in self._answers for row in answer.rows})
                order.answered(source, now, enough=seen >= self._question.enough)

    async def _ask(self, line: HttpCaller | None) -> SourceAnswer:
        return await (self._ask_tracker(line) if line else self._ask_dht())

    async def _ask_tracker(self, line: HttpCaller) -> SourceAnswer:
        began, question = self._clock.monotonic(), self._question
        try:
            found = await self._trackers.ask(
                line,
                lambda caller: query(
                    caller,
                    dict(question.need),
                    question.count,
                    now=self._clock.now(),
                    near=question.near,
                    timeout_s=LONGEST_S,
                ),
            )
        except AxonError as error:
            self._failures.append((line, error))
            return SourceAnswer(line.called, self._clock.monotonic() - began, trouble=reason_of(line, error))
        seconds = self._clock.monotonic() - began
        return SourceAnswer(line.called, seconds, tuple(found.rows), found.fitting, found.alive, found.dropped)

    async def _ask_dht(self) -> SourceAnswer:
        assert self._dht is not None
        began = self._clock.monotonic()
        try:
            with one_look("a question to the DHT"):
                found: DhtAnswer = await self._dht.ask(self._question.need, self._question.count, self._seen)
        except AxonError as error:
            return SourceAnswer(DHT, self._clock.monotonic() - began, trouble=error.in_a_line)
        self._silent |= found.silent
        return found.answer

    def _seen(self) -> dict[PeerId, Row]:
        return {seen.row.peer: seen.row for seen in merged(self._answers)}
