"""The first results of a job, as its page and its report show them: read from results.sqlite, in a thread, as text; and
how many were compared, and whose wait for another opinion.

Results are what strangers computed: short ones are opened as the client opens them, never unpickled, and cut where they
are shown; of long ones only their size is read.
"""

from __future__ import annotations

import reprlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import msgspec

from axonp2p.errors import AxonError
from axonp2p.kinds.map.call_forms import CallOutcome, open_outcome
from axonp2p.kinds.map.kept_end import RESULTS
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.plain_text import bytes_text

MOST_FOUND = 10_000
"""In the CSV; results.sqlite has all."""
MOST_OPINIONS = 40_000
"""More cannot wait: see `MOST_AWAITED` and `LARGEST_QUORUM` of the kind."""
LONGEST_OPENED = 1024
"""Bytes of a result that is opened to show it."""
LONGEST_SHOWN = 400
"""Characters."""
PICTURE = "picture.png"
LARGEST_PICTURE = 4 * 2**20
"""Bytes of a picture that is shown."""
_QUERY = (
    "SELECT item, outcome, peer, length(value), CASE WHEN length(value) <= ? THEN value END"
    " FROM results WHERE item >= ? ORDER BY item LIMIT ?"
)
_WAITING = "SELECT item, name FROM opinions ORDER BY item LIMIT ?"


@dataclass(frozen=True)
class FoundResult:
    """The result of one item."""

    item: int
    outcome: str
    """`value`, `error` or `cancelled`."""
    peer: str
    size: int
    """Bytes, as they came."""
    text: str
    """As Python writes it, cut; of a long one: how long it is."""


@dataclass(frozen=True)
class WaitingOpinion:
    """A peer's result for an item, which counts only if other peers find the same."""

    item: int
    peer: str


@dataclass(frozen=True)
class ResultsFound:
    """Those that were read."""

    results: Sequence[FoundResult] = ()
    compared: int = 0
    """How many of all results more than one peer gave."""
    waiting: Sequence[WaitingOpinion] = ()
    """In the order of their items."""
    merged: bool = False
    """Whether there is one alone, which all are merged to."""
    parts: bool = False
    """Whether these are to be merged."""
    trouble: str = ""
    """Why none could be read."""
    picture: bytes = b""
    """A PNG that the program that calls has drawn of its results; empty: none."""


def find_results(folder: Path) -> ResultsFound:
    """Find the results and the picture in a job's folder. Blocks."""
    return replace(_read_results(folder / RESULTS), picture=_read_picture(folder / PICTURE))


def _read_picture(file: Path) -> bytes:
    """That of the client's own program: nothing of a peer is ever written there."""
    try:
        with file.open("rb") as opened:
            picture = opened.read(LARGEST_PICTURE + 1)
    except OSError:
        return b""
    return picture if picture.startswith(b"\x89PNG\r\n") and len(picture) <= LARGEST_PICTURE else b""


def _read_results(file: Path) -> ResultsFound:
    """The first ones, or the one that all are merged to; none where there is no such file yet."""
    if not file.exists():
        return ResultsFound()
    try:
        # Not "ro": a database with a log of writes cannot be read so when nobody has it open.
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=rw", uri=True, timeout=5)) as database:
            tree = database.execute("SELECT items, fold FROM tree").fetchone()
            last = ReduceTree(*tree).calls - 1 if tree else 0
            merged = database.execute("SELECT item FROM results WHERE item = ?", (last,)).fetchone()
            rows = database.execute(_QUERY, (LONGEST_OPENED, last if merged else 0, MOST_FOUND)).fetchall()
            ((compared,),) = database.execute("SELECT count(*) FROM results WHERE agreed > 1")
            waiting = database.execute(_WAITING, (MOST_OPINIONS,)).fetchall()
    except sqlite3.Error as error:
        return ResultsFound(trouble=f"{file.name} cannot be read: {error}")
    opinions = [WaitingOpinion(*row) for row in waiting]
    results = [_found(*row) for row in rows]
    return ResultsFound(results, compared, opinions, merged=bool(tree and merged), parts=bool(tree and not merged))


def _found(item: int, outcome: str, peer: str, size: int, value: bytes | None) -> FoundResult:
    return FoundResult(item, outcome, peer, size, text_of_result(outcome, size, value))


def text_of_result(outcome: str, size: int, value: bytes | None) -> str:
    """The text that is shown for a result. Pure."""
    if outcome == "cancelled":
        return "cancelled"
    if value is None:
        return f"({bytes_text(size)})"
    try:
        opened = open_outcome(CallOutcome(outcome == "error", value), LONGEST_OPENED)
    except (ValueError, msgspec.MsgspecError, AxonError) as error:
        return f"cannot be read: {error}"[:LONGEST_SHOWN]
    return str(opened)[:LONGEST_SHOWN] if outcome == "error" else _WRITER.repr(opened)[:LONGEST_SHOWN]


_WRITER = reprlib.Repr()
_WRITER.maxstring = _WRITER.maxother = 200
_WRITER.maxlist = _WRITER.maxtuple = _WRITER.maxdict = 20
