"""From a job's events to its story, one event after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.client.events import events
from client_cli.report.story import CurveMark, InVain, Kind, Life, PeerStory, Story, StoryLine
from client_cli.text.event_text import line_of


def fold(happened: Iterable[events.Event]) -> Story:
    """The story that these events tell."""
    story = Story()
    for event in happened:
        _take(story, event)
    return story


_KINDS: dict[type[events.Event], Kind] = {
    events.PeerLost: "lost",
    events.PeerHandedBack: "handed back",
    events.PeerLeftBehind: "behind",
    events.PeerJoined: "joined",
    events.RoundRedone: "redone",
    events.ExchangeChosen: "exchange",
    events.PeerPaused: "paused",
    events.PeerResumed: "resumed",
    events.JobWaiting: "waits",
    events.JobGoesOn: "goes on",
    events.JobLeft: "over",
    events.JobCancelled: "over",
    events.JobEndedBadly: "over",
}


def _take(story: Story, event: events.Event) -> None:
    if isinstance(event, events.RoundProgress):
        return
    _note_life(story, event)
    _note_peer(story, event)
    match event:
        case events.JobSubmitted(rounds=rounds):
            story.rounds_planned = rounds
            story.begun = 0.0
        case events.BundleSent():
            story.begun = event.at
            story.sent.append(event.at)
        case events.RoundFinished(rounds=rounds):
            story.rounds_planned = rounds
            if event.round < story.done:  # after a crash a round may be told twice: the last word counts
                story.rounds = [one for one in story.rounds if one.round < event.round]
            story.rounds.append(event)
            story.begun = event.at if event.round + 1 < rounds else 0.0
        case events.StateFound(round=kept):
            story.lives[-1].from_round = kept
        case events.RoundsLost(first=kept):
            story.forgotten += [one for one in story.rounds if one.round >= kept]
            story.rounds = [one for one in story.rounds if one.round < kept]
            story.redone = [one for one in story.redone if one.round < kept]
        case events.RoundRedone():
            story.redone.append(event)
        case events.RttsGuessed(seconds=seconds):
            story.among = seconds
        case events.JobWaiting(peers=names):
            story.waits_for = list(names)
        case events.JobGoesOn():
            story.waits_for = []
        case events.JobFinished() | events.JobLeft() | events.JobCancelled() | events.JobEndedBadly():
            _break_off(story, event.at)
            story.waits_for = []
    story.last = event
    _note_words(story, event)


def _break_off(story: Story, at: float) -> None:
    """The round that runs is not finished any more."""
    if story.begun and at > story.begun:
        working = tuple(peer.name for peer in story.peers.values() if peer.state in ("works", "paused"))
        story.in_vain.append(InVain(story.begun, at, working))
    story.begun = 0.0


def _note_life(story: Story, event: events.Event) -> None:
    if isinstance(event, events.JobSubmitted):
        kept = event.resumed_from_round
        again = bool(story.lives)
        if again:
            _break_off(story, story.lives[-1].ended)
        story.lives.append(Life(event.at, event.at, kept))
        for peer in story.peers.values():
            if peer.state != "lost":
                peer.state, peer.why, peer.samples_per_second = "lost", "the job went on without it", None
                peer.gone_at = event.at
        story.waits_for = []
        if again:
            story.marks.append(CurveMark(event.at, kept, "again", "", line_of(event)))
    elif story.lives:
        story.lives[-1].ended = max(story.lives[-1].ended, event.at)
    else:
        story.lives.append(Life(event.at, event.at, 0))


def _note_peer(story: Story, event: events.Event) -> None:
    match event:
        case events.RttMeasured(seconds=seconds):
            story.distances.update(seconds)
        case events.PeerHired(peer=name):
            peer = _peer(story, name)
            peer.state, peer.why, peer.rtt_s = "hired", "", story.distances.get(name)
            peer.late = story.begun > 0
        case events.PeerReady(peer=name):
            if not _peer(story, name).late:
                story.peers[name].state = "works"
        case events.PeerJoined(peer=name):
            peer = _peer(story, name)
            peer.state, peer.why = "works", ""
        case events.PeerResumed(peer=name):
            peer = _peer(story, name)
            if peer.state == "behind":
                peer.why = "catching up"
            else:
                peer.state, peer.why = "works", ""
        case events.PeerPaused(peer=name, reason=reason):
            peer = _peer(story, name)
            peer.state, peer.why = "paused", reason
        case events.PeerLeftBehind(peer=name, reason=reason):
            peer = _peer(story, name)
            peer.state, peer.why, peer.samples_per_second = "behind", reason, None
        case events.PeerLost(peer=name, reason=reason):
            peer = _peer(story, name)
            peer.state, peer.why, peer.samples_per_second = "lost", reason, None
            peer.gone_at = event.at
        case events.RoundFinished(peers=shares):
            for name, share in shares.items():
                peer = _peer(story, name)
                peer.credits = max(peer.credits, share.credits)
                if peer.state == "lost" and event.at > peer.gone_at:  # it waited for the job, and goes on with it
                    peer.state, peer.why = "works", ""
                peer.samples_per_second = event.samples_per_second.get(name) if peer.state != "lost" else None
        case events.JobFinished(credits=credits):
            for name, amount in credits.items():
                _peer(story, name).credits = amount
    if isinstance(event, _TURNS):
        story.turns.append(event)


_TURNS = (
    events.JobSubmitted,
    events.PeerHired,
    events.PeerReady,
    events.PeerPaused,
    events.PeerResumed,
    events.PeerLeftBehind,
    events.PeerJoined,
    events.PeerLost,
    events.JobWaiting,
    events.JobGoesOn,
)


def _peer(story: Story, name: str) -> PeerStory:
    return story.peers.setdefault(name, PeerStory(name))


def _note_words(story: Story, event: events.Event) -> None:
    kind = _KINDS.get(type(event))
    sentence = line_of(event) or end_line(event)
    if sentence:
        story.said.append(StoryLine(event.at, sentence))
    if kind is None:
        return
    # An event that names its round speaks of that one: an exchange is chosen for the round that comes.
    about = getattr(event, "round", None)
    number = about if isinstance(about, int) and kind != "over" else story.done
    story.marks.append(CurveMark(event.at, number, kind, getattr(event, "peer", ""), sentence))


def end_line(event: events.Event) -> str:
    """What the end of a job's life says, in one line; empty for what is no end."""
    match event:
        case events.JobFinished():
            return f"finished after round {event.rounds}: loss {event.loss:.4g}"
        case events.JobLeft():
            because = f": {event.reason}" if event.reason else ""
            return f"left after round {event.round}{because}"
        case events.JobCancelled():
            return "cancelled"
        case events.JobEndedBadly():
            return f"failed: {event.message}" + (f" ({event.cause})" if event.cause else "")
    return ""
