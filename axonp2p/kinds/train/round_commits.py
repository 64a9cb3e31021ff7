"""The books of a job: which rounds are done for good. job.json says so; all else is made to fit it after a crash.

A round is first written down as ahead, with all that is to be told of it. Once its state is on the disk it is booked:
its line in metrics.csv, then job.json, then the event. So a round that is in the books is never trained again because
a program died, and one that is not was never told as done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from axonp2p.client.events.events import FileDamaged
from axonp2p.client.storage.checkpoints import Checkpoint, Checkpoints
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import NumberedReceipts
from axonp2p.files import DAMAGED
from axonp2p.kinds.train.events import RoundFinished, RoundsLost, StateDamaged, StateFound
from axonp2p.kinds.train.kept.best_round import BestRound
from axonp2p.kinds.train.metrics_file import MetricsFile, row_of
from axonp2p.kinds.train.record import AheadRound, TrainRecord


class RoundCommits:
    """One job's."""

    def __init__(self, journal: JobJournal, checkpoints: Checkpoints) -> None:
        self.journal = journal
        self.metrics = MetricsFile(journal.folder.metrics)
        self.checkpoints = checkpoints

    @property
    def record(self) -> TrainRecord:
        """The job's, as it is now."""
        record = self.journal.record
        assert isinstance(record, TrainRecord)
        return record

    def accepted(self, ahead: AheadRound) -> None:
        """All peers agree on a round."""
        self.journal.round = ahead.finished.round + 1
        self.journal.change(ahead=ahead)

    def book(
        self, round: int, state: bytes | None, credits: dict[str, float], receipts: Sequence[NumberedReceipts] = ()
    ) -> None:
        """The round enters the books, if it is not there yet; its state is on the disk, or none is kept of it."""
        journal = self.journal
        kept: dict[str, object] = {"kept_round": round + 1, "kept_state": state.hex()} if state else {}
        kept["receipts"] = list(receipts)
        ahead = self.record.ahead
        new = ahead is not None and ahead.finished.round == round
        told = ahead.finished if ahead and new else self.record.last
        if state and told and told.round == round:
            kept["best"] = self._best_with(self.record.best, told)
        if ahead and new:
            self._add(ahead, kept, credits)
        else:
            journal.change(lasting=True, **kept)
        if state:
            best = self.record.best.rounds if self.record.best else 0
            journal.disk.do(partial(self.checkpoints.forget_before, round + 1, state, best))

    def _best_with(self, best: BestRound | None, told: RoundFinished) -> BestRound | None:
        by = self.record.best_by
        return by.best_of(best, told.round + 1, by.value(told.loss, told.metrics))

    def _add(self, ahead: AheadRound, kept: dict[str, object], credits: dict[str, float]) -> None:
        event, journal = ahead.finished, self.journal
        line = row_of(event, ahead.round_bytes)
        journal.disk.do(partial(self.metrics.add, line))
        journal.change(
            lasting=True,
            round=event.round + 1,
            loss=event.loss,
            metrics=event.metrics,
            wire_bytes=event.wire_bytes,
            credits=credits,
            state_name=ahead.state,
            ahead=None,
            last=event,
            **kept,
        )
        journal.tell(event)

    # --- going on ---

    def open(self, pay: Callable[[AheadRound], Sequence[NumberedReceipts]]) -> Checkpoint | None:
        """Make the books whole after whatever ended the last life of the job; the newest good state on this disk.

        A round may enter them now: `pay` writes its receipts, and gives back all that are to be kept then. Blocks for
        as long as it takes to read the state.
        """
        self.checkpoints.clear_away()
        journal = self.journal
        good = self._newest_good()
        self._mend_metrics()
        ahead = self.record.ahead
        if good and ahead and (good.rounds, good.state.hex()) == (ahead.finished.round + 1, ahead.state):
            self.book(ahead.finished.round, good.state, self.record.credits, pay(ahead))
        journal.change(kept_round=good.rounds if good else 0, kept_state=good.state.hex() if good else "")
        journal.disk.finish()  # the event of a round that entered the books just now is among those that are read
        self._tell_the_last()
        journal.disk.finish()
        journal.change(best=self.best_left(good.rounds if good else 0))
        journal.disk.finish()
        return good

    def go_on(self, rounds: int, waiting: list[str]) -> None:
        """The job goes on from the state after so many rounds, which those peers hold."""
        journal = self.journal
        self.lose_after(rounds)
        if self.record.round == rounds:
            journal.change(ahead=None)
        journal.round = rounds
        if rounds:
            journal.tell(StateFound(round=rounds, rounds=self.record.rounds, waiting=waiting))

    def lose_after(self, rounds: int) -> None:
        """The result accepted after so many rounds has no state any more."""
        if (lost := self.record.round) <= rounds:
            return
        last = self._told().get(rounds - 1)
        so_far: dict[str, object] = {"loss": last.loss, "metrics": last.metrics} if last else {}
        self.journal.disk.do(partial(self.metrics.keep, rounds))
        self.journal.change(lasting=True, round=rounds, ahead=None, **so_far)
        self.journal.tell(RoundsLost(first=rounds, last=lost - 1))

    def _newest_good(self) -> Checkpoint | None:
        """Nothing is removed here: the books may be what is wrong."""
        record, told = self.record, self._told()
        names = {record.kept_round: record.kept_state}
        if record.ahead:
            names[record.ahead.finished.round + 1] = record.ahead.state
        for one in self.checkpoints.all():
            newer = one.rounds > max(names)
            # One that is newer than the books, and was never told of, is of a round that was never in them.
            known = one.rounds - 1 in told if newer else names.get(one.rounds, one.state.hex()) == one.state.hex()
            if known and one.fits():
                if newer:
                    self._catch_up(one, told[one.rounds - 1])
                return one
            aside = self.checkpoints.put_aside(one)
            self.journal.tell(StateDamaged(round=one.rounds, file=str(aside)))
        return None

    def best_left(self, rounds: int) -> BestRound | None:
        """The best of those up to `rounds` whose states are here."""
        best, told = None, self._told()
        for one in reversed(self.checkpoints.all()):
            if one.rounds <= rounds and (event := told.get(one.rounds - 1)):
                best = self._best_with(best, event)
        return best

    def _told(self) -> dict[int, RoundFinished]:
        """Rounds that were told as done, which none is before it is in the books."""
        return {event.round: event for event in self.journal.folder.read_events() if isinstance(event, RoundFinished)}

    def _catch_up(self, newest: Checkpoint, last: RoundFinished) -> None:
        """The record is older than what it led to: an old copy was put back. How far receipts were numbered in the
        leases of that time is not known any more, so the job goes on with new leases."""
        self.journal.folder.leases.unlink(missing_ok=True)
        self.journal.change(
            lasting=True,
            round=newest.rounds,
            loss=last.loss,
            metrics=last.metrics,
            wire_bytes=last.wire_bytes,
            state_name=newest.state.hex(),
            ahead=None,
            last=last,
            receipts=[],
        )

    def _mend_metrics(self) -> None:
        journal = self.journal
        last = [self.record.last] if self.record.last else []
        aside = self.metrics.mend(self.record.round, [*journal.folder.read_events(), *last])
        if aside:
            journal.tell(FileDamaged(name=aside.name.partition(DAMAGED)[0], file=str(aside)))

    def _tell_the_last(self) -> None:
        """The event of the last round in the books, if a crash came before it was told."""
        last = self.record.last
        if last and last.round < self.record.round:
            told = (event for event in reversed(self.journal.folder.read_events()) if isinstance(event, RoundFinished))
            newest = next(told, None)
            if newest is None or newest.round < last.round:
                self.journal.tell(last)
