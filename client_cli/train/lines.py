"""The text about events of a training: lines that stay, and the content of the bar meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axonp2p.client.events import events
from axonp2p.jobs.output_messages import TASK_FILES
from axonp2p.kinds.train import check_events
from axonp2p.kinds.train import events as train_events
from axonp2p.kinds.train.metrics_file import held_out
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.kind_text import Shown, started
from client_cli.text.render import credits_text, duration_text, metric_text, rate_text


def stays(event: events.Event) -> str:
    """As `KindLines` has it. Rounds have their own, `round_line`."""
    match event:
        case events.PeerLost():
            others = f"Its shards go to the {plural(event.left, 'peer')} left." if event.left else "No peer is left."
            return f"{event.peer} left in round {event.round + 1}: {event.reason}. {others}"
        case events.PeerHandedBack():
            return f"{event.peer} is wanted back by its owner in round {event.round + 1}: {event.reason}"
        case train_events.PeersStarting():
            return _starting_line(event)
        case train_events.RoundRedone():
            return f"round {event.round + 1} starts again from the last accepted weights: {event.reason}"
        case train_events.ExchangeChosen():
            return _exchange_line(event)
        case train_events.ValuesLate():
            return f"round {event.round + 1} continued without some values of {_names(event.values)}: they follow later"
        case check_events.WorkChecked() if event.outcome != "passed" or event.convicted:
            return _checked_line(event)
        case check_events.ChecksAwaited():
            return f"all rounds are trained; waits for {plural(event.checks, 'check')} of the last one"
        case check_events.ChecksUnended():
            return f"{plural(event.checks, 'check')} of the last round did not end: {event.reason}"
        case check_events.ChecksOff():
            return f"warning: nobody's work is checked in this job: {event.reason}"
        case check_events.PeerUnchecked():
            return f"warning: nobody checks the work of {event.peer}: {event.reason}"
        case check_events.NothingLearnt():
            whose = _and(sorted(event.legs))
            why = "is the learning rate 0, is all of it frozen, does loss() use another model?"
            return f"warning: the local steps of {whose} in round {event.round + 1} changed no weight at all: {why}"
        case train_events.PeerLeftBehind():
            others = f"The {plural(event.left, 'other')} continue until it has caught up."
            return f"{event.peer} fell behind in round {event.round + 1}: {event.reason}. {others}"
        case train_events.PeerJoined():
            return f"{event.peer} takes part from round {event.round + 1} on"
        case train_events.StateFound():
            waited = f"; {_and(event.waiting)} waited with it" if event.waiting else ""
            return f"continues after round {event.round} of {event.rounds}{waited}"
        case train_events.StateDamaged():
            return f"warning: the state after round {event.round} is damaged, so the one before is used ({event.file})"
        case train_events.TrainingStops():
            return _stops_line(event)
        case train_events.BestUnknown():
            given = ", ".join(event.given)
            return f"warning: no round can be the best: evaluate() gives {given}, and no {event.metric}"
        case train_events.RoundsLost():
            which = (
                f"round {event.first + 1}"
                if event.first == event.last
                else f"rounds {event.first + 1} to {event.last + 1}"
            )
            return f"warning: {which} {'is' if event.first == event.last else 'are'} lost: no later state is left"
        case train_events.TaskFilesKept():
            return _files_line(event)
        case train_events.TaskFilesLost():
            return f"warning: no more files of the task come home: {event.reason}"
    return ""


def end(event: events.Event) -> str:
    """As `KindLines` has it."""
    match event:
        case events.JobFinished():
            return f"finished after round {event.rounds}: loss {event.loss:.4g}"
        case events.JobPaused():
            because = f": {event.reason}" if event.reason else ""
            return f"paused after round {event.round}{because}"
    return ""


def _files_line(event: train_events.TaskFilesKept) -> str:
    kept = f"{plural(event.files, 'file')} of {event.peer} ({bytes_text(event.bytes)}) in out/{event.peer}"
    if not event.left_out:
        return kept
    most = f"{TASK_FILES.files} files and {bytes_text(TASK_FILES.bytes)} a peer come home"
    return f"warning: {kept}, {event.left_out} left out: at most {most}"


def _starting_line(event: train_events.PeersStarting) -> str:
    doing = []
    if event.loading:
        whose, verb = ("its", "loads") if len(event.loading) == 1 else ("their", "load")
        doing.append(f"{_and(event.loading)} still {verb} torch, behind whatever else {whose} processors do")
    if event.building:
        verb = "builds" if len(event.building) == 1 else "build"
        doing.append(f"{_and(event.building)} still {verb} the task's model")
    told = [f"after {duration_text(event.seconds)} {'; '.join(doing)}"] if doing else []
    if event.stepping:
        verb = "is" if len(event.stepping) == 1 else "are"
        since = f"{_and(event.stepping)} {verb} in data() or the first step for {duration_text(event.step_seconds)}"
        told.append(f"{since} (axon logs JOB names the line)")
    return "; ".join(told)


def _stops_line(event: train_events.TrainingStops) -> str:
    ends = f"the job ends after round {event.rounds}"
    if not event.metric:
        return f"{ends}: its owner stopped it"
    best = f"after round {event.best_round + 1} it was {metric_text(event.metric, event.best)}"
    return f"{ends}: for {plural(event.rounds - event.best_round - 1, 'round')} none was better ({best})"


def _checked_line(event: check_events.WorkChecked) -> str:
    what = f"{event.peer}'s steps {event.first + 1} to {event.last} of round {event.round + 1}"
    found = f"{what} were done again by {_and(event.by)}"
    if event.outcome == "withheld":
        return f"warning: {event.peer} did not hand over what {_and(event.by)} needed to do {what} again"
    liars = f", and {_and(event.convicted)} lied" if event.convicted else ""
    ends = {
        "convicted": f"the result is not what {event.peer} said",
        "unlike": f"the others got a different result, and {event.peer} could not reproduce theirs, or its own",
        "passed": f"the result is what {event.peer} said",
        "undecided": "nobody is to blame, since results differ, or those that were asked cannot reproduce their own",
    }[event.outcome]
    return f"warning: {found}: {ends}{liars}"


def _exchange_line(event: train_events.ExchangeChosen) -> str:
    often = "every step" if event.exchange_every == 1 else f"every {event.exchange_every} steps"
    at_once = ", computing meanwhile" if event.overlap else ""
    thin = [
        f"{name} sends {100 * share:.2g} % of its values" for name, share in sorted(event.density.items()) if share < 1
    ]
    by_rule = [f"{event.aggregation} bears {plural(event.hostile, 'liar')}"] if event.aggregation != "mean" else []
    how = "; ".join([f"{plural(event.bits, 'bit')} a value {often}{at_once}", *thin, *by_rule])
    fewer = f", to send {_fewer(event.dense_bytes, event.round_bytes)}" if event.round_bytes else ""
    return f"exchange from round {event.round + 1} on: {how}{fewer} ({event.why})"


TELLING = 2.0
"""By how much the bytes of a round have to change before somebody who watches is told."""


def again(before: events.Event, event: events.Event) -> str | None:
    """As `KindLines` has it: another choice of the exchange is told where its rule or its bytes are others."""
    if not (isinstance(before, train_events.ExchangeChosen) and isinstance(event, train_events.ExchangeChosen)):
        return None
    told = []
    if (before.aggregation, before.hostile) != (event.aggregation, event.hostile):
        told.append(f"{event.aggregation} bears {plural(event.hostile, 'liar')}")
    least, most = sorted((before.round_bytes, event.round_bytes))
    if most > TELLING * least:
        told.append(f"{bytes_text(event.round_bytes)} a round, before {bytes_text(before.round_bytes)}")
    return f"exchange from round {event.round + 1} on: {'; '.join(told)}" if told else ""


def _fewer(dense: int, sent: int) -> str:
    times = dense / max(1, sent)
    if times < 1.005:
        return "as many bytes as dense"
    return f"{times:.3g} times fewer bytes than dense" if times < 1000 else f"{times:.0f} times fewer bytes than dense"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _names(values: Mapping[str, int]) -> str:
    return ", ".join(sorted(values))


def round_line(event: events.Event) -> str:
    """One finished round as key=value pairs, for where there is no terminal."""
    if not isinstance(event, train_events.RoundFinished):
        return ""
    fields = {"round": f"{event.round + 1}/{event.rounds}", "loss": f"{event.loss:.4g}"}
    fields |= {name: f"{value:.4g}" for name, value in held_out(event.metrics).items()}
    fields |= {
        "samples/s": f"{sum(event.samples_per_second.values()):.0f}",
        "bytes": str(event.wire_bytes),
        "credits": f"{event.credits:.3g}",
        "eta": f"{event.eta_s:.0f}s",
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


def bar(shown: Shown, event: events.Event) -> Shown:
    """As `KindLines` has it."""
    match event:
        case events.BundleSent():
            return replace(shown, doing="taking the first steps")
        case train_events.PeerReady():
            return started(shown, event.peer)
        case train_events.PeersStarting():
            return replace(shown, slow=_starting_line(event))
        case train_events.PeerJoined():
            return started(shown, event.peer)
        case train_events.StateFound():
            return replace(shown, done=float(event.round), units=event.rounds)
        case train_events.RoundProgress():
            return replace(
                shown,
                at_work=True,
                doing=f"round {event.round + 1}/{event.rounds}",
                done=event.round + event.fraction,
                units=event.rounds,
                headline=_headline(event.loss, event.eta_s),
                peers=_speeds(event.samples_per_second),
            )
        case train_events.RoundFinished():
            # The next one may have begun while the state of this one was on its way.
            ahead = shown.done > event.round + 1
            return replace(
                shown,
                at_work=True,
                doing=shown.doing if ahead else f"round {event.round + 1}/{event.rounds}",
                done=max(shown.done, event.round + 1.0),
                units=event.rounds,
                headline=_headline(event.loss, event.eta_s),
                facts=_facts(event),
                peers=_speeds(event.samples_per_second),
            )
        case events.JobFinished():
            return replace(shown, doing="trained", done=float(event.rounds), headline=f"loss {event.loss:.3g}")
    return shown


def _headline(loss: float, eta_s: float | None) -> str:
    return f"loss {loss:.3g}" + (f"  ETA {duration_text(eta_s)}" if eta_s is not None else "")


def _facts(event: train_events.RoundFinished) -> str:
    parts = [f"held-out {metric_text(name, value)}" for name, value in event.metrics.items()]
    parts += [f"{bytes_text(event.wire_bytes)} on the wire", f"{credits_text(event.credits)} credits"]
    if event.round_bytes:
        parts.append(
            f"{bytes_text(event.round_bytes)} exchanged a round, {_fewer(event.dense_bytes, event.round_bytes)}"
        )
    return "   ".join(parts)


def _speeds(samples_per_second: dict[str, float]) -> str:
    return "   ".join(f"{name} {rate_text(speed)} samples/s" for name, speed in sorted(samples_per_second.items()))
