"""The numbers behind the pictures of a job of calls. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from axonp2p.plain_text import bytes_text, plural
from client_cli.map.lines import calls_text
from client_cli.map.results_found import ResultsFound
from client_cli.map.story import MapStory, OutvotedPeer
from client_cli.map.stretches import PeerStretches
from client_cli.report.lanes import Lane
from client_cli.report.lanes_picture import sums_of
from client_cli.report.rtt_picture import rtt_text
from client_cli.report.tables import Cell, Table, state_word
from client_cli.text.render import credits_text, duration_text

RESULTS_SHOWN = 100
"""The first, on the page; the CSV has more."""
ITEMS_NAMED = 5
"""In one cell."""


def results(found: ResultsFound) -> Table:
    """A line for each of the first results."""
    rows: list[list[Cell]] = [[one.item, one.outcome, one.text, one.size, one.peer] for one in found.results]
    texts = [
        [f"{one.item:,}", one.peer or "-", bytes_text(one.size), _shown(one.outcome, one.text)]
        for one in found.results[:RESULTS_SHOWN]
    ]
    columns = ["item", "outcome", "result", "bytes", "peer"]
    return Table("results", ["Item", "Peer", "Bytes", "Result"], texts, columns, rows)


def _shown(outcome: str, text: str) -> str:
    return f"failed: {text}" if outcome == "error" else text


def failures(story: MapStory) -> Table:
    """A line for each call that failed, as far as these were told."""
    texts = [[f"{one.item:,}", one.peer, one.kind, one.message] for one in story.failures]
    rows: list[list[Cell]] = [[one.item, one.peer, one.kind, one.message] for one in story.failures]
    return Table("failures", ["Item", "Peer", "Error", "Message"], texts, ["item", "peer", "kind", "message"], rows)


def opinions(story: MapStory) -> Table:
    """A line for each peer whose results had to wait for those of others: how many wait now, and how it was outvoted.

    Those that were outvoted come first.
    """
    waits = defaultdict[str, list[int]](list)
    for opinion in story.found.waiting:
        waits[opinion.peer].append(opinion.item)
    names = dict.fromkeys([*story.outvoted, *story.waited_of, *waits])
    texts, rows = [], list[list[Cell]]()
    for name in names:
        waited, items, one = story.waited_of[name], waits.get(name, []), story.outvoted.get(name, OutvotedPeer())
        outvoted = calls_text(one.first, one.calls) if one.calls else "-"
        others = ", ".join(one.others)
        texts.append([name, outvoted, others or "-", _doubted(one), _some(items), f"{waited:,}"])
        first = one.first if one.calls else None
        rows.append([name, one.calls, first, others, one.again, one.taken, len(items), waited])
    heads = ["Peer", "Outvoted in", "By", "Only it had found", "Wait now", "Waited"]
    columns = ["peer", "outvoted_calls", "first", "outvoted_by", "made_again", "taken", "wait", "waited"]
    return Table("opinions", heads, texts, columns, rows)


def _doubted(one: OutvotedPeer) -> str:
    said = [f"{plural(one.again, 'result')}, made again"] if one.again else []
    said += [f"{plural(one.taken, 'result')}, used already"] if one.taken else []
    return f"{'; '.join(said)} ({items_text(one.items)})" if said else "-"


def _some(items: Sequence[int]) -> str:
    return f"{len(items):,} ({items_text(items)})" if items else "-"


def items_text(items: Sequence[int]) -> str:
    """[3, 5] -> "items 3, 5"; of many, the first."""
    named = ", ".join(map(str, items[:ITEMS_NAMED]))
    return f"{'item' if len(items) == 1 else 'items'} {named}{', ...' if len(items) > ITEMS_NAMED else ''}"


def work(story: MapStory, lanes: Sequence[Lane]) -> Table:
    """A line a peer to read: what it did with its time; in the CSV a line for each stretch that is drawn."""
    texts = []
    for lane in lanes:
        done = story.chunks.get(lane.peer, PeerStretches())
        sums = sums_of(lane)
        stuck, paused = sums.get("stuck", 0.0), sums.get("paused", 0.0)
        chunks = sum(one.chunks for row in done.rows for one in row)
        times = [duration_text(seconds) if seconds else "-" for seconds in (done.seconds, stuck, paused)]
        texts.append([lane.peer, f"{chunks:,}", *times])
    rows: list[list[Cell]] = [
        [name, row, one.began, one.ended, one.first, one.chunks, one.calls, one.failed, "yes" if one.copied else "no"]
        for name, done in story.chunks.items()
        for row, ones in enumerate(done.rows)
        for one in ones
    ]
    columns = ["peer", "row", "began", "ended", "first", "chunks", "calls", "failed", "copy"]
    return Table("work", ["Peer", "Chunks", "Time at calls", "Stuck", "Paused"], texts, columns, rows)


def peers(story: MapStory, credits: Mapping[str, float], over: bool) -> Table:
    """A line a peer: distance, calls, credits."""
    texts, rows = [], list[list[Cell]]()
    for peer in story.peers.values():
        calls, failed = story.calls_of[peer.name], story.errors_of[peer.name]
        word, earned = state_word(peer, over=over), credits.get(peer.name, 0.0)
        if peer.name in story.aside:
            word = "set aside"
        distance = "-" if peer.rtt_s is None else rtt_text(peer.rtt_s)
        texts.append([peer.name, word, distance, f"{calls:,}", f"{failed:,}", credits_text(earned), peer.why])
        rows.append([peer.name, word, peer.rtt_s, calls, failed, earned, peer.why])
    heads = ["Peer", "State", "RTT", "Calls", "Failed", "Credits", "Why"]
    columns = ["peer", "state", "rtt_seconds", "calls", "failed_calls", "credits", "why"]
    return Table("peers", heads, texts, columns, rows)
