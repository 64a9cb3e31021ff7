"""Which copy runs at which peer, which one again, and which one twice: the mind of a job of this kind. Pure.

Each call tells what has happened and gives back what is to be done. A rank has at most one copy at a time, an index one
result. Only what the command itself does counts as an attempt; a peer that is lost, paused or handed back costs none.

An index is in one of these places:

    waiting ---> live: one copy, or two where the first stands still ---> kept
       ^           | all its copies are lost, or ended badly                ^
       +-----------+ and attempts are left                                  |
                   +------------------- none are left: its result is that it failed

With `together` all indices without a result run at once or none: when one ends badly or is lost, all begin anew, and
no result is kept before all have ended well. An index whose peer is lost while its files travel home begins anew with
those alone that have no result either, since copies do not talk to each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from axonp2p.client.run.standing_still import Durations, stands_still_from
from axonp2p.kinds.run.copy_actions import (
    CopiesPlan,
    CopyAction,
    CopyState,
    KeepResult,
    LiveCopy,
    StartCause,
    StartCopy,
    StopCopy,
)
from axonp2p.kinds.run.waiting_indices import WaitingIndices

SENDING_S = 60.0
"""For so long files may come at least before their copy stands still; see `standing_still` for more."""
_UNDONE = (CopyState.RUNNING, CopyState.ENDED_WELL)
_UNDER_WAY = (CopyState.RUNNING, CopyState.SENDING)
_ALL = -1


class CopyScheduler:
    """One life of a job. `now` is monotonic seconds. Say who is there with `joined`, then `begin`."""

    def __init__(self, plan: CopiesPlan) -> None:
        self._plan = plan
        self._done = set(plan.finished)
        self._failed: dict[int, KeepResult] = {}
        """Indices whose result is that they failed, until that is kept."""
        self._waiting = WaitingIndices(set(range(plan.copies)) - self._done)
        self._live: dict[int, LiveCopy] = {}
        """By rank."""
        self._present: set[int] = set()
        self._leaving: set[int] = set()
        self._paused: dict[int, float] = {}
        """Since when."""
        self._begun: Counter[int] = Counter()
        """How often each index was."""
        self._ends: Counter[int] = Counter()
        """Which count, by index; of all together under `_ALL`."""
        self._last_failure: dict[int, KeepResult] = {}
        self._durations = Durations()
        self._sending_durations = Durations()
        self._anew = False
        self._held = True
        """Before the beginning, and after `hold`."""
        self._now = -math.inf
        self._actions: list[CopyAction] = []

    # --- what happens ---

    def begin(self, now: float) -> list[CopyAction]:
        """All that are there have joined."""
        self._held = False
        if self._plan.together and self._waiting:
            self._anew = bool(self._live)
        return self._go_on(now)

    def joined(self, rank: int, now: float, runs: tuple[int, int] | None = None) -> list[CopyAction]:
        """A peer is there; `runs`: the index and attempt of the copy that it runs, or ran last, for an earlier life."""
        self._forget(rank)
        self._present.add(rank)
        if runs is not None:
            self._take_over(LiveCopy(rank, *runs, began=now, taken_over=True))
        return self._go_on(now)

    def lost(self, rank: int, now: float, *, own_fault: bool = False) -> list[CopyAction]:
        """A peer is gone. `own_fault`: because its copy went over a limit of the sandbox."""
        self._now = max(self._now, now)
        copy = self._forget(rank)
        if copy is not None and copy.state is not CopyState.STOPPED:
            if own_fault and copy.state is CopyState.RUNNING:
                self._ended_badly(copy)
            elif self._plan.restart == "always" and copy.state is CopyState.SENDING:
                self._ends[copy.index] -= 1  # its end was the last one, and has to be had again
            self._anew = True
            self._settle(copy.index)
        return self._go_on(now)

    def paused(self, rank: int, now: float) -> list[CopyAction]:
        """The peer's owner lets it stand still."""
        if rank in self._present:
            self._paused.setdefault(rank, now)
        return self._go_on(now)

    def resumed(self, rank: int, now: float) -> list[CopyAction]:
        """It goes on."""
        self._paused.pop(rank, None)
        return self._go_on(now)

    def leaves(self, rank: int, now: float) -> list[CopyAction]:
        """The peer's owner wants it back soon: it ends what it does if there is time, and begins nothing more."""
        if rank in self._present:
            self._leaving.add(rank)
        return self._go_on(now)

    def exited(self, rank: int, index: int, attempt: int, now: float, *, good: bool, told: bool) -> list[CopyAction]:
        """A copy is over. `told`: because it was told to end."""
        self._now = max(self._now, now)
        copy = self._live.get(rank)
        if copy is None or (copy.index, copy.attempt) != (index, attempt):
            return []
        if copy.state is CopyState.STOPPED or (copy.state is CopyState.RUNNING and not good):
            del self._live[rank]
            if copy.state is CopyState.RUNNING:
                if not told:
                    self._ended_badly(copy)
                self._anew = True
                self._settle(index)
        elif copy.state is CopyState.RUNNING:
            self._ended_well(copy, now)
        return self._go_on(now)

    def kept(self, index: int, now: float) -> list[CopyAction]:
        """The result of this index is on the disk."""
        self._done.add(index)
        self._failed.pop(index, None)
        if len(sending := [copy for copy in self._copies_of(index) if copy.state is CopyState.SENDING]) == 1:
            self._sending_durations.add(now - sending[0].sends_since)
        for copy in self._copies_of(index):
            if copy.state is CopyState.RUNNING:
                self._stop(copy)
            else:
                del self._live[copy.rank]
        return self._go_on(now)

    def hold(self) -> None:
        """Begin nothing more; what runs goes on to its end."""
        self._held = True

    def due(self, now: float) -> list[CopyAction]:
        """The deadline has come."""
        return self._go_on(now)

    # --- what may be asked ---

    @property
    def over(self) -> bool:
        """Whether each index has its result."""
        return len(self._done) == self._plan.copies

    @property
    def resting(self) -> bool:
        """Whether nothing runs or waits for the disk, and nothing comes home but what stands still."""
        return not self._failed and all(
            copy.state is CopyState.STOPPED or (copy.state is CopyState.SENDING and self._stands_still(copy))
            for copy in self._live.values()
        )

    @property
    def under_way(self) -> dict[int, int]:
        """The index that runs, or whose files come home, by rank."""
        return {copy.rank: copy.index for copy in self._live.values() if copy.state in _UNDER_WAY}

    def runs_at(self, rank: int) -> tuple[int, int] | None:
        """The index and attempt of the copy there that has not said that it is over."""
        copy = self._live.get(rank)
        if copy is None or copy.state not in (CopyState.RUNNING, CopyState.STOPPED):
            return None
        return copy.index, copy.attempt

    @property
    def needed(self) -> int:
        """How many peers it takes at least to go on."""
        if self._plan.together:
            return self._plan.copies - len(self._done)
        return 0 if self.over else 1

    def next_deadline(self) -> float | None:
        """When to call `due` if nothing else happens."""
        copies = [copy for copy in self._live.values() if copy.state is CopyState.SENDING]
        if self._may_start_twice:
            copies += self._alone()
        moments = [moment for copy in copies if (moment := self._still_from(copy)) > self._now]
        deadline = min(moments, default=math.inf)
        return None if deadline == math.inf else deadline

    # --- how copies end ---

    def _ended_well(self, copy: LiveCopy, now: float) -> None:
        copy.state = CopyState.ENDED_WELL
        if not copy.taken_over:
            self._durations.add(now - copy.began)
        if self._plan.together:
            return
        if self._plan.restart == "always":
            self._ends[copy.index] += 1
            if self._ends[copy.index] < self._plan.most_ends:
                del self._live[copy.rank]
        self._settle(copy.index)

    def _ended_badly(self, copy: LiveCopy) -> None:
        self._waiting.note_failure(copy.index, copy.rank)
        self._last_failure[copy.index] = KeepResult(copy.rank, copy.index, copy.attempt, good=False)
        if not self._plan.together:
            self._ends[copy.index] += 1
            return
        self._ends[_ALL] += 1
        if self._ends[_ALL] >= self._plan.most_ends:
            running = [other.index for other in self._live.values() if other.state in _UNDONE]
            for index in [copy.index, *self._waiting.all(), *running]:
                self._fail(KeepResult(copy.rank, index, copy.attempt, good=False))

    def _fail(self, failure: KeepResult) -> None:
        if failure.index in self._done or failure.index in self._failed:
            return
        self._failed[failure.index] = failure
        self._actions.append(failure)
        self._waiting.remove(failure.index)

    def _settle(self, index: int) -> None:
        """Settle an index now that one of its copies is over."""
        if index in self._done or index in self._failed:
            return
        copies = self._copies_of(index)
        comes = any(copy.state is CopyState.SENDING and not self._stands_still(copy) for copy in copies)
        ended = [copy for copy in copies if copy.state is CopyState.ENDED_WELL]
        if not copies and self._ends[index] >= self._plan.most_ends:
            self._fail(self._last_failure[index])
        elif not copies:
            self._waiting.put_back(index)
        elif ended and not self._plan.together and not comes:
            self._send(ended[0])

    def _send(self, copy: LiveCopy) -> None:
        copy.state, copy.sends_since = CopyState.SENDING, self._now
        self._actions.append(KeepResult(copy.rank, copy.index, copy.attempt, good=True))

    def _stop(self, copy: LiveCopy) -> None:
        copy.state = CopyState.STOPPED
        self._actions.append(StopCopy(copy.rank, copy.index, copy.attempt))

    # --- how copies begin ---

    def _go_on(self, now: float) -> list[CopyAction]:
        self._now = max(self._now, now)
        if self._plan.together:
            self._together()
        else:
            for copy in [copy for copy in self._live.values() if copy.state is CopyState.ENDED_WELL]:
                self._settle(copy.index)  # the other one's files may stand still by now
            if not self._held:
                self._fill()
                self._start_twice()
        actions, self._actions = self._actions, []
        return actions

    def _together(self) -> None:
        if self._anew or self._failed:
            for copy in [copy for copy in self._live.values() if copy.state in _UNDONE]:
                self._not_alone(copy)
        self._anew = False
        undone = [copy for copy in self._live.values() if copy.state in _UNDONE]
        if not undone and self._waiting and not self._held and len(self._free()) >= len(self._waiting):
            self._fill()
        elif undone and not self._waiting and all(copy.state is CopyState.ENDED_WELL for copy in undone):
            if self._plan.restart == "always" and self._ends[_ALL] + 1 < self._plan.most_ends:
                self._ends[_ALL] += 1
                self._anew = True
                self._together()
                return
            for copy in undone:
                self._send(copy)

    def _not_alone(self, copy: LiveCopy) -> None:
        """This one is given up because another one has to begin anew, or has failed."""
        if copy.state is CopyState.RUNNING:
            self._stop(copy)
        else:
            del self._live[copy.rank]
        self._settle(copy.index)

    def _fill(self) -> None:
        """Give each free peer an index: one where it did not fail, as long as there is one."""
        for anywhere in (False, True):
            for rank in self._free():
                if (index := self._waiting.take_for(rank, anywhere=anywhere)) is not None:
                    self._start(rank, index, "again" if self._begun[index] else "first")

    def _start_twice(self) -> None:
        if not self._may_start_twice:
            return
        still = sorted((moment, copy.rank) for copy in self._alone() if (moment := self._still_from(copy)) <= self._now)
        for _, slow in still:
            index = self._live[slow].index
            other = next((rank for rank in self._free() if not self._waiting.failed_at(index, rank)), None)
            if other is not None:
                self._start(other, index, "second")

    def _start(self, rank: int, index: int, cause: StartCause) -> None:
        attempt = self._begun[index]
        self._begun[index] += 1
        self._live[rank] = LiveCopy(rank, index, attempt, began=self._now)
        self._actions.append(StartCopy(rank, index, attempt, cause))

    @property
    def _may_start_twice(self) -> bool:
        """Only what nobody waits behind, and what ends with its first good end."""
        plan = self._plan
        fits = not plan.together and plan.restart != "always" and not self._held
        return fits and not self._waiting and bool(self._free())

    def _still_from(self, copy: LiveCopy) -> float:
        paused, leaving = self._paused.get(copy.rank), copy.rank in self._leaving
        if copy.state is CopyState.SENDING:
            too_long = max(self._sending_durations.too_long(), SENDING_S)
            return stands_still_from(copy.sends_since, too_long, paused, leaving=False)
        return stands_still_from(copy.began, self._durations.too_long(), paused, leaving=leaving)

    def _stands_still(self, copy: LiveCopy) -> bool:
        return self._still_from(copy) <= self._now

    # --- small questions ---

    def _free(self) -> list[int]:
        return sorted(self._present - self._live.keys() - self._leaving - self._paused.keys())

    def _copies_of(self, index: int) -> list[LiveCopy]:
        """Those that may still become its result."""
        return [copy for copy in self._live.values() if copy.index == index and copy.state is not CopyState.STOPPED]

    def _alone(self) -> Iterable[LiveCopy]:
        """Copies that run, or whose files come home, and whose index has no other one."""
        many = Counter(copy.index for copy in self._live.values() if copy.state is not CopyState.STOPPED)
        return [copy for copy in self._live.values() if copy.state in _UNDER_WAY and many[copy.index] == 1]

    # --- who is there ---

    def _forget(self, rank: int) -> LiveCopy | None:
        self._present.discard(rank)
        self._leaving.discard(rank)
        self._paused.pop(rank, None)
        return self._live.pop(rank, None)

    def _take_over(self, copy: LiveCopy) -> None:
        """A copy of an earlier life goes on, where its index has no result and no other copy."""
        late = self._plan.together and not self._held
        self._live[copy.rank] = copy
        if copy.index not in self._waiting or late:
            self._stop(copy)
            return
        self._waiting.remove(copy.index)
        self._begun[copy.index] = max(self._begun[copy.index], copy.attempt + 1)
