"""The messages that tell a person, after some seconds of silence, what a command does and since when. Pure."""

from __future__ import annotations

from client_cli.text.render import duration_text

SILENT_S = 5.0
"""Nobody waits for longer without a word."""


class StillDoing:
    """One command's work, in parts that follow each other. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._said = now
        self._what = ""
        self._began = now

    def begin(self, what: str, now: float) -> None:
        """The next part of it; the one before is over."""
        if what != self._what:
            self._what, self._began = what, now

    def due(self, now: float) -> str:
        """The message that is due now; empty when none is, which is so until there has been silence for long."""
        if not self._what or now - self._said < SILENT_S:
            return ""
        self._said = now
        passed = now - self._began
        return f"{self._what} has taken {duration_text(passed)}" if passed >= 1 else f"{self._what} ..."
