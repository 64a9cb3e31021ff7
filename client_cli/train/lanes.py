"""The work of each peer of a training over time: one lane a peer, made of spans. Pure.

In a round a peer trains, exchanges and waits in turns; the spans show how long each took in all, one after the other.
A peer tells how long it trained, and how long it could not train because of exchanges. The least of the
latter over the peers is what exchanges take by themselves; what another peer stood beyond that, it waited for slower
ones. The rest of a round is waiting too: for the others' word, the next order, and the measuring of the new weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from axonp2p.client.events import events
from axonp2p.kinds.train import events as train_events
from client_cli.report.lanes import Doing, Lane, Span, WorkTime
from client_cli.train.story import TrainStory

MOST_SPANS = 4000
"""In all lanes together; with more, neighbouring rounds are drawn as one."""
LEAD = 1.1
"""A peer that trains so much longer than the one in the middle sets the pace."""


def lanes(story: TrainStory, time: WorkTime, now: float) -> list[Lane]:
    """A lane for every peer that was hired, in the order of their hiring."""
    spans: dict[str, list[Span]] = {name: [] for name in story.peers}
    for one in _in_rounds(story, time):
        spans[one[0]].append(one[1])
    over: dict[str, list[Span]] = {name: [] for name in story.peers}
    lost: dict[str, list[float]] = {name: [] for name in story.peers}
    for name, span in _turns(story, time, now):
        (spans if span.doing in ("ready", "now", "lost") else over)[name].append(span)
    for event in story.turns:
        if isinstance(event, events.PeerLost) and event.peer in lost:
            lost[event.peer].append(time.at(event.at))
    return [
        Lane(name, sorted(spans[name], key=lambda span: span.began), over[name], lost[name]) for name in story.peers
    ]


def pace_setter(story: TrainStory) -> tuple[str, int, int] | None:
    """The slowest member in most rounds: its name, in how many rounds it was, of how many with several peers."""
    leads: dict[str, int] = {}
    counted = 0
    for one in story.rounds:
        trained = sorted((share.train_seconds, name) for name, share in one.peers.items())
        if len(trained) < 2:
            continue
        counted += 1
        slowest, name = trained[-1]
        if slowest > LEAD * trained[(len(trained) - 1) // 2][0]:
            leads[name] = leads.get(name, 0) + 1
    if not leads:
        return None
    name = max(leads, key=lambda one: leads[one])
    return name, leads[name], counted


# --- rounds -----------------------------------------------------------------------------------------


def _in_rounds(story: TrainStory, time: WorkTime) -> Iterator[tuple[str, Span]]:
    shown = [one for one in story.rounds if one.at and one.peers]
    cells = sum(len(one.peers) for one in shown) * 3
    together = max(1, -(-cells // MOST_SPANS))
    for first in range(0, len(shown), together):
        group = shown[first : first + together]
        began, ended = time.at(group[0].at - group[0].seconds), time.at(group[-1].at)
        yield from _shared_out(group, story, began, ended)


def _shared_out(
    group: list[train_events.RoundFinished], story: TrainStory, began: float, ended: float
) -> Iterator[tuple[str, Span]]:
    """The spans of rounds that are drawn as one: as a rule of a single round."""
    again = _redone_until(group, story)
    for name in dict.fromkeys(name for one in group for name in one.peers):
        train, exchange, in_rounds, whole = 0.0, 0.0, 0.0, 0.0
        for one in group:
            whole += one.seconds
            if share := one.peers.get(name):
                worked = max(0.0, one.seconds - again.get(one.round, 0.0))
                train += min(share.train_seconds, worked)
                least = min(other.exchange_seconds for other in one.peers.values())
                exchange += min(least, max(0.0, worked - share.train_seconds))
                in_rounds += one.seconds
        if not whole:
            continue
        scale = (ended - began) / whole
        lost = sum(again.get(one.round, 0.0) for one in group if name in one.peers)
        at = began
        parts: tuple[tuple[Doing, float], ...] = (("lost", lost), ("train", train), ("exchange", exchange))
        for doing, seconds in parts:
            if seconds > 0:
                yield name, Span(at, at + seconds * scale, doing)
                at += seconds * scale
        rest = began + in_rounds * scale - at
        if rest > 0:
            yield name, Span(at, at + rest, "wait")


def _redone_until(group: list[train_events.RoundFinished], story: TrainStory) -> dict[int, float]:
    """By round: the seconds from its beginning to its last new attempt."""
    found: dict[int, float] = {}
    for one in group:
        begun = one.at - one.seconds
        moments = [again.at for again in story.redone if again.round == one.round and begun <= again.at <= one.at]
        if moments:
            found[one.round] = max(moments) - begun
    return found


# --- between rounds -----------------------------------------------------------------------------------


def _turns(story: TrainStory, time: WorkTime, now: float) -> Iterator[tuple[str, Span]]:
    """The spans that reports of rounds do not give: hired and not in a round yet, paused, left behind, lost."""
    since: dict[tuple[str, Doing], float] = {}

    def over(name: str, at: float, *kinds: Doing) -> Iterator[tuple[str, Span]]:
        for doing in kinds:
            began = since.pop((name, doing), None)
            if began is not None:
                ended = min(at, _first_round_of(story, name, began)) if doing == "ready" else at
                yield name, Span(time.at(began), time.at(ended), doing)

    for one in story.forgotten:
        for name in one.peers:
            yield name, Span(time.at(one.at - one.seconds), time.at(one.at), "lost")
    for broken in story.in_vain:
        for name in broken.peers:
            yield name, Span(time.at(broken.began), time.at(broken.ended), "lost")
    for event in story.turns:
        match event:
            case events.JobSubmitted():
                # All work under way ended with the life before.
                ended = max((life.ended for life in story.lives if life.began < event.at), default=event.at)
                for name, _ in list(since):
                    yield from over(name, ended, *_LASTING)
            case events.PeerHired(peer=name):
                since[name, "ready"] = event.at
            case train_events.PeerJoined(peer=name):
                yield from over(name, event.at, "ready", "behind")
            case events.PeerPaused(peer=name):
                since.setdefault((name, "paused"), event.at)
            case events.PeerResumed(peer=name):
                yield from over(name, event.at, "paused")
            case train_events.PeerLeftBehind(peer=name):
                since.setdefault((name, "behind"), event.at)
            case events.PeerLost(peer=name):
                begun = _round_begun(story, event.at)
                hired = since.get((name, "ready"), 0.0)
                idle = (name, "behind") in since or hired > begun
                yield from over(name, event.at, *_LASTING)
                yield name, Span(time.at(event.at if idle else begun), time.at(event.at), "lost")
    last = max(now, story.lives[-1].ended) if story.lives else now
    for name, _ in list(since):
        yield from over(name, last, *_LASTING)
    if story.begun:
        for peer in story.peers.values():
            if peer.state in ("works", "paused"):
                yield peer.name, Span(time.at(story.begun), time.at(last), "now")


_LASTING: tuple[Doing, ...] = ("ready", "paused", "behind")


def _first_round_of(story: TrainStory, name: str, after: float) -> float:
    """When the first round of the peer began that ended after that moment; else when the one began that runs."""
    starts = [one.at - one.seconds for one in story.rounds if one.at >= after and name in one.peers]
    if starts:
        return max(after, starts[0])
    waits = not story.begun or story.peers[name].state == "hired"
    return float("inf") if waits else max(after, story.begun)


def _round_begun(story: TrainStory, at: float) -> float:
    """When the round began that ran at that moment; the moment itself when none ran."""
    ends = [one.at for one in [*story.rounds, *story.forgotten] if one.at <= at]
    return max([moment for moment in [*ends, *story.sent] if moment <= at], default=at)
