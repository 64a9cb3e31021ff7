"""Whose fault is it: the task's, one member's, or a link's between two? Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from axonp2p.errors import LimitReached, TaskMistake
from axonp2p.jobs.task_fixes import fix_of_limit, task_fix
from axonp2p.plain_text import plural
from axonp2p.training.deadlines import GRACE_S
from axonp2p.training.messages import TaskFailed
from axonp2p.training.round_messages import LinkBroken, MistakeReported
from axonp2p.training.rounds.broken_links import BrokenLinks
from axonp2p.training.rounds.divergence import Divergences


@dataclass(frozen=True)
class _Loss:
    name: str
    limit: str
    reason: str


class LimitsPassed:
    """Members of one job whose workers went over a limit of the sandbox: when is that the task's doing, and no peer's?

    All peers hold a worker to what the job asks for (`memory_mb`), so what is too much at one is too much at the next.
    One member may have the largest shard, or a machine of its own kind; so the job goes on as long as one alone was
    lost like that and enough are left.
    """

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self._losses: dict[int, _Loss] = {}
        self._lately: set[int] = set()
        """Those since a round was accepted last."""

    def note(self, rank: int, name: str, limit: str, reason: str) -> None:
        """The member's worker was ended for it, `reason` says how."""
        self._losses[rank] = _Loss(name, limit, reason)
        self._lately.add(rank)

    def round_accepted(self) -> None:
        """It works for those that are left."""
        self._lately.clear()

    def verdict(self, *, too_few: bool) -> LimitReached | None:
        """The error to end the job with: a second member was lost at the same limit, or too few are left after one."""
        for rank in sorted(self._losses):
            loss = self._losses[rank]
            alike = [other for other, one in self._losses.items() if one.limit == loss.limit]
            if len(alike) > 1 or (too_few and rank in self._lately):
                others = f"; {plural(len(alike) - 1, 'more peer')} too" if len(alike) > 1 else ""
                return LimitReached(
                    f"peer {loss.name}: the task went over its limit of {loss.limit}{others}",
                    cause=loss.reason,
                    fix=fix_of_limit(loss.limit, self._memory_mb),
                )
        return None


class Mistakes:
    """What the task's code raised in one round (all its attempts), or before the first one.

    One member's mistake may be that machine's own: a full disk, a broken library. The task is at fault when it fails
    twice, or when nobody is left for whom it works.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, TaskFailed]] = {}
        self._deadline = 0.0

    def note(self, rank: int, name: str, mistake: TaskFailed, now: float) -> None:
        """The member reported it; the others have a moment to say whether it works for them."""
        if not self._known:
            self._deadline = now + GRACE_S
        self._known.setdefault(rank, (name, mistake))

    def blamed(self, members: Collection[int]) -> dict[int, str]:
        """Those of `members` at which the task failed, and how."""
        return {
            rank: f"the task failed there alone, at {mistake.doing}: {last_line(mistake.traceback)}"
            for rank, (_, mistake) in sorted(self._known.items())
            if rank in members
        }

    def deadline(self, members: Collection[int]) -> float | None:
        """When the others have had their moment."""
        return self._deadline if self.blamed(members) else None

    def verdict(self, members: Collection[int], least: int) -> TaskMistake | None:
        """The error to end the job with when the task itself is at fault, `least` being the fewest that may go on."""
        blamed = self.blamed(members)
        enough_others = len(members) - len(blamed) >= least
        if len(self._known) < 2 and (not blamed or enough_others):
            return None
        name, mistake = self._known[min(self._known)]
        others = len(self._known) - 1
        also = f"; at {plural(others, 'more peer')} too" if others else ""
        return TaskMistake(
            f"peer {name}: the task failed at {mistake.doing}{also}",
            cause=mistake.traceback,
            fix=task_fix(mistake.traceback),
        )


def last_line(traceback: str) -> str:
    """What a traceback ends with: the error itself."""
    return (traceback.strip().splitlines() or [""])[-1]


class FaultAttribution:
    """All of it, for one job: mistakes are those of a round, links, disputes and limits those of the job."""

    def __init__(self, memory_mb: int = 0) -> None:
        """`memory_mb`: MiB that the job asks for."""
        self.mistakes = Mistakes()
        self.limits = LimitsPassed(memory_mb)
        self.links = BrokenLinks()
        self.divergences = Divergences()

    def heard(self, event: LinkBroken | MistakeReported, names: Mapping[int, str], now: float) -> str:
        """A member's word of either; gives what is wrong with it, if anything is. `names` are those of all ranks."""
        if isinstance(event, MistakeReported):
            self.mistakes.note(event.rank, names[event.rank], event.mistake, now)
        elif event.to in names:
            why = f"{names[event.rank]} and {names[event.to]} cannot reach each other: {event.reason}"
            self.links.note(event.rank, event.to, why, now)
        else:
            return f"it spoke of rank {event.to}, which nobody has"
        return ""

    def deadline(self, members: Collection[int], awake: Collection[int]) -> float:
        """When something has to be done, or infinity. A link counts while both its ends are `awake`."""
        both = (self.mistakes.deadline(members), self.links.deadline(awake))
        return min((deadline for deadline in both if deadline is not None), default=math.inf)
