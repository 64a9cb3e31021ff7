"""The text about a job's events: lines that stay, and the content of the bar meanwhile. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from axonp2p.client.events import events
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.kind_text import Shown, started, text_of
from client_cli.text.render import duration_text


def line_of(event: events.Event, kind: str) -> str:
    """The line that stays on the screen after `event` of a job of that kind, or an empty text."""
    return text_of(kind).lines.stays(event) or _line_of_any(event, kind)


def line_without_bar(event: events.Event, kind: str) -> str:
    """The same where no bar shows how far the job is: what moves the bar there has a line here."""
    return text_of(kind).lines.stays_without_bar(event) or line_of(event, kind)


class JobLines:
    """The lines of one job, event after event: what an earlier one said is not said in full again."""

    def __init__(self, kind: str, *, bar: bool) -> None:
        self._kind = kind
        self._bar = bar
        """Whether a bar shows how far the job is."""
        self._said: dict[type[events.Event], events.Event] = {}

    def after(self, event: events.Event) -> str:
        """The line that stays after `event`, or an empty text."""
        before = self._said.get(type(event))
        line = text_of(self._kind).lines.again(before, event) if before is not None else None
        if line is None:
            line = line_of(event, self._kind) if self._bar else line_without_bar(event, self._kind)
        if line:
            self._said[type(event)] = event
        return line


def end_line(event: events.Event, kind: str) -> str:
    """The line about the end of a job's life; empty for an event that is no end."""
    match event:
        case events.JobCancelled():
            return "cancelled"
        case events.JobEndedBadly():
            return f"failed: {event.message}" + (f" ({event.cause})" if event.cause else "")
    return text_of(kind).lines.end(event)


def _line_of_any(event: events.Event, kind: str) -> str:
    match event:
        case events.JobSubmitted():
            words, peers = text_of(kind).words, f"up to {plural(event.peers, 'peer')}"
            begin = f"submitted {event.job}: {plural(event.rounds, words.unit)} on {peers}"
            if event.resumed_from_round:
                begin = f"resumed {event.job} {words.after(event.resumed_from_round, event.rounds)}: {peers}"
            return f"{begin}, bundle {bytes_text(event.bundle_bytes)}"
        case events.PeersFound():
            who = " and ".join(event.sources) or "nobody"
            know = "knows" if len(event.sources) == 1 else "know"
            seen = f"{who} {know} {plural(event.alive, 'peer')}, {event.fitting} fit this job"
            return f"{_search(event)}: {seen}" if event.hired else seen
        case events.PeerRefused():
            return f"{event.peer} was not hired: {event.reason}"
        case events.RttMeasured() if event.too_far or event.unreachable:
            far = [f"{name} (too far)" for name in event.too_far]
            gone = [f"{name} ({reason})" for name, reason in event.unreachable.items()]
            return f"left out: {', '.join([*far, *gone])}"
        case events.PackagesResolved():
            count = f"{plural(len(event.wheels), 'wheel')}, {bytes_text(event.bytes)}"
            return f"packages for {event.platform}: {count} ({', '.join(event.wheels)})"
        case events.BundleSent():
            sent = f"{bytes_text(event.bytes)} in {duration_text(event.seconds)}"
            passed = f", {bytes_text(event.member_bytes)} passed on among them" if event.member_bytes else ""
            workers = "its worker starts" if len(event.peers) == 1 else "their workers start"
            return f"sent the bundle to {' '.join(event.peers)}: {sent}{passed}; {workers}"
        case events.PeerHelped():
            return f"no other peer passes pieces on to {event.peer}: they are sent from here"
        case events.PieceWrong():
            what = f"{event.peer} passed a wrong piece on to {event.told_by}"
            return f"warning: {what}, who asks others for it"
        case events.PeerPaused():
            return f"{event.peer} paused: {event.reason}"
        case events.PeerResumed():
            return f"{event.peer} continues"
        case events.JobWaiting():
            return f"the job waits for {', '.join(event.peers)}, without which it cannot continue"
        case events.JobGoesOn():
            return "the job continues"
        case events.PeersAwaited():
            there = f"{event.there} of at least {plural(event.needed, 'peer')}"
            return f"waits up to {duration_text(event.seconds)} for peers: {there} there ({event.reason})"
        case events.FileDamaged():
            where = f"put aside as {event.file}" if event.file else "gone"
            return f"warning: {event.name} was damaged ({where}), and is made again from what is known"
        case events.ReceiptsMissing():
            missing = f"{event.unsigned} not signed by their peer, {event.not_taken} not taken by a tracker"
            return f"warning: receipts are missing from the ledger: {missing} ({event.reason})"
    return ""


