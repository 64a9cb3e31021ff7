"""Results on their way to this client's disk: files come home, their copy is paid for, then the result counts.

No crash in between leaves a result that nobody is paid for, or one without its files.
"""

from __future__ import annotations

import asyncio
from functools import partial

from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.errors import SettingsError
from axonp2p.jobs.output_messages import OutputMessage, OutputsSent
from axonp2p.kinds.run.copy_actions import KeepResult
from axonp2p.kinds.run.copy_ends import CopyEnds, why_bad
from axonp2p.kinds.run.copy_pay import CopyPay
from axonp2p.kinds.run.events import IndexFailed, OutputsKept, OutputsLost, ResultsDamaged
from axonp2p.kinds.run.messages import SendOutputs
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.results import ArrivingOutputs, CopyResult, ResultsFile, clear_away
from axonp2p.kinds.run.section import RunSection


class ResultKeeper:
    """Of one life of the client. Raises `SettingsError` of the disk."""

    def __init__(self, journal: JobJournal, section: RunSection, ends: CopyEnds, pay: CopyPay) -> None:
        self._journal = journal
        self._section = section
        self._ends = ends
        self._pay = pay
        self._out = journal.folder.path / "out"
        self._results = ResultsFile(journal.folder.path / "results.csv", section.copies)
        self._arriving: dict[int, ArrivingOutputs] = {}
        """By rank."""
        self._kept: dict[int, KeepResult] = {}
        """By rank: results whose files are on their way."""
        self._requests = 0

    def open(self) -> dict[int, CopyResult]:
        """The results that count, by index, made whole after whatever ended the last life. Blocks."""
        clear_away(self._out)
        # A worker of an earlier life may still send what that one asked for.
        self._requests = (self._record.lives + 1) << 20
        aside = self._results.mend()
        found = self._results.read()
        if aside:
            self._journal.tell(ResultsDamaged(file=str(aside), done=len(found)))
        last = self._record.accepted
        if last and last.index not in found and (self._out / str(last.index)).is_dir():
            self._results.add(last)
            found[last.index] = last
        self._forget_lost(found)
        return found

    def _forget_lost(self, found: dict[int, CopyResult]) -> None:
        """Results whose files are not here, because they stayed at a host that is gone, do not count."""
        good = [index for index, line in found.items() if not line.code] if self._section.outputs else []
        if lost := [index for index in good if not (self._out / str(index)).is_dir()]:
            self._results.forget(lost)
            for index in lost:
                del found[index]
            self._journal.tell(OutputsLost(indices=lost, done=len(found)))

    def failed_indices(self) -> list[int]:
        """Indices whose result is a failure. Blocks."""
        return sorted(index for index, line in self._results.read().items() if line.code)

    def expects(self, rank: int) -> bool:
        """Whether files of that member are on their way."""
        return rank in self._arriving

    async def fetch(self, result: KeepResult) -> SendOutputs | None:
        """The order to send the files of a good copy; None where it can have none: then it may be kept at once."""
        self._requests += 1
        rank, outputs = result.rank, self._section.outputs
        self._kept[rank] = result
        make = partial(ArrivingOutputs, self._out, result.index, self._requests, outputs)
        self._arriving[rank] = await asyncio.to_thread(make)
        if not outputs:
            self._arriving[rank].take(OutputsSent(request=self._requests, files=0))
            return None
        return SendOutputs(index=result.index, attempt=result.attempt, request=self._requests, outputs=list(outputs))

    async def heard(self, rank: int, message: OutputMessage, payload: bytes | memoryview) -> bool:
        """Whether it is about files that were on their way. Raises `PeerMisbehaved` for what does not fit."""
        arriving = self._arriving.get(rank)
        if arriving is None:
            return False
        try:
            await asyncio.to_thread(arriving.take, message, payload)
        except SettingsError:
            if self._arriving.get(rank) is not arriving:
                return False  # its folder was taken away meanwhile
            raise
        return True

    async def keep(self, rank: int, settlement: JobSettlement) -> OutputsKept | None:
        """The result counts, once its files are in their place and paid for; None: more are to come."""
        arrived = self._arriving.get(rank)
        if arrived is None or not arrived.complete:
            return None
        result = self._kept.pop(rank)
        ended = self._ends.of(rank, result.index, result.attempt)
        assert ended is not None
        await asyncio.to_thread(arrived.put)
        del self._arriving[rank]
        peer = settlement.crew.leases[rank].name
        line = CopyResult(result.index, peer, ended.code, ended.seconds, arrived.bytes)
        self._pay.owe(settlement, rank, ended, line)
        await self._counts(line)
        return OutputsKept(
            index=result.index, peer=peer, files=arrived.files, bytes=arrived.bytes, left_out=arrived.left_out,
            done=self._record.results, copies=self._section.copies,
        )  # fmt: skip

    async def fail(self, result: KeepResult, peer: str) -> IndexFailed:
        """Its attempts are spent: that is its result."""
        if ended := self._ends.of(result.rank, result.index, result.attempt):
            code, seconds, reason = ended.code or 1, ended.seconds, why_bad(ended)
        else:
            code, seconds, reason = 1, 0.0, "all copies run together, and another one failed"
        await self._counts(CopyResult(result.index, peer, code, seconds, 0))
        return IndexFailed(
            index=result.index, peer=peer, code=code, reason=reason,
            done=self._record.results, copies=self._section.copies,
        )  # fmt: skip

    async def drop(self, rank: int) -> None:
        """That member is gone: what came of its files is forgotten."""
        self._kept.pop(rank, None)
        if arriving := self._arriving.pop(rank, None):
            await asyncio.to_thread(arriving.drop)

    async def drop_others(self, index: int) -> list[int]:
        """That index has its result: the members whose files of it were on their way too, and are forgotten."""
        ranks = [rank for rank, result in self._kept.items() if result.index == index]
        for rank in ranks:
            await self.drop(rank)
        return ranks

    async def drop_all(self) -> None:
        """Nothing more comes."""
        for rank in list(self._arriving):
            await self.drop(rank)

    async def _counts(self, line: CopyResult) -> None:
        """The debt for it is on the disk before it counts."""
        await self._journal.disk.finished()
        await asyncio.to_thread(self._results.add, line)
        self._ends.forget(line.index)
        failed = self._record.failed + (line.code != 0)
        self._journal.change(results=self._record.results + 1, failed=failed)

    @property
    def _record(self) -> RunRecord:
        record = self._journal.record
        assert isinstance(record, RunRecord)
        return record
