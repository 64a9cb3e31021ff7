"""What the events of calls say: lines that stay, and what the bar shows meanwhile. Pure."""

from __future__ import annotations

from dataclasses import replace

from axonp2p.client.events import events
from axonp2p.kinds.map import events as map_events
from axonp2p.plain_text import plural
from client_cli.text.kind_text import Shown, started


def stays(event: events.Event) -> str:
    """As `KindLines` has it."""
    match event:
        case events.PeerLost():
            others = (
                f"The {plural(event.left, 'peer')} left continue." if event.left != 1 else "The peer left continues."
            )
            return f"{event.peer} left: {event.reason}. {others if event.left else 'No peer is left.'}"
        case events.PeerHandedBack():
            return f"{event.peer} is wanted back by its owner: {event.reason}"
        case map_events.ChunkCopied():
            return f"{_calls(event.first, event.calls)} are made at {event.peer} too: {event.slow_peer} is stuck"
        case map_events.PeerOutvoted():
            others = ", ".join(event.others)
            return f"warning: {event.peer} found something else than {others} in {_calls(event.first, event.calls)}"
        case map_events.ResultsDoubted():
            items = ", ".join(map(str, event.items))
            if event.taken:
                taken = plural(event.taken, "result")
                return f"warning: {taken} that only {event.peer} gave may be wrong, and were taken already ({items})"
            return f"{plural(event.again, 'call')} that only {event.peer} made are made again ({items})"
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
        done = f"{event.done:,} of {plural(event.items, 'call')} done"
        return f"{done}: {_calls(event.first, event.calls)} at {event.peer}"
    if isinstance(event, map_events.OpinionAwaited):
        return f"{_calls(event.first, event.calls)} of {event.peer} wait for a second opinion of another peer"
    return ""


def end(event: events.Event) -> str:
    """As `KindLines` has it."""
    match event:
        case map_events.CallsDone():
            return results_text(event)
        case events.JobFinished():
            return f"finished: {plural(event.rounds, 'call')} done"
        case events.JobPaused():
            because = f": {event.reason}" if event.reason else ""
            return f"paused after {plural(event.round, 'call')}{because}"
    return ""


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
            headline = ", ".join(filter(None, [f"{event.failed:,} failed" if event.failed else "", _awaited(event)]))
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


def _awaited(event: map_events.ChunkDone | map_events.OpinionAwaited) -> str:
    if not event.awaited:
        return ""
    return f"{event.awaited:,} {'waits' if event.awaited == 1 else 'wait'} for a second opinion"


def _calls(first: int, calls: int) -> str:
    """A chunk's calls mostly follow each other."""
    return f"call {first}" if calls == 1 else f"{calls:,} calls from {first} on"
