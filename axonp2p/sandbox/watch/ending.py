"""From how a worker ended to the words for it, and to the limit that it met. Decides only."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch.verdict import LimitVerdict, UsageSample

_LAST_LINES = 3
_SAID = (
    ("MemoryError", "memory"),
    ("can't allocate memory", "memory"),
    ("Cannot allocate memory", "memory"),
    ("No space left on device", "disk"),
    ("File too large", "disk"),
    ("Too many open files", "files"),
    ("can't start new thread", "processes"),
    ("Resource temporarily unavailable", "processes"),
)
"""The last words of Python and torch when the kernel refused them more, and of what."""


@dataclass(frozen=True)
class Circumstances:
    """The facts known when no process of a sandbox is left."""

    code: int
    """Exit code of bubblewrap: that of the worker's main process, or 128 and the number of the signal that ended it."""
    killed: bool
    """By us, on purpose."""
    verdict: LimitVerdict | None
    out_of_memory: bool
    """The kernel ended processes because their control group was full."""
    last: UsageSample
    log_tail: str


def ending(found: Circumstances, limits: Limits) -> tuple[str, str]:
    """A sentence without a subject, such as "ended with exit code 1", and the limit, "" for none."""
    if found.verdict is not None:
        return found.verdict.reason, found.verdict.limit
    if found.killed:
        return "was ended by this peer", ""
    if found.out_of_memory:
        return f"used more than the {limits.memory_mb} MiB of memory that are allowed", "memory"
    if found.code == 0:
        return "ended with exit code 0", ""
    limit = _limit_of_signal(found.code - 128) or _limit_said(found)
    return _how(found.code) + (f" at its limit of {limit}" if limit else ""), limit


def _how(code: int) -> str:
    if code == 128 + signal.SIGKILL:
        return "was killed: perhaps this machine ran out of memory"
    if code > 128:
        return f"ended by signal {code - 128}"
    return f"ended with exit code {code}"


def _limit_of_signal(number: int) -> str:
    if number == signal.SIGXCPU:
        return "cpu"
    return "disk" if number == signal.SIGXFSZ else ""


def _limit_said(found: Circumstances) -> str:
    """A guess from its last words, which only name the end of the job that said them."""
    if found.code > 128:
        return ""
    words = "\n".join(found.log_tail.rstrip().splitlines()[-_LAST_LINES:])
    said = next((limit for sign, limit in _SAID if sign in words), "")
    return said or ("disk" if found.last.scratch_full else "")
