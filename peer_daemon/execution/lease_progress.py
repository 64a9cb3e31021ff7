"""Whether a lease is worked, and when one that is not has to end (pure).

A slot is a volunteer's memory and cores, and receipts alone count: a lease that is held for nothing would cost its
client nothing. So the bundle has to come, at a least speed; the worker has to do something, on the processor or on
the line; and work has to be paid for by receipts. Time in which the machine's owner stops the worker never counts,
and that in which the client is away counts against the receipts only, since its grace bounds it.

No job says beforehand how long its rounds are, and who lies would say that they are long. So the bounds are fixed,
and above what honest jobs need: see docs/peer.md. Times are seconds of one clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass

BUNDLE_BEGINS_S = 360.0
"""Within so long a bundle begins to come: above the five minutes for which a job waits for more peers by itself."""
BUNDLE_STALLS_S = 180.0
"""For so long nothing of it may come; above the two minutes after which a client gives up a peer that takes nothing."""
LEAST_BYTES_S = 32 * 1024
"""How fast it comes at least, on the whole: two members that pass each other a byte now and then keep no slot."""
IDLE_S = 600.0
"""For so long a worker may do nothing."""
LEAST_CPU_S = 6.0
"""Processor time that counts as doing something, in seconds: one hundredth of a core, over `IDLE_S`."""
LEAST_CARRIED = 256 * 1024
"""Bytes between the worker, its client and the members that do as well: exchanges over slow lines need little else."""
UNPAID_S = 7200.0
"""Within so long a receipt comes, the first one and each after it: the longest that a round may take."""
WORKS_WITHIN_S = 60.0
"""A lease under which something was done within so long is worked, and gives way to nobody."""


@dataclass(frozen=True)
class LeaseLook:
    """The progress of a lease at one look. Numbers only grow."""

    bundle_bytes: int
    """Of the bundle, that are here, and what its wheels have unpacked to by now."""
    bundle_there: bool
    """The worker has all of it."""
    cpu_seconds: float
    carried_bytes: int
    """The bytes that the worker was sent by members, that it sent them and its client, that they had of blobs from
    here, and those of further blobs that have come."""
    receipts: int
    """Different ones, signed under this lease."""
    stopped: bool
    """The machine's owner lets nothing run."""
    away: bool
    """The client has no session."""


class LeaseProgress:
    """One lease's, from when it was taken. `look` at it again and again."""

    def __init__(self, now: float) -> None:
        self._last = now
        self._going_s = self._idle_s = self._unpaid_s = 0.0
        self._bundle_bytes = self._receipts = self._carried_bytes = 0
        self._cpu_seconds = 0.0
        self._bundle_there = False
        self.unpaid = False
        """Whether it ended because its work was not paid for."""

    @property
    def idle_s(self) -> float:
        """For how long nothing was done under it; 0 while it is worked."""
        return self._idle_s if self._idle_s >= WORKS_WITHIN_S else 0.0

    def look(self, seen: LeaseLook, now: float) -> str:
        """Why the lease has to end, as a person reads it; empty when it need not."""
        passed, self._last = now - self._last, now
        if not seen.stopped:
            self._going_s += passed
            self._unpaid_s += passed
            self._idle_s += 0.0 if seen.away else passed
        if not seen.bundle_there:
            return self._without_bundle(seen)
        if not self._bundle_there:
            self._bundle_there, self._unpaid_s = True, 0.0
            self._stirred(seen)
        return self._with_bundle(seen)

    def _without_bundle(self, seen: LeaseLook) -> str:
        if seen.bundle_bytes > self._bundle_bytes:
            self._bundle_bytes, self._idle_s = seen.bundle_bytes, 0.0
        if not self._bundle_bytes:
            return f"no bundle came within {_told(BUNDLE_BEGINS_S)}" if self._idle_s >= BUNDLE_BEGINS_S else ""
        if self._idle_s >= BUNDLE_STALLS_S:
            return f"nothing more of its bundle came for {_told(BUNDLE_STALLS_S)}"
        if self._bundle_bytes < LEAST_BYTES_S * (self._going_s - BUNDLE_BEGINS_S):
            return f"its bundle came at less than {LEAST_BYTES_S // 1024} KiB/s"
        return ""

    def _with_bundle(self, seen: LeaseLook) -> str:
        if seen.receipts > self._receipts:
            self._receipts, self._unpaid_s = seen.receipts, 0.0
            self._stirred(seen)
        used = seen.cpu_seconds - self._cpu_seconds >= LEAST_CPU_S
        if used or seen.carried_bytes - self._carried_bytes >= LEAST_CARRIED:
            self._stirred(seen)
        if self._idle_s >= IDLE_S:
            return f"its client gave it nothing to do for {_told(IDLE_S)}"
        if self._unpaid_s >= UNPAID_S:
            self.unpaid = True
            return f"no receipt came for {_told(UNPAID_S)} of work"
        return ""

    def _stirred(self, seen: LeaseLook) -> None:
        self._idle_s = 0.0
        self._cpu_seconds, self._carried_bytes = seen.cpu_seconds, seen.carried_bytes


def _told(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.0f} h"
