"""The story of a training: its rounds, and what was done in vain. Pure.

Rounds that were not kept when the job was resumed are forgotten here as they are in metrics.csv; what happened
meanwhile is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from axonp2p.client.events import events
from axonp2p.kinds.train import events as train_events
from client_cli.report.story import MarkKind, Story

MARKS: dict[type[events.Event], MarkKind] = {
    train_events.PeerLeftBehind: "behind",
    train_events.PeerJoined: "joined",
    train_events.RoundRedone: "redone",
    train_events.ExchangeChosen: "exchange",
}


@dataclass(frozen=True)
class InVain:
    """The last round of a life that ended within it. Unix seconds."""

    began: float
    ended: float
    peers: tuple[str, ...]


@dataclass
class TrainStory(Story):
    """The whole of it, up to now."""

    rounds_planned: int = 0
    rounds: list[train_events.RoundFinished] = field(default_factory=list)
    """Accepted ones that count, in order."""
    forgotten: list[train_events.RoundFinished] = field(default_factory=list)
    """Accepted ones that were not kept when the job was resumed before them."""
    redone: list[train_events.RoundRedone] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    """When the bundle was with the peers: training began."""
    begun: float = 0.0
    """When the round that runs began; 0 while none runs."""
    in_vain: list[InVain] = field(default_factory=list)
    """The work of the peers on rounds that no life of the job finished."""

    @property
    def done(self) -> int:
        """How many rounds are accepted."""
        return self.rounds[-1].round + 1 if self.rounds else 0

    @property
    def newest(self) -> train_events.RoundFinished | None:
        """The last accepted round."""
        return self.rounds[-1] if self.rounds else None


def take(story: TrainStory, event: events.Event) -> None:
    """Add an event to the story of the training, before the part that all jobs have in common."""
    _note_peer(story, event)
    match event:
        case events.JobSubmitted(rounds=rounds):
            if story.lives:
                _break_off(story, story.lives[-1].ended)
            story.rounds_planned = rounds
            story.begun = 0.0
        case events.BundleSent():
            story.begun = event.at
            story.sent.append(event.at)
        case train_events.RoundFinished(rounds=rounds):
            story.rounds_planned = rounds
            if event.round < story.done:  # after a crash a round may be told twice: the last word counts
                story.rounds = [one for one in story.rounds if one.round < event.round]
            story.rounds.append(event)
            story.begun = event.at if event.round + 1 < rounds else 0.0
        case train_events.TrainingStops(rounds=rounds):
            story.rounds_planned = rounds
        case train_events.StateFound(round=kept) if story.lives:
            story.lives[-1].from_round = kept
        case train_events.RoundsLost(first=kept):
            story.forgotten += [one for one in story.rounds if one.round >= kept]
            story.rounds = [one for one in story.rounds if one.round < kept]
            story.redone = [one for one in story.redone if one.round < kept]
        case train_events.RoundRedone():
            story.redone.append(event)
        case events.JobFinished() | events.JobPaused() | events.JobCancelled() | events.JobEndedBadly():
            _break_off(story, event.at)


def _break_off(story: TrainStory, at: float) -> None:
    """The round that runs is not finished any more."""
    if story.begun and at > story.begun:
        working = tuple(peer.name for peer in story.peers.values() if peer.state in ("works", "paused"))
        story.in_vain.append(InVain(story.begun, at, working))
    story.begun = 0.0


def _note_peer(story: TrainStory, event: events.Event) -> None:
    match event:
        case events.PeerHired(peer=name):
            story.peer(name).late = story.begun > 0
        case train_events.PeerReady(peer=name):
            story.turns.append(event)
            if not story.peer(name).late:
                story.peers[name].state = "works"
        case train_events.PeerJoined(peer=name):
            story.turns.append(event)
            peer = story.peer(name)
            peer.state, peer.why = "works", ""
        case train_events.PeerLeftBehind(peer=name, reason=reason):
            story.turns.append(event)
            peer = story.peer(name)
            peer.state, peer.why, peer.samples_per_second = "behind", reason, None
        case train_events.RoundFinished(peers=shares):
            for name, share in shares.items():
                peer = story.peer(name)
                peer.credits = max(peer.credits, share.credits)
                if peer.state == "lost" and event.at > peer.gone_at:  # it waited for the job, and goes on with it
                    peer.state, peer.why = "works", ""
                peer.samples_per_second = event.samples_per_second.get(name) if peer.state != "lost" else None
