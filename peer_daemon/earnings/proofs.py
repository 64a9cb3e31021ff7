"""The proofs that trackers' logs have this peer's receipts: when to look again, at whom, what the owner is told (pure).

A tracker's word that it has a receipt is not believed for ever: now and then a few are picked, the newest and any of
all, and have to be proved to stand in its log. A tracker cannot know which.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from peer_daemon.control.status import LedgerNow, LogNow

EVERY_S = 600.0
"""Between two looks, at least."""
AT_LEAST_EVERY_S = 6 * 3600.0
"""Also when no tracker has acknowledged anything since."""
NEWEST, ANY = 2, 4
"""How many receipts are picked: so many of the newest, and of all."""
SETTLED_AFTER_S = 600.0
"""Trackers pass receipts on to each other: one that is younger may be on its way to the one that is asked."""
MOST_ASKED = 3
"""Trackers that are tried in one look, until one answers."""
MOST_TOLD = 8
"""Trackers that the owner is told of."""

T = TypeVar("T")


class Proofs:
    """Of one daemon since its start. Trackers are named by HOST:PORT; times are Unix seconds."""

    def __init__(self) -> None:
        self._logs: dict[str, LogNow] = {}
        self._silent = ""
        self._tried_at = 0.0
        self._had = 0

    def is_due(self, now: float, acknowledged: int) -> bool:
        """Whether to look now. `acknowledged` grows with what trackers have taken (0: nothing yet)."""
        since = now - self._tried_at
        if not acknowledged or 0 <= since < EVERY_S:
            return False
        return acknowledged != self._had or bool(self._silent) or not 0 <= since < AT_LEAST_EVERY_S

    def begin(self, now: float, acknowledged: int) -> None:
        """A look begins."""
        self._tried_at, self._had = now, acknowledged

    def whom(self, trackers: Iterable[tuple[str, T]]) -> list[T]:
        """The trackers to ask, one after the other until one answers: first the one not looked at for longest."""
        longest_ago = sorted(trackers, key=lambda one: self._logs[one[0]].at if one[0] in self._logs else 0.0)
        return [asked for _, asked in longest_ago[:MOST_ASKED]]

    def found(self, log: LogNow) -> None:
        """A tracker was looked at."""
        self._silent = ""
        self._logs.pop(log.tracker, None)
        self._logs[log.tracker] = log
        while len(self._logs) > MOST_TOLD:
            # Those that have proved nothing wrong go first.
            gone = next((name for name, one in self._logs.items() if not one.wrong), next(iter(self._logs)))
            del self._logs[gone]

    def found_nothing(self, why: str) -> None:
        """Nobody could be looked at."""
        self._silent = why

    def told(self) -> LedgerNow:
        """For the owner."""
        return LedgerNow(
            logs=list(self._logs.values())[::-1], silent=self._silent, silent_at=self._tried_at if self._silent else 0.0
        )
