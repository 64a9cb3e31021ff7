"""A job as a notebook shows it, and followed in a notebook or a terminal.

The code that draws the page and the bar belongs to the `axon` program, which is above this room: it is named as text
and loaded only when somebody asks for it, as the parts of a kind are.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from axonp2p.client.events.event import Event
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import seen_state
from axonp2p.plain_text import plural

PAGE = "client_cli.report.server:ServedPage"
DISPLAY = "client_cli.watching.progress:progress_on"
AGAIN_S = 0.5
"""Between two pictures in a notebook."""
MOST_PAGES = 16
"""The oldest one ends when there are more."""
MOST_PEERS = 20

_pages: dict[Path, Any] = {}


class Picture(Protocol):
    """The object that IPython's `display(..., display_id=True)` gives."""

    def update(self, shown: object) -> None:
        """Show this in the same place."""


def page_of(folder: JobFolder) -> str:
    """The address of the job's page, served by this program from now on to its end. Raises `SettingsError`."""
    if folder.path not in _pages:
        while len(_pages) >= MOST_PAGES:
            _pages.pop(next(iter(_pages))).close()
        _pages[folder.path] = load(PAGE)(folder)
    return str(_pages[folder.path].address)


def opened_page(folder: JobFolder) -> str:
    """The same where it was asked for before; empty where it was not."""
    page = _pages.get(folder.path)
    return str(page.address) if page else ""


def as_html(record: JobRecord, *, at_work: bool, page: str) -> str:
    """The job in a few lines, for a notebook. Pure."""
    state = seen_state(record.state, at_work=at_work, waits=bool(record.waits_for))
    unit = plural(record.units, KINDS[record.kind].unit).partition(" ")[2]
    names = [peer.name for peer in record.peers if not peer.lost]
    more = f" and {len(names) - MOST_PEERS} more" if len(names) > MOST_PEERS else ""
    facts = {"peers": " ".join(names[:MOST_PEERS]) + more}
    if (loss := getattr(record, "loss", None)) is not None:
        facts["loss"] = f"{loss:.4g}"
    facts |= {name: f"{value:.4g}" for name, value in list(getattr(record, "metrics", {}).items())[:4]}
    if record.waits_for:
        facts["waits for"] = ", ".join(record.waits_for)
    if record.error:
        facts |= {"error": record.error.message, "fix": record.error.fix}
    told = " &nbsp; ".join(f"{html.escape(name)} {html.escape(text)}" for name, text in facts.items() if text)
    link = f' &nbsp; <a href="{html.escape(page)}">page</a>' if page else ""
    bar = f'<progress max="{max(1, record.units)}" value="{record.done}"></progress>'
    return (
        f"<div><b>{html.escape(record.id)}</b> {state} &nbsp; {bar} {record.done} of {record.units} {unit}{link}<br>"
        f"<small>{told}</small></div>"
    )


def notebook_display() -> Callable[..., Picture] | None:
    """The function that shows things below the cell that runs; None where no notebook does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display: Callable[..., Picture] = load("IPython.display:display")
    return display


def follow(job: object, kind: str, events: Iterable[Event]) -> None:
    """Show the job until it is over: in a notebook a picture that changes, else a bar or lines on stdout."""
    display = notebook_display()
    if display is None:
        with load(DISPLAY)(sys.stdout, kind) as progress:
            for event in events:
                progress.show(event)
        return
    picture, shown_at = display(job, display_id=True), time.monotonic()
    try:
        for _ in events:
            if time.monotonic() - shown_at >= AGAIN_S:
                picture.update(job)
                shown_at = time.monotonic()
    finally:
        picture.update(job)
