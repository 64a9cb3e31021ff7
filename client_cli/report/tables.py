"""The numbers behind the pictures: each as a table to read and as a CSV to keep. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from axonp2p.plain_text import bytes_text
from client_cli.report.lanes import Doing, Lane
from client_cli.report.lanes_picture import sums_of
from client_cli.report.rtt_picture import guess, measured, rtt_text
from client_cli.report.story import PeerStory, Story
from client_cli.text.render import credits_text, duration_text, metric_text, rate_text

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


def rounds(story: Story) -> Table:
    """A line a round: loss, held-out metrics, speed."""
    metrics = sorted({name for one in story.rounds for name in one.metrics})
    planned = max(story.rounds_planned, story.done, 1)
    shown = story.rounds[-ROWS_SHOWN:][::-1]
    return Table(
        "rounds",
        ["Round", "Loss", *(f"Held-out {name}" for name in metrics), "Samples", "Time", "Peers"],
        [
            [
                f"{one.round + 1}", f"{one.loss:.4g}",
                *(_metric(name, one.metrics.get(name)) for name in metrics),
                f"{one.samples:,}", duration_text(one.seconds), f"{len(one.samples_per_second)}",
            ]
            for one in shown
        ],
        ["round", "at", "loss", *(f"held_out_{name}" for name in metrics), "samples", "seconds", "peers"],
        [
            [one.round + 1, one.at, one.loss, *(one.metrics.get(name) for name in metrics), one.samples,
             round(one.seconds, 4), len(one.samples_per_second)]
            for one in story.rounds
        ],
        [(one.round + 1) / planned for one in shown],
    )  # fmt: skip


def _metric(name: str, value: float | None) -> str:
    return "-" if value is None else metric_text(name, value).removeprefix(f"{name} ")


def bytes_a_round(story: Story) -> Table:
    """A line a round: bytes among the peers, and those of a dense exchange."""
    planned = max(story.rounds_planned, story.done, 1)
    shown = story.rounds[-ROWS_SHOWN:][::-1]
    return Table(
        "bytes",
        ["Round", "Among the peers", "Dense exchange", "Fewer"],
        [
            [
                f"{one.round + 1}",
                bytes_text(one.round_bytes),
                bytes_text(one.dense_bytes),
                _fewer(one.round_bytes, one.dense_bytes),
            ]
            for one in shown
        ],
        ["round", "round_bytes", "dense_bytes", "wire_bytes_so_far"],
        [[one.round + 1, one.round_bytes, one.dense_bytes, one.wire_bytes] for one in story.rounds],
        [(one.round + 1) / planned for one in shown],
    )


def _fewer(sent: int, dense: int) -> str:
    return f"{dense / sent:.3g} times" if sent and dense else "-"


TOLD: tuple[Doing, ...] = ("train", "exchange", "wait", "paused", "behind", "lost")


def work(story: Story, lanes: Sequence[Lane]) -> Table:
    """A line a peer to read: what it did with its time; a line for every peer's round in the CSV."""
    texts = []
    for lane in lanes:
        sums = sums_of(lane)
        texts.append([lane.peer, *(duration_text(sums[doing]) if sums.get(doing) else "-" for doing in TOLD)])
    columns = ["round", "peer", "train_seconds", "exchange_seconds", "round_seconds", "exchanges", "samples",
               "sent_bytes", "received_bytes", "kept_back"]  # fmt: skip
    rows: list[list[Cell]] = [
        [one.round + 1, name, round(share.train_seconds, 4), round(share.exchange_seconds, 4), round(one.seconds, 4),
         share.exchanges, share.samples, share.sent_bytes, share.received_bytes, share.kept_back]
        for one in story.rounds for name, share in one.peers.items()
    ]  # fmt: skip
    return Table("work", ["Peer", "Train", "Exchange", "Wait", "Paused", "Behind", "Lost"], texts, columns, rows)


STATES = {"hired": "getting ready", "works": "works", "paused": "paused", "behind": "left behind", "lost": "gone"}


def peers(story: Story, credits: dict[str, float], *, over: bool) -> Table:
    """A line a peer: distance, speed, bytes, credits."""
    sums = {name: [0, 0, 0, 0] for name in story.peers}
    for one in story.rounds:
        for name, share in one.peers.items():
            for place, amount in enumerate((1, share.samples, share.sent_bytes, share.received_bytes)):
                sums[name][place] += amount
    texts, rows = [], list[list[Cell]]()
    for peer in story.peers.values():
        done, samples, sent, received = sums[peer.name]
        word = "was there at the end" if over and peer.state != "lost" else STATES[peer.state]
        earned = credits.get(peer.name, 0.0)
        speed = "-" if peer.samples_per_second is None or over else f"{rate_text(peer.samples_per_second)}/s"
        distance = "-" if peer.rtt_s is None else rtt_text(peer.rtt_s)
        texts.append([peer.name, word, distance, f"{done:,}", f"{samples:,}", speed, bytes_text(sent),
                      bytes_text(received), credits_text(earned), peer.why])  # fmt: skip
        rows.append(
            [peer.name, word, peer.rtt_s, done, samples, peer.samples_per_second, sent, received, earned, peer.why]
        )
    heads = ["Peer", "State", "RTT", "Rounds", "Samples", "Speed", "Sent", "Received", "Credits", "Why"]
    columns = ["peer", "state", "rtt_seconds", "rounds", "samples", "samples_per_second", "sent_bytes",
               "received_bytes", "credits", "why"]  # fmt: skip
    return Table("peers", heads, texts, columns, rows)


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
