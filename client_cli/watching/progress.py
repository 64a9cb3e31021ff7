"""A job's progress: one bar on a terminal (`bar.py`), plain lines elsewhere; for a program nothing, or lines of JSON.

All show the same events; what each of them says to people is decided in `event_text`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TextIO

from axonp2p.client.events.events import Event, as_line
from axonp2p.console import printable
from client_cli.text.event_text import JobLines


class EventDisplay(Protocol):
    """Shows events one after the other; `with` it, the screen is its own."""

    def __enter__(self) -> EventDisplay: ...

    def __exit__(self, *error: object) -> None: ...

    def show(self, event: Event) -> None:
        """Show `event`, which has just happened."""
        ...

    def say(self, line: str) -> None:
        """A line that stays."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """While inside, the screen belongs to somebody else (a question)."""
        ...


class PlainLines:
    """A line a round or copy, and one for each event that changes the course of the job; with no stream, none."""

    def __init__(self, stream: TextIO | None, kind: str) -> None:
        self._stream = stream
        self._lines = JobLines(kind, bar=False)

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def show(self, event: Event) -> None:
        if line := self._lines.after(event):
            self.say(line)

    def say(self, line: str) -> None:
        if self._stream is not None:
            print(printable(line), file=self._stream, flush=True)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


class JsonLines:
    """Each event as one JSON object in a line of its own, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def show(self, event: Event) -> None:
        print(as_line(event).decode(), file=self._stream, flush=True)

    def say(self, line: str) -> None:
        return

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


def progress_on(stream: TextIO | None, kind: str) -> EventDisplay:
    """The display that fits `stream` and jobs of that kind: a bar on a terminal, else plain lines; None for silence."""
    if stream is not None and stream.isatty():
        from client_cli.watching.bar import Bar  # rich is loaded only where it is seen

        return Bar(stream, kind)
    return PlainLines(stream, kind)
