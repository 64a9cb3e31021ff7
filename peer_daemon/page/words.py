"""Numbers and states as people read them. "-" stands for what this machine does not tell."""

from __future__ import annotations

from axonp2p.plain_text import mebibytes_text, plural
from peer_daemon.control.status import LogNow, State

ABSENT = "-"
WORDS: dict[State, str] = {
    "training": "TRAINING",
    "ready": "READY",
    "waiting": "WAITING",
    "paused": "PAUSED",
    "finishing": "FINISHING",
    "refused": "CANNOT WORK",
}


def duration(seconds: float) -> str:
    """Such as "40 s", "12 min", "2 h 5 min", "3 days"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(hours / 24)} days"


def mebibytes(amount: int | None) -> str:
    """Memory or disk, given in MiB."""
    if amount is None:
        return ABSENT
    return mebibytes_text(amount)


def credit(amount: float) -> str:
    """Cobblestones, with so many digits as say something: a first job earns less than a thousandth."""
    if 0 < amount < 0.05:
        return f"{amount:.2g}" if amount >= 0.0001 else "<0.0001"
    return f"{amount:,.1f}" if amount < 10_000 else f"{amount:,.0f}"


def arithmetic(flops: int) -> str:
    """Floating point operations, in the largest unit that leaves at least one."""
    for size, name in ((1e18, "EFLOP"), (1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP")):
        if flops >= size:
            return f"{flops / size:,.1f} {name}"
    return f"{flops / 1e9:.3f} GFLOP"


def measured(amount: float | None, unit: str) -> str:
    """A reading with its unit, or "-"."""
    return ABSENT if amount is None else f"{amount:.0f} {unit}"


def yes_no(value: bool | None) -> str:
    """For readings that are so or not so."""
    return ABSENT if value is None else "yes" if value else "no"


def proof(log: LogNow) -> str:
    """The outcome of a look at a tracker's log, as one sentence after the tracker's name."""
    if log.wrong:
        return log.wrong
    if not log.proved:
        return "what was picked has not come there yet"
    picked = "one receipt that was picked is" if log.proved == 1 else f"{log.proved} receipts that were picked are"
    return f"{picked} proved to be in its log of {plural(log.entries, 'receipt')}"
