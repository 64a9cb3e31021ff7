"""metrics.csv: a line a round, for people and other programs. It says nothing that the events do not say as well.

So a damaged one is put aside and made again, and nothing that stands in it can keep a job from going on.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from axonp2p.client.events.events import Event
from axonp2p.files import put_aside, replacing
from axonp2p.kinds.train.events import RoundFinished

Row = Mapping[str, float]
_FIRST, _LAST = ["round", "loss"], ["samples", "seconds", "bytes"]


def row_of(event: RoundFinished, wire_bytes: int) -> dict[str, float]:
    """The line of a round that took so many bytes on the wire."""
    return {
        "round": event.round + 1,
        "loss": event.loss,
        **held_out(event.metrics),
        "samples": event.samples,
        "seconds": round(event.seconds, 4),
        "bytes": wire_bytes,
    }


def rows_of(events: Iterable[Event], rounds: int) -> list[dict[str, float]] | None:
    """The lines of the first so many rounds, as the events tell them; None when they do not tell all."""
    finished = {event.round: event for event in events if isinstance(event, RoundFinished)}
    if not all(number in finished for number in range(rounds)):
        return None
    rows, before = [], 0
    for number in range(rounds):
        rows.append(row_of(finished[number], finished[number].wire_bytes - before))
        before = finished[number].wire_bytes
    return rows


def in_order(columns: Sequence[str]) -> list[str]:
    """Columns as people read them: round and loss, the held-out metrics, then costs."""
    between = [name for name in columns if name not in (*_FIRST, *_LAST)]
    return [name for name in (*_FIRST, *between, *_LAST) if name in columns]


def held_out(metrics: Mapping[str, float]) -> dict[str, float]:
    """Held-out metrics under names that do not meet those of training: a task may well call one of its own "loss"."""
    return {f"held_out_{name}": value for name, value in metrics.items()}


class MetricsFile:
    """One job's. Raises `OSError` of the disk, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> list[dict[str, str]]:
        """Its lines, those left out that are none; none when there is no file."""
        return self._read()[0]

    def add(self, row: Row) -> None:
        """One more line, its columns by name; a column that is new is added to the lines before."""
        rows = self.rows()
        columns = list(rows[0]) if rows else []
        if columns and set(row) <= set(columns):
            with self._path.open("a", newline="") as file:
                csv.DictWriter(file, columns, restval="").writerow(row)
                file.flush()
                os.fsync(file.fileno())
            return
        self._write(in_order([*columns, *(key for key in row if key not in columns)]), [*rows, row])

    def keep(self, rounds: int) -> None:
        """Keep the lines of the first so many rounds, and forget those that will be trained again, or were cut off."""
        rows, whole = self._read()
        kept = [row for row in rows if int(row["round"]) <= rounds]
        if not whole or len(kept) < len(rows):
            self._write(list(rows[0]) if rows else [], kept)

    def mend(self, rounds: int, events: Iterable[Event]) -> Path | None:
        """The same after a crash; where a damaged file lies now, in whose place there is a good one.

        Where the events tell all rounds, what they tell is right.
        """
        rows, whole = self._read()
        told = rows_of(events, rounds)
        if told is None:
            aside = None if whole else self._put_aside_a_copy()
            self.keep(rounds)
            return aside
        kept = [row for row in rows if int(row["round"]) <= rounds]
        fitting = [_says(row) for row in kept] == [_says(row) for row in told[: len(kept)]]
        if fitting and len(kept) == rounds:
            self.keep(rounds)
            return None
        # A crash cuts off the end; anything else is damage.
        aside = put_aside(self._path) if self._path.exists() and not fitting else None
        if told:
            self._write(in_order(list(dict.fromkeys(name for row in told for name in row))), told)
        return aside

    def _put_aside_a_copy(self) -> Path | None:
        if not self._path.exists():
            return None
        content = self._path.read_bytes()
        aside = put_aside(self._path)
        with replacing(self._path) as file:
            file.write(content)
        return aside

    def _read(self) -> tuple[list[dict[str, str]], bool]:
        """The lines, and whether there is nothing else in the file."""
        try:
            text = self._path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return [], True
        try:
            found = list(csv.DictReader(io.StringIO(text, newline=""), strict=False))
        except csv.Error:
            return [], False
        good = [row for row in found if _is_line(row)]
        return good, len(good) == len(found) and text.endswith("\n")

    def _write(self, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
        with replacing(self._path, lasting=True) as file:
            file.write(text.getvalue().encode())


def _says(row: Mapping[str, object]) -> dict[str, str]:
    """A line without its bytes: what lives of the job that were cut off had sent stands in no event."""
    return {name: str(value) for name, value in row.items() if value != "" and name != "bytes"}


def _is_line(row: Mapping[str, str]) -> bool:
    """Whether it has its round, and numbers alone."""
    try:
        return int(row["round"]) > 0 and all(math.isfinite(float(text or 0)) for text in row.values())
    except (KeyError, ValueError, TypeError):  # a column too many, or too few, is None
        return False