def after(shown: Shown, event: events.Event, kind: str) -> Shown:
    """The content of the bar once `event` of a job of that kind has happened."""
    return text_of(kind).lines.bar(_after_any(shown, event), event)


def doing_now(shown: Shown, now: float) -> str:
    """The text beside the bar: while workers start, whose, and for how long. `now` is Unix time."""
    if shown.at_work or not shown.sent_at or not shown.starting:
        return shown.doing
    waited = f": {duration_text(now - shown.sent_at)}" if now - shown.sent_at >= 1 else ""
    return f"{waits_for_workers(shown.starting)}{waited}"


def waits_for_workers(names: Sequence[str]) -> str:
    """Of peers that have the bundle and do not work yet."""
    return f"waits for the {'worker' if len(names) == 1 else 'workers'} of {', '.join(names)}"


def _search(event: events.PeersFound) -> str:
    missing = event.wanted - event.hired
    more = "one more" if missing == 1 else f"{missing} more"
    return f"{event.hired} of {plural(event.wanted, 'peer')} hired, looking for {more}"


def _after_any(shown: Shown, event: events.Event) -> Shown:
    match event:
        case events.JobSubmitted():
            kept = float(event.resumed_from_round)
            return Shown(doing="looking for peers", units=event.rounds, done=kept, kept=kept)
        case events.PeersFound() if shown.sent_at or event.hired:
            return replace(shown, search=_search(event))
        case events.PeerHired():
            hired = replace(shown, starting=(*shown.starting, event.peer), search="")
            return hired if shown.sent_at else replace(hired, doing="sending the bundle")
        case events.BundleSent():
            return replace(shown, sent_at=event.at)
        case events.RttMeasured() | events.Reserved() if shown.sent_at or shown.starting:
            return shown
        case events.PeersFound():
            return replace(shown, doing="measuring round-trip times")
        case events.RttMeasured():
            return replace(shown, doing="reserving peers")
        case events.PackagesResolved():
            return replace(shown, doing="looking for peers")
        case events.Reserved():
            return replace(shown, doing="asking peers for a slot")
        case events.BundleProgress():
            sent = f"{bytes_text(event.bytes)} sent, {bytes_text(event.member_bytes)} passed on"
            return replace(shown, doing=f"sending the bundle ({100 * event.fraction:.0f} %, {sent})")
        case events.PeerPaused():
            return replace(shown, paused={**shown.paused, event.peer: event.reason})
        case events.PeerResumed() | events.PeerLost():
            still = {name: reason for name, reason in shown.paused.items() if name != event.peer}
            shown = replace(shown, paused=still)
            return started(shown, event.peer) if isinstance(event, events.PeerLost) else shown
        case events.JobWaiting() | events.JobGoesOn():
            return replace(shown, waits=isinstance(event, events.JobWaiting))
    return shown


def standing_still(shown: Shown) -> str:
    """The peers that are paused and why, and whether the job waits for them; empty when none is."""
    if not shown.paused:
        return ""
    reasons = "   ".join(f"{name} paused: {reason}" for name, reason in sorted(shown.paused.items()))
    return f"the job waits: {reasons}" if shown.waits else reasons
