"""The part of a page or report that one kind of job adds: its story, its lanes, its panels and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from axonp2p.client.events.events import Event
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.kinds import load
from client_cli.kinds import STORIES
from client_cli.report.lanes import Lane, WorkTime
from client_cli.report.lanes_picture import Words
from client_cli.report.story import MarkKind, Story
from client_cli.report.tables import Table
from client_cli.text.kind_text import Command


@dataclass(frozen=True)
class JobShortfall:
    """The failures of a finished job, and the command that shows more."""

    title: str
    text: str
    fix: str
    or_else: str


S = TypeVar("S", bound=Story)


@dataclass(frozen=True)
class KindReport(Generic[S]):
    """One kind's, which has a story of its own. The functions are pure."""

    story: Callable[[], S]
    """A new one of this kind."""
    take: Callable[[S, Event], None]
    """Adds an event to the story, before the part that all jobs have in common."""
    marks: Mapping[type[Event], MarkKind]
    lanes: Callable[[S, WorkTime, float], list[Lane]]
    """A lane for every peer that was hired, drawn until a Unix time."""
    looks: Words
    tables: Callable[[S, Sequence[Lane]], list[Table]]
    """Those of its panels, and `work`: what each peer did."""
    peers: Callable[[S, Mapping[str, float], bool], Table]
    """All about the peers, of their credits and whether the job is over."""
    facts: Callable[[JobRecord, S], list[tuple[str, str]]]
    """Its large numbers under the headline."""
    to_go: Callable[[S], float]
    """Seconds, as far as that is known; else 0."""
    panels: Callable[[S], dict[str, Any]]
    """The values that its templates show."""
    shortfall: Callable[[S, str, Command], JobShortfall | None]
    """Of a finished job with that id: what is amiss all the same."""
    templates: tuple[str, ...]
    """Of its panels, above the lanes."""
    beside_map: str = ""
    """One more, beside the map of peers."""
    look: Callable[[S, Path], None] = lambda _story, _folder: None
    """Adds to the story what the job's folder has beside its events, for its page or report. Blocks."""


def report_of(kind: str) -> KindReport[Any]:
    """The part of the page and the report that is that kind's own."""
    report: KindReport[Any] = load(STORIES[kind].report)
    return report
