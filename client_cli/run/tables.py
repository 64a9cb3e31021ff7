"""The numbers behind the pictures of a job that runs copies of a command. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axonp2p.plain_text import bytes_text
from client_cli.report.lanes import Doing, Lane
from client_cli.report.lanes_picture import sums_of
from client_cli.report.rtt_picture import rtt_text
from client_cli.report.tables import ROWS_SHOWN, Cell, Table, state_word
from client_cli.run.story import IndexStory, RunStory
from client_cli.text.render import credits_text, duration_text


def copies(story: RunStory) -> Table:
    """A line an index: where its result is from, how often it was begun, and how it ended."""
    known = [story.indices.get(number, IndexStory(number)) for number in range(story.copies)]
    # Failed ones first: of very many copies they are the ones that one looks for.
    shown = sorted(known, key=lambda one: (not one.failed, one.index))[:ROWS_SHOWN]
    texts = [
        [
            f"{one.index}", _state(story, one), one.peer or "-", f"{one.runs or '-'}",
            "-" if one.code is None else f"{one.code}", "-" if one.seconds is None else duration_text(one.seconds),
            f"{one.files:,}", bytes_text(one.bytes), one.reason,
        ]
        for one in shown
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [one.index, _state(story, one), one.peer, one.runs, one.code, one.seconds, one.files, one.bytes, one.reason]
        for one in known
    ]
    return Table(
        "copies",
        ["Index", "State", "Peer", "Attempts", "Code", "Time", "Files", "Bytes", "Why"],
        texts,
        ["index", "state", "peer", "attempts", "code", "seconds", "files", "bytes", "why"],
        rows,
    )


def _state(story: RunStory, one: IndexStory) -> str:
    if one.done:
        return "failed" if one.failed else "done"
    return "runs" if any(run.index == one.index for run in story.running.values()) else "waits"


TOLD: tuple[Doing, ...] = ("ran", "failed", "lost", "paused")


def work(story: RunStory, lanes: Sequence[Lane]) -> Table:
    """A line a peer to read: what it did with its time; a line for every attempt in the CSV."""
    texts = []
    for lane in lanes:
        sums = sums_of(lane)
        texts.append([lane.peer, *(duration_text(sums[doing]) if sums.get(doing) else "-" for doing in TOLD)])
    rows: list[list[Cell]] = [
        [run.index, run.attempt, run.peer, run.began, run.ended or None, run.how]
        for run in [*story.over, *story.running.values()]
    ]
    heads = ["Peer", "Good copies", "Failed", "In vain", "Paused"]
    return Table("work", heads, texts, ["index", "attempt", "peer", "began", "ended", "how"], rows)


def peers(story: RunStory, credits: Mapping[str, float], over: bool) -> Table:
    """A line a peer: distance, copies, credits."""
    texts, rows = [], list[list[Cell]]()
    for peer in story.peers.values():
        good = sum(run.how == "good" and run.peer == peer.name for run in story.over)
        failed = sum(run.how == "failed" and run.peer == peer.name for run in story.over)
        word, earned = state_word(peer, over=over), credits.get(peer.name, 0.0)
        distance = "-" if peer.rtt_s is None else rtt_text(peer.rtt_s)
        texts.append([peer.name, word, distance, f"{good:,}", f"{failed:,}", credits_text(earned), peer.why])
        rows.append([peer.name, word, peer.rtt_s, good, failed, earned, peer.why])
    heads = ["Peer", "State", "RTT", "Good copies", "Failed", "Credits", "Why"]
    columns = ["peer", "state", "rtt_seconds", "good_copies", "failed_copies", "credits", "why"]
    return Table("peers", heads, texts, columns, rows)
