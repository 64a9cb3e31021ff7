"""The text about events of calls: lines that stay, and the content of the bar meanwhile. Pure."""

from __future__ import annotations

from dataclasses import replace

from axonp2p.client.events import events
from axonp2p.kinds.map import events as map_events
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.kind_text import Shown, started
from client_cli.text.render import duration_text
from client_cli.text.result_text import last_line, left_line

SAID_EVERY_S = 10.0
"""Where no bar shows it, how many calls are done is said this often."""


def stays(event: events.Event) -> str:
    """As `KindLines` has it."""
    match event:
        case events.JobSubmitted(rounds=0):  # how many there are is in a file of the bundle, or comes from a program
            bundle = f"bundle {bytes_text(event.bundle_bytes)}"
            return f"submitted {event.job}: calls on up to {plural(event.peers, 'peer')}, {bundle}"
        case events.PeerLost() | events.PeerHandedBack():
            return left_line(event)
        case map_events.ChunkCopied():
            are = "is" if event.calls == 1 else "are"
            return f"{calls_text(event.first, event.calls)} {are} made at {event.peer} too: {event.slow_peer} is stuck"
        case map_events.PeerOutvoted():
            others = ", ".join(event.others)
            return f"warning: {event.peer} found something else than {others} in {calls_text(event.first, event.calls)}"
        case map_events.ResultsDoubted():
            items = ", ".join(map(str, event.items))
            if event.taken:
                taken = plural(event.taken, "result")
                return f"warning: {taken} that only {event.peer} gave may be wrong, and were taken already ({items})"
            are = "is" if event.again == 1 else "are"
            return f"{plural(event.again, 'call')} that only {event.peer} made {are} made again ({items})"
        case map_events.ChunkCrashed():
            return f"the process of call {event.item} ended at {event.peer}: {event.reason}"
        case map_events.CallFailed():
            return f"warning: call {event.item} failed at {event.peer}: {event.kind}: {event.message}"
        case map_events.PeerSetAside():
            return f"warning: {event.peer} gets no more calls: {event.reason}"
    return ""


def stays_without_bar(event: events.Event) -> str:
    """As `KindLines` has it."""
    if isinstance(event, map_events.ChunkDone):
        return progress_text(event)
    if isinstance(event, map_events.OpinionAwaited):
        wait = "waits" if event.calls == 1 else "wait"
        return f"{calls_text(event.first, event.calls)} of {event.peer} {wait} for a second opinion of another peer"
    return ""


def end(event: events.Event) -> str:
    """As `KindLines` has it."""
    return results_text(event) if isinstance(event, map_events.CallsDone) else last_line(event, "map")


def results_text(event: map_events.CallsDone) -> str:
    """How many calls there were, and how many of them failed."""
    of_all = f"{event.done:,} of " if event.done < event.items else ""
    of_all += plural(event.items, "call")
    return f"{of_all}, {event.failed:,} failed" if event.failed else f"{of_all}, none failed"


def bar(shown: Shown, event: events.Event) -> Shown:
    """As `KindLines` has it."""
    match event:
        case events.BundleSent():
            return replace(shown, doing="starting calls")
        case map_events.ChunkDone():
            counted = replace(started(shown, event.peer), at_work=True, done=float(event.done), units=event.items)
            left = [_to_go(event, shown.kept, shown.sent_at)] if event.done < event.items else []
            headline = ", ".join(part for part in (*left, _failed(event.failed), _awaited(event)) if part)
            doing = f"{event.done:,} of {event.items:,} calls"
            return replace(counted, failed=event.failed, headline=headline, doing=doing)
        case map_events.OpinionAwaited():
            failed = f"{shown.failed:,} failed" if shown.failed else ""
            return replace(shown, headline=", ".join(filter(None, [failed, _awaited(event)])))
        case events.PeerLost():
            return started(shown, event.peer)
        case events.JobFinished():
            return replace(shown, doing="done", done=float(event.rounds), runs={}, peers="")
    return shown


def again(before: events.Event, event: events.Event) -> str | None:
    """As `KindLines` has it: of chunks that are done a line every 10 seconds, and of the last one."""
    if not isinstance(before, map_events.ChunkDone) or not isinstance(event, map_events.ChunkDone):
        return None
    if event.done >= event.items:
        return progress_text(event)
    if event.at - before.at < SAID_EVERY_S:
        return ""
    return progress_text(event, _to_go(event, before.done, before.at))


def progress_text(event: map_events.ChunkDone, to_go: str = "") -> str:
    """How many calls are done."""
    told = [f"{event.done:,} of {plural(event.items, 'call')} done", _failed(event.failed), to_go]
    return ", ".join(part for part in told if part)


def _to_go(event: map_events.ChunkDone, done_before: float, since: float) -> str:
    """By what was done since a moment, in Unix time."""
    done, took = event.done - done_before, event.at - since
    if not since or done <= 0 or took <= 0:
        return ""
    return f"about {duration_text((event.items - event.done) * took / done)} to go"


def _failed(failed: int) -> str:
    return f"{failed:,} failed" if failed else ""


def _awaited(event: map_events.ChunkDone | map_events.OpinionAwaited) -> str:
    if not event.awaited:
        return ""
    return f"{event.awaited:,} {'waits' if event.awaited == 1 else 'wait'} for a second opinion"


def calls_text(first: int, calls: int) -> str:
    """Which ones: a chunk's calls mostly follow each other."""
    return f"call {first}" if calls == 1 else f"{calls:,} calls from {first} on"
