"""Members whose workers went over a limit of the sandbox: when is that the task's doing, and no peer's? Pure.

All peers hold a worker to what the job asks for, so what is too much at one is too much at the next. One member may
have the largest shard, or a machine of its own kind; so the job goes on as long as one alone was lost like that and
enough are left.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.errors import LimitReached
from axonp2p.jobs.task_fixes import fix_of_limit
from axonp2p.plain_text import plural


@dataclass(frozen=True)
class _Loss:
    name: str
    limit: str
    reason: str


class LimitsPassed:
    """Of one job. `memory_mb` is what the job asks for."""

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
