"""When a card is its owner's: other programs use it, or it is too hot (pure). Quick to give back, slow to lend again.

A desktop draws on its card all day, so a program that draws counts by how much of the card it uses: a game, a film. One
that computes there counts from its first moment, since it is about to want the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from peer_daemon.gpus.seen_gpus import GpuLook, GpuProcess, Looks

OTHERS_PERCENT = 20
"""Of a card's time: what a desktop needs to draw itself is below, what a game needs above."""
_LOOKS = 2
"""In a row: a window that opens draws much for a moment."""
QUIET_S = 60.0
"""For how long nobody else must have used a card before it is lent again."""
_RESUME_COOLER_C = 5


@dataclass(frozen=True)
class GpuHolder:
    """The worker that has a card."""

    pids: frozenset[int]
    """Of all its processes."""
    memory_mb: int
    """The memory of the card that they may use together, in MiB."""


def used_mb(look: GpuLook, holder: GpuHolder) -> int:
    """MiB of the card that a worker uses. Programs that cannot be seen from here (another container's) count as its
    own: the driver names them by numbers that mean nothing here."""
    return sum(one.memory_mb for one in look.processes if one.pid in holder.pids or _is_hidden(one))


def why_over(look: GpuLook, holder: GpuHolder) -> str:
    """Why a worker must end, as a sentence without a subject; empty while it keeps to its limit."""
    used = used_mb(look, holder)
    if used <= holder.memory_mb:
        return ""
    return f"used {used} MiB of the GPU's memory where {holder.memory_mb} MiB are allowed"


def power_limit_mw(usual: int, least: int, most: int, percent: int) -> int:
    """The power limit to set, in milliwatts like all of these: so much of the usual one, within what the card takes."""
    return min(max(usual * percent // 100, least), most)


class OwnersUse:
    """The record of other programs on each card."""

    def __init__(self) -> None:
        self._wanted_at: dict[str, float] = {}
        self._hot: set[str] = set()
        self._looks_over: dict[str, int] = {}

    def decide(self, looks: Looks, holders: Mapping[str, GpuHolder], hottest_c: int, now: float) -> dict[str, str]:
        """By UUID, why a card is not lent now. `holders`: by UUID, who has it; `now`: monotonic seconds; `hottest_c`:
        degrees Celsius, 0: do not look."""
        found = {}
        for uuid, look in looks.items():
            why = self._others(look, holders.get(uuid)) or self._heat(look, hottest_c)
            if why:
                self._wanted_at[uuid] = now
            elif now - self._wanted_at.get(uuid, float("-inf")) < QUIET_S and uuid not in holders:
                why = "another program used the GPU just now"
            if why:
                found[uuid] = why
        return found

    def _others(self, look: GpuLook, holder: GpuHolder | None) -> str:
        others = [one for one in look.processes if not _is_ours(one, holder)]
        busy = [one for one in others if one.busy]
        percent = sum(one.busy for one in busy)
        looks = self._looks_over.get(look.uuid, 0) + 1 if percent > OTHERS_PERCENT else 0
        self._looks_over[look.uuid] = looks
        if computing := [one for one in others if one.computes]:
            return f"another program computes on the GPU: {_names(computing)}"
        if looks >= _LOOKS:
            return f"another program uses {percent} % of the GPU (limit {OTHERS_PERCENT} %): {_names(busy)}"
        return ""

    def _heat(self, look: GpuLook, hottest_c: int) -> str:
        degrees = look.temperature_c
        if not hottest_c or degrees is None:
            return ""
        limit = hottest_c - _RESUME_COOLER_C if look.uuid in self._hot else hottest_c
        (self._hot.add if degrees > limit else self._hot.discard)(look.uuid)
        return f"the GPU is too hot: {degrees} C (limit {limit})" if degrees > limit else ""


def _is_ours(process: GpuProcess, holder: GpuHolder | None) -> bool:
    return holder is not None and (process.pid in holder.pids or _is_hidden(process))


def _is_hidden(process: GpuProcess) -> bool:
    return not process.name


def _names(processes: Collection[GpuProcess]) -> str:
    by_use = sorted(processes, key=lambda one: (-one.busy, -one.memory_mb, one.pid))
    return ", ".join(one.name or "one that cannot be seen from here" for one in by_use[:3])
