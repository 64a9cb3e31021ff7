"""The bar on a terminal, drawn with rich: the lines that stay scroll above it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from axonp2p.client.events.events import Event
from axonp2p.console import printable
from client_cli.text.event_text import JobLines, after, doing_now, standing_still
from client_cli.text.kind_text import Shown
from client_cli.text.render import packed

BAR_WIDTH = 28
LEAST_BAR_WIDTH = 6
_BLANKS = 3
"""One behind each of the three."""
MOST_LINES = 4
"""Of each fact below the bar, on a narrow terminal."""


class Bar:
    """Shows a job's events on a terminal."""

    def __init__(self, stream: TextIO, kind: str) -> None:
        self._kind = kind
        self._console = Console(file=stream, highlight=False)
        self._lines = JobLines(kind, bar=True)
        self._shown = Shown()
        self._live = Live(
            get_renderable=lambda: picture(self._shown, time.time(), self._console.width),
            console=self._console,
            refresh_per_second=8,
            transient=True,
        )

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, event: Event) -> None:
        if line := self._lines.after(event):
            self.say(f"{time.strftime('%H:%M:%S')}  {line}")
        self._shown = after(self._shown, event, self._kind)

    def say(self, line: str) -> None:
        # markup off: a peer's name or a job's error may hold square brackets.
        self._console.print(printable(line), markup=False, soft_wrap=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()


def picture(shown: Shown, now: float, width: int) -> Group:
    """The bar, and below it what changes once a round or with a copy, how each peer is, and who is paused.

    `now` is Unix time. On a narrow terminal the bar is shorter, and goes before a word of the others does.
    """
    if not shown.doing:
        return Group()
    doing, headline = doing_now(shown, now), shown.headline
    left = min(BAR_WIDTH, width - len(doing) - len(headline) - _BLANKS)
    row = Table.grid(padding=(0, 1))
    if left >= LEAST_BAR_WIDTH:
        bar = ProgressBar(total=shown.units or 1, completed=shown.done, width=left)
        row.add_row(_line(doing), bar, _line(headline))
    else:
        row.add_row(_line(f"{doing}  {headline}"))
    told = (shown.facts, shown.peers, "" if shown.at_work else shown.slow, shown.search, standing_still(shown))
    below = [_line(f"  {line}") for text in told if text for line in packed(text, width - 2, MOST_LINES)]
    return Group(row, *below)


def _line(text: str) -> Text:
    return Text(printable(text), no_wrap=True, overflow="ellipsis")
