"""The cause of a fault: the task, one member, or a link between two. Pure.

Between two members that cannot reach each other nothing has to travel, as long as neither owns a slice: others own
theirs, so that nobody has to go for it. Only when nobody is left who can reach all the others, the member most in the
way has to go.
"""

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
from axonp2p.training.rounds.divergence import Divergences, Pair, liars_needed


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
    """The errors that the task's code raised in one round (all its attempts), or before the first one.

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
    """The end of a traceback: the error itself."""
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


LINK_GRACE_S = 1.0
"""A dead peer's session ends by itself very soon, and then it is no link that is to blame."""


class BrokenLinks:
    """The broken ones of one job. A pair stays cut for as long as both are in the job."""

    def __init__(self) -> None:
        self._reported: dict[Pair, tuple[str, float]] = {}
        self._cut: dict[Pair, str] = {}

    def note(self, rank: int, to: int, reason: str, now: float) -> None:
        """The member cannot reach `to`."""
        pair = frozenset((rank, to))
        if len(pair) == 2 and pair not in self._cut:
            self._reported.setdefault(pair, (reason, now + LINK_GRACE_S))

    def part(self, pair: Pair, reason: str, members: Collection[int]) -> bool:
        """Neither of the two is to own a slice from now on; False when that is so already, or nobody else can."""
        if pair in self._cut:
            return False
        self._cut[pair] = reason
        if self.in_the_way(members, ()):
            del self._cut[pair]
        return pair in self._cut

    def deadline(self, present: Collection[int]) -> float | None:
        """When something has to be done about it. A link counts while both its ends are present."""
        return min((until for pair, (_, until) in self._reported.items() if pair <= set(present)), default=None)

    def due(self, present: Collection[int], now: float) -> dict[Pair, str]:
        """Links that have been broken for long enough, and why; they are cut from now on."""
        due = {
            pair: reason for pair, (reason, until) in self._reported.items() if until <= now and pair <= set(present)
        }
        for pair in due:
            del self._reported[pair]
        self._cut |= due
        return due

    def cut(self, members: Collection[int], following: Collection[int]) -> list[Pair]:
        """Pairs of which the members may own nothing; with one that only follows it is the member alone."""
        present = set(members) | set(following)
        return [pair & set(members) for pair in self._cut if pair <= present and pair & set(members)]

    def in_the_way(self, members: Collection[int], following: Collection[int]) -> dict[int, str]:
        """The members that have to go so that somebody is left to own a slice, and why: those most in the way first.

        A link is cut on the word of one of its ends. So it is not the one with most cut links that goes: a few that lie
        together could all say that they do not reach the same one. It is whose honesty would need most liars.
        """
        gone: dict[int, str] = {}
        present = set(members) | set(following)
        while True:
            pairs = {pair: reason for pair, reason in self._cut.items() if pair <= present}
            if not pairs or set(members) & present - frozenset[int]().union(*pairs):
                return gone
            # Of two that are equally in the way the later one in rank goes, and it has come later, too.
            worst = max({rank for pair in pairs for rank in pair}, key=lambda rank: (liars_needed(rank, pairs), rank))
            gone[worst] = next(reason for pair, reason in pairs.items() if worst in pair)
            present.discard(worst)
