"""The numbers behind the pictures of a job of calls. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from client_cli.map.story import MapStory
from client_cli.report.lanes import Doing, Lane
from client_cli.report.lanes_picture import sums_of
from client_cli.report.rtt_picture import rtt_text
from client_cli.report.tables import Cell, Table, state_word
from client_cli.text.render import credits_text, duration_text


def failures(story: MapStory) -> Table:
    """A line for each call that failed, as far as these were told."""
    texts = [[f"{one.item}", one.peer, one.kind, one.message] for one in story.failures]
    rows: list[list[Cell]] = [[one.item, one.peer, one.kind, one.message] for one in story.failures]
    return Table("failures", ["Item", "Peer", "Error", "Message"], texts, ["item", "peer", "kind", "message"], rows)


TOLD: tuple[Doing, ...] = ("ran", "paused")


def work(story: MapStory, lanes: Sequence[Lane]) -> Table:
    """A line a peer to read: what it did with its time; a line for every chunk in the CSV."""
    texts = []
    for lane in lanes:
        sums = sums_of(lane)
        texts.append([lane.peer, *(duration_text(sums[doing]) if sums.get(doing) else "-" for doing in TOLD)])
    rows: list[list[Cell]] = [[one.peer, one.began, one.ended, one.first, one.calls] for one in story.chunks]
    return Table("work", ["Peer", "Calls", "Paused"], texts, ["peer", "began", "ended", "first", "calls"], rows)


def peers(story: MapStory, credits: Mapping[str, float], over: bool) -> Table:
    """A line a peer: distance, calls, credits."""
    texts, rows = [], list[list[Cell]]()
    for peer in story.peers.values():
        calls = story.calls_of[peer.name]
        word, earned = state_word(peer, over=over), credits.get(peer.name, 0.0)
        distance = "-" if peer.rtt_s is None else rtt_text(peer.rtt_s)
        texts.append([peer.name, word, distance, f"{calls:,}", credits_text(earned), peer.why])
        rows.append([peer.name, word, peer.rtt_s, calls, earned, peer.why])
    heads = ["Peer", "State", "RTT", "Calls", "Credits", "Why"]
    return Table("peers", heads, texts, ["peer", "state", "rtt_seconds", "calls", "credits", "why"], rows)
