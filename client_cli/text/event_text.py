"""What a job's events say to people: lines that stay, and what the bar shows meanwhile. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from axonp2p.client.events import events
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.render import credits_text, duration_text, metric_text, rate_text


@dataclass(frozen=True)
class Shown:
    """What stands in the bar and below it."""

    doing: str = ""
    """Empty before there is a job."""
    done: float = 0.0
    """Rounds, with the fraction of the one that runs."""
    rounds: int = 0
    headline: str = ""
    """Beside the bar: loss and the time that is left."""
    facts: str = ""
    """Below it: what changes once a round."""
    peers: str = ""
    """Below that: how fast each peer is."""
    paused: Mapping[str, str] = field(default_factory=dict)
    """Who stands still, and why."""
    waits: bool = False
    """Whether the job waits for them."""


def line_of(event: events.Event) -> str:
    """The line that stays on the screen after `event`, or an empty text. Rounds have their own, `round_line`."""
    match event:
        case events.JobSubmitted():
            begin = f"resumed {event.job} after round {event.resumed_from_round}" if event.resumed_from_round else ""
            what = f"{plural(event.rounds, 'round')} on up to {plural(event.peers, 'peer')}"
            return f"{begin or f'submitted {event.job}'}: {what}, bundle {bytes_text(event.bundle_bytes)}"
        case events.PeersFound():
            who = " and ".join(event.sources) or "nobody"
            know = "knows" if len(event.sources) == 1 else "know"
            return f"{who} {know} {plural(event.alive, 'peer')}, {event.fitting} fit this job"
        case events.PeerRefused():
            return f"{event.peer} was not hired: {event.reason}"
        case events.RttMeasured() if event.too_far or event.unreachable:
            far = [f"{name} (too far)" for name in event.too_far]
            gone = [f"{name} ({reason})" for name, reason in event.unreachable.items()]
            return f"left out: {', '.join([*far, *gone])}"
        case events.BundleSent():
            sent = f"{bytes_text(event.bytes)} in {duration_text(event.seconds)}"
            passed = f", {bytes_text(event.member_bytes)} passed on among them" if event.member_bytes else ""
            return f"sent the bundle to {' '.join(event.peers)}: {sent}{passed}"
        case events.PeerHelped():
            return f"no other peer passes the bundle on to {event.peer}: it is sent from here"
        case events.PieceWrong():
            what = f"{event.peer} passed a wrong piece of the bundle on to {event.told_by}"
            return f"warning: {what}, who asks others for it"
        case events.PeerLost():
            others = f"Its shards go to the {plural(event.left, 'peer')} left." if event.left else "No peer is left."
            return f"{event.peer} left in round {event.round + 1}: {event.reason}. {others}"
        case events.PeerPaused():
            return f"{event.peer} paused: {event.reason}"
        case events.PeerResumed():
            return f"{event.peer} goes on"
        case events.PeerHandedBack():
            return f"{event.peer} is wanted back by its owner in round {event.round + 1}: {event.reason}"
        case events.JobWaiting():
            return f"the job waits for {', '.join(event.peers)}: it cannot go on without"
        case events.JobGoesOn():
            return "the job goes on"
        case events.RoundRedone():
            return f"round {event.round + 1} starts again from the last accepted weights: {event.reason}"
        case events.ExchangeChosen():
            return _exchange_line(event)
        case events.ValuesLate():
            return f"round {event.round + 1} went on without some values of {_names(event.values)}: they follow later"
        case events.WorkChecked() if event.outcome != "passed" or event.convicted:
            return _checked_line(event)
        case events.ChecksAwaited():
            return f"all rounds are trained; waits for {plural(event.checks, 'check')} of the last one"
        case events.ChecksUnended():
            return f"{plural(event.checks, 'check')} of the last round did not end: {event.reason}"
        case events.ChecksOff():
            return f"warning: nobody's work is checked in this job: {event.reason}"
        case events.NothingLearnt():
            whose = _and(sorted(event.legs))
            why = "is the learning rate 0, is all of it frozen, does loss() use another model?"
            return f"warning: the local steps of {whose} in round {event.round + 1} changed no weight at all: {why}"
        case events.PeerLeftBehind():
            others = f"The {plural(event.left, 'other')} go on, until it has caught up."
            return f"{event.peer} fell behind in round {event.round + 1}: {event.reason}. {others}"
        case events.PeerJoined():
            return f"{event.peer} takes part from round {event.round + 1} on"
        case events.PeersAwaited():
            there = f"{event.there} of at least {plural(event.needed, 'peer')}"
            return f"waits up to {duration_text(event.seconds)} for peers: {there} there ({event.reason})"
        case events.StateFound():
            waited = f"; {_and(event.waiting)} waited with it" if event.waiting else ""
            return f"goes on after round {event.round} of {event.rounds}{waited}"
        case events.StateDamaged():
            return f"warning: the state after round {event.round} is damaged, so the one before is used ({event.file})"
        case events.FileDamaged():
            where = f"put aside as {event.file}" if event.file else "gone"
            return f"warning: {event.name} was damaged ({where}), and is made again from what is known"
        case events.RoundsLost():
            which = (
                f"round {event.first + 1}"
                if event.first == event.last
                else f"rounds {event.first + 1} to {event.last + 1}"
            )
            return f"warning: {which} must be trained again: no later state is left"
        case events.ReceiptsMissing():
            missing = f"{event.unsigned} not signed by their peer, {event.not_taken} not taken by a tracker"
            return f"warning: receipts are missing from the ledger: {missing} ({event.reason})"
    return ""


def _checked_line(event: events.WorkChecked) -> str:
    what = f"{event.peer}'s steps {event.first + 1} to {event.last} of round {event.round + 1}"
    found = f"{what} were done again by {_and(event.by)}"
    if event.outcome == "withheld":
        return f"warning: {event.peer} did not hand over what {_and(event.by)} needed to do {what} again"
    liars = f", and {_and(event.convicted)} lied" if event.convicted else ""
    ends = {
        "convicted": "they do not lead where it said",
        "unlike": "they lead others elsewhere, and it comes to no end of others, or of its own, again",
        "passed": "they lead where it said",
        "undecided": "nobody is to blame, since ends differ, or who was asked comes to none of its own again",
    }[event.outcome]
    return f"warning: {found}: {ends}{liars}"


def _exchange_line(event: events.ExchangeChosen) -> str:
    often = "every step" if event.exchange_every == 1 else f"every {event.exchange_every} steps"
    at_once = ", computing meanwhile" if event.overlap else ""
    thin = [
        f"{name} sends {100 * share:.2g} % of its values" for name, share in sorted(event.density.items()) if share < 1
    ]
    by_rule = [f"{event.aggregation} bears {plural(event.hostile, 'liar')}"] if event.aggregation != "mean" else []
    how = "; ".join([f"{plural(event.bits, 'bit')} a value {often}{at_once}", *thin, *by_rule])
    fewer = f", {_fewer(event.dense_bytes, event.round_bytes)}" if event.round_bytes else ""
    return f"exchange from round {event.round + 1} on: {how}{fewer} ({event.why})"


def _fewer(dense: int, sent: int) -> str:
    times = dense / max(1, sent)
    return f"{times:.3g} times fewer bytes than dense" if times < 1000 else f"{times:.0f} times fewer bytes than dense"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _names(values: Mapping[str, int]) -> str:
    return ", ".join(sorted(values))


def round_line(event: events.RoundFinished) -> str:
    """One finished round as key=value pairs, for where there is no terminal."""
    fields = {"round": f"{event.round + 1}/{event.rounds}", "loss": f"{event.loss:.4g}"}
    fields |= {name: f"{value:.4g}" for name, value in events.held_out(event.metrics).items()}
    fields |= {
        "samples/s": f"{sum(event.samples_per_second.values()):.0f}",
        "bytes": str(event.wire_bytes),
        "credits": f"{event.credits:.3g}",
        "eta": f"{event.eta_s:.0f}s",
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


def after(shown: Shown, event: events.Event) -> Shown:
    """What the bar shows once `event` has happened."""
    match event:
        case events.JobSubmitted():
            return replace(shown, doing="looking for peers", rounds=event.rounds, done=float(event.resumed_from_round))
        case events.StateFound():
            return replace(shown, done=float(event.round), rounds=event.rounds)
        case events.PeersFound():
            return replace(shown, doing="measuring round-trip times")
        case events.RttMeasured():
            return replace(shown, doing="reserving peers")
        case events.Reserved() | events.PeerHired():
            return replace(shown, doing="sending the bundle")
        case events.BundleProgress():
            sent = f"{bytes_text(event.bytes)} sent, {bytes_text(event.member_bytes)} passed on"
            return replace(shown, doing=f"sending the bundle ({100 * event.fraction:.0f} %, {sent})")
        case events.BundleSent():
            return replace(shown, doing="building the model")
        case events.RoundProgress():
            return replace(
                shown,
                doing=f"round {event.round + 1}/{event.rounds}",
                done=event.round + event.fraction,
                rounds=event.rounds,
                headline=_headline(event.loss, event.eta_s),
                peers=_speeds(event.samples_per_second),
            )
        case events.RoundFinished():
            # The next one may have begun while the state of this one was on its way.
            ahead = shown.done > event.round + 1
            return replace(
                shown,
                doing=shown.doing if ahead else f"round {event.round + 1}/{event.rounds}",
                done=max(shown.done, event.round + 1.0),
                rounds=event.rounds,
                headline=_headline(event.loss, event.eta_s),
                facts=_facts(event),
                peers=_speeds(event.samples_per_second),
            )
        case events.PeerPaused():
            return replace(shown, paused={**shown.paused, event.peer: event.reason})
        case events.PeerResumed() | events.PeerLost():
            still = {name: reason for name, reason in shown.paused.items() if name != event.peer}
            return replace(shown, paused=still)
        case events.JobWaiting() | events.JobGoesOn():
            return replace(shown, waits=isinstance(event, events.JobWaiting))
        case events.JobFinished():
            return replace(shown, doing="trained", done=float(event.rounds), headline=f"loss {event.loss:.3g}")
    return shown


def standing_still(shown: Shown) -> str:
    """Who is paused and why, and whether the job waits for them; empty when nobody is."""
    if not shown.paused:
        return ""
    reasons = "   ".join(f"{name} paused: {reason}" for name, reason in sorted(shown.paused.items()))
    return f"the job waits: {reasons}" if shown.waits else reasons


def _headline(loss: float, eta_s: float | None) -> str:
    return f"loss {loss:.3g}" + (f"  ETA {duration_text(eta_s)}" if eta_s is not None else "")


def _facts(event: events.RoundFinished) -> str:
    parts = [f"held-out {metric_text(name, value)}" for name, value in event.metrics.items()]
    parts += [f"{bytes_text(event.wire_bytes)} on the wire", f"{credits_text(event.credits)} credits"]
    if event.round_bytes:
        parts.append(f"{bytes_text(event.round_bytes)} a round, {_fewer(event.dense_bytes, event.round_bytes)}")
    return "   ".join(parts)


def _speeds(samples_per_second: dict[str, float]) -> str:
    return "   ".join(f"{name} {rate_text(speed)} samples/s" for name, speed in sorted(samples_per_second.items()))


def summary(event: events.JobFinished) -> str:
    """What a finished job came to, in a few lines."""
    metrics = "".join(f"   held-out {metric_text(name, value)}" for name, value in event.metrics.items())
    gone = f", {plural(len(event.lost), 'peer')} lost ({' '.join(event.lost)})" if event.lost else ""
    paid = f"{credits_text(sum(event.credits.values()))} in all"
    lines = [
        f"Done in {duration_text(event.seconds)}.   loss {event.loss:.4g}{metrics}",
        f"  peers    {' '.join(event.peers)}{gone}",
        f"  samples  {event.samples:,}   bytes on the wire {bytes_text(event.wire_bytes)}",
        f"  credits  {paid}; {plural(event.receipts, 'receipt')} of this run in the ledger",
    ]
    return "\n".join(lines)
