"""All jobs as rows of a list: what each says of itself, which come first, and on which page they are. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from axonp2p.errors import AxonError
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.plain_text import plural
from client_cli.report.job_summary import View, summary_of
from client_cli.report.lanes import WorkTime
from client_cli.text.job_text import job_data, peers_count, told_text, units_name
from client_cli.text.kind_text import Command, text_of
from client_cli.text.render import credits_text, duration_text

ROWS = 50
"""On one page."""
MOST_LETTERS = 240
"""Of a sentence in a row, some of which strangers wrote; the job's own page has all of it."""
UNREADABLE = "UNREADABLE"


@dataclass(frozen=True)
class Standing:
    """The facts that decide the place of a job's row."""

    job: str
    created: float
    """Unix seconds; of a folder that cannot be read the time of its last change."""
    state: JobState | None
    """As people see it; None: its folder cannot be read."""

    @property
    def at_work(self) -> bool:
        """Whether some program works on it."""
        return self.state is not None and self.state is not JobState.INTERRUPTED and not is_over(self.state)


@dataclass(frozen=True)
class JobRow:
    """One job in the list. `look` is one of `signs`' states."""

    job: str
    look: str
    word: str
    sentence: str
    created: float
    fix: str = ""
    """The command for what is to be done; empty: nothing is."""
    or_else: str = ""
    """The same in words, or what the command does."""
    kind: str = ""
    done: int = 0
    units: int = 0
    units_name: str = ""
    so_far: str = ""
    peers: str = ""
    took: str = ""
    """At work so far."""
    credits: str = ""
    told: str = ""
    """Which host said so, and when."""

    @property
    def readable(self) -> bool:
        """Whether it has a page of its own."""
        return self.word != UNREADABLE


@dataclass(frozen=True)
class ListedJobs:
    """One page of the list."""

    rows: Sequence[JobRow]
    page: int
    """From 1."""
    pages: int
    total: int
    at_work: int
    said: str
    """How many are in each state."""
    now: float


def row_of(view: View, command: Command, hosted: Mapping[str, Any]) -> JobRow:
    """A job's row; `hosted` are the facts about who carries it on (`watching.hosted.hosted_data`)."""
    record = view.record
    facts = job_data(record, at_work=view.at_work) | dict(hosted)
    stands = summary_of(view, command)
    todo = next((banner for banner in stands.banners if banner.fix), None)
    seconds = WorkTime(view.story.lives, 0.0 if view.over else view.now).total
    return JobRow(
        job=record.id,
        look=stands.look,
        word=stands.word,
        sentence=cut(stands.sentence),
        created=record.created,
        fix=cut(todo.fix) if todo else "",
        or_else=cut(todo.or_else) if todo else "",
        kind=record.kind,
        done=record.done,
        units=record.units,
        units_name=units_name(facts),
        so_far=cut(text_of(record.kind).so_far(facts)),
        peers=str(peers_count(facts)),
        took=duration_text(seconds) if seconds > 0 else "",
        credits=credits_text(sum(record.credits.values())),
        told=cut(told_text(facts)),
    )


def told_now(row: JobRow, standing: Standing, hosted: Mapping[str, Any]) -> JobRow:
    """The same row of a job that a host carries on, with how long ago that was told by now."""
    return replace(row, told=cut(told_text({"state": standing.state} | dict(hosted))))


def unreadable_row(standing: Standing, error: AxonError) -> JobRow:
    """The row of a job whose folder cannot be read."""
    return JobRow(
        job=cut(standing.job),
        look="failed",
        word=UNREADABLE,
        sentence=cut(error.in_a_line),
        created=standing.created,
        or_else=cut(error.fix),
    )


def in_order(standings: Iterable[Standing]) -> list[Standing]:
    """Those at work first, and the newest of each."""
    return sorted(standings, key=lambda one: (not one.at_work, -one.created, one.job))


def pages_of(total: int) -> int:
    """How many pages so many jobs have; an empty list has one."""
    return max(1, -(-total // ROWS))


def page_number(asked: str, total: int) -> int:
    """The page that somebody asks for; the first where it is no number, and the last beyond the end."""
    number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 8 else 1
    return min(max(1, number), pages_of(total))


def on_page(ordered: Sequence[Standing], page: int) -> Sequence[Standing]:
    """Those that the page shows."""
    return ordered[(page - 1) * ROWS : page * ROWS]


def counts_text(standings: Iterable[Standing]) -> str:
    """How many jobs are in each state, in the order of a job's life."""
    counts = Counter(one.state for one in standings)
    found = [f"{counts[state]:,} {state}" for state in JobState if counts[state]]
    if counts[None]:
        found.append(f"{counts[None]:,} unreadable")
    total = sum(counts.values())
    return f"{plural(total, 'job')}: {', '.join(found)}" if found else "no job yet"


def cut(text: str) -> str:
    """No longer than a row shows, and with no letters that cannot be written: the names of folders may have some."""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3].rstrip()}..."
