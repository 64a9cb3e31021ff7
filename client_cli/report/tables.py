"""The numbers behind the pictures: each as a table to read and as a CSV to keep. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from client_cli.report.rtt_picture import guess, measured, rtt_text
from client_cli.report.story import PeerStory, Story

ROWS_SHOWN = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """`rows` as numbers, for the CSV; `texts` as people read them, newest first, at most so many as are shown."""

    name: str
    heads: Sequence[str]
    texts: Sequence[Sequence[str]]
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    places: Sequence[float] = ()
    """Where each text row stands on the chart, as a share of its width; empty: nowhere."""

    def csv(self) -> str:
        """As a file for spreadsheets. A name that a spreadsheet would take for a formula is kept from being one."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows([_harmless(cell) for cell in row] for row in self.rows)
        return text.getvalue()


def _harmless(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else "" if cell is None else cell


def state_word(peer: PeerStory, *, over: bool) -> str:
    """How the peer stands, or stood when the job was over."""
    return "was there at the end" if over and peer.state != "lost" else STATES[peer.state]


STATES = {"hired": "getting ready", "works": "works", "paused": "paused", "behind": "left behind", "lost": "gone"}


def round_trips(story: Story) -> Table:
    """Measured from the client, and guessed between every two peers."""
    around = measured(story)
    texts = [["you", peer.name, rtt_text(peer.rtt_s or 0.0), "measured"] for peer in around]
    rows: list[list[Cell]] = [["client", peer.name, peer.rtt_s, "measured"] for peer in around]
    for one, other, seconds in _pairs(around, story):
        texts.append([one, other, rtt_text(seconds), "guessed"])
        rows.append([one, other, seconds, "guessed"])
    return Table(
        "round-trips", ["From", "To", "RTT", "How"], texts[:ROWS_SHOWN], ["from", "to", "seconds", "how"], rows
    )


def _pairs(around: Sequence[PeerStory], story: Story) -> list[tuple[str, str, float]]:
    found = []
    for index, one in enumerate(around):
        for other in around[index + 1 :]:
            seconds = guess(story, one.name, other.name)
            if seconds is not None:
                found.append((one.name, other.name, seconds))
    return found


def happened(story: Story) -> Table:
    """All that was said of the job."""
    rows: list[list[Cell]] = [[said.at, said.sentence] for said in story.said]
    return Table("events", ["When", "What"], [], ["at", "what"], rows)
