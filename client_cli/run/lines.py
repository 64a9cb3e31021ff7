"""The text about events of copies of one command: lines that stay, and the content of the bar meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from axonp2p.client.events import events
from axonp2p.kinds.run import events as run_events
from axonp2p.kinds.run.copy_ends import code_text
from axonp2p.plain_text import bytes_text, plural
from client_cli.text.kind_text import Shown, started
from client_cli.text.render import duration_text
from client_cli.text.result_text import last_line, left_line

MOST_TOLD = 32
"""With more copies, a good end has no line beside a bar."""
MOST_NAMED = 12
"""So many indices are named in one line."""


def stays(event: events.Event) -> str:
    """As `KindLines` has it."""
    match event:
        case events.PeerLost() | events.PeerHandedBack():
            return left_line(event)
        case run_events.CopyRetried():
            why = f": {event.reason}" if event.reason else ""
            return f"copy {event.index} begins again at {event.peer} (attempt {event.attempt + 1}){why}"
        case run_events.SpeculativeCopy():
            slow = f" as well: it is stuck at {event.slow_peer}" if event.slow_peer else " as well"
            return f"copy {event.index} is begun at {event.peer}{slow}"
        case run_events.CopyEnded() if event.code and not event.unneeded:
            why = f" ({event.reason})" if event.reason else ""
            ended = f"copy {event.index} ended with {code_text(event.code)} at {event.peer}"
            return f"{ended} after {duration_text(event.seconds)}{why}"
        case run_events.OutputsKept() if event.copies <= MOST_TOLD or event.left_out:
            return _kept(event)
        case run_events.IndexFailed():
            why = event.reason or code_text(event.code)
            return f"warning: copy {event.index} failed, its attempts are spent: {why} at {event.peer}"
        case run_events.ResultsDamaged():
            kept = f"{plural(event.done, 'result')} {'is' if event.done == 1 else 'are'} kept"
            return f"warning: results.csv was damaged (put aside as {event.file}): {kept}, the others are made again"
        case run_events.OutputsLost():
            return f"warning: files of results are not here, and are made again: {indices_text(event.indices)}"
    return ""


def stays_without_bar(event: events.Event) -> str:
    """As `KindLines` has it."""
    return _kept(event) if isinstance(event, run_events.OutputsKept) else ""


def end(event: events.Event) -> str:
    """As `KindLines` has it."""
    return results_text(event) if isinstance(event, run_events.JobResults) else last_line(event, "run")


def results_text(event: run_events.JobResults) -> str:
    """How many copies there were, and which of them failed."""
    failed = f", {len(event.failed):,} failed: {indices_text(event.failed)}" if event.failed else ", all ended well"
    return f"{plural(event.copies, 'copy')}{failed}"


def indices_text(indices: Sequence[int]) -> str:
    """[3, 5, 6] -> "3 5 6"; of very many, the first."""
    named = " ".join(map(str, indices[:MOST_NAMED]))
    return f"{named} ..." if len(indices) > MOST_NAMED else named


def bar(shown: Shown, event: events.Event) -> Shown:
    """As `KindLines` has it."""
    match event:
        case events.BundleSent():
            return replace(shown, doing="starting copies")
        case run_events.CopyBegun() | run_events.CopyRetried() | run_events.SpeculativeCopy():
            return _running(shown, event.peer, event.index)
        case run_events.CopyEnded():
            return _running(shown, event.peer, None)
        case events.PeerLost():
            return _running(shown, event.peer, None)
        case run_events.OutputsKept() | run_events.IndexFailed():
            failed = shown.failed + isinstance(event, run_events.IndexFailed)
            done = max(shown.done, float(event.done))
            headline = f"{failed:,} failed" if failed else ""
            counted = replace(shown, done=done, units=event.copies, failed=failed, headline=headline)
            return replace(counted, doing=_doing(counted))
        case events.JobFinished():
            return replace(shown, doing="done", done=float(event.rounds), runs={}, peers="")
    return shown


def _running(shown: Shown, peer: str, index: int | None) -> Shown:
    shown = started(shown, peer)
    if index is not None:
        shown = replace(shown, at_work=True)
    runs = {name: one for name, one in shown.runs.items() if name != peer}
    if index is not None:
        runs[peer] = index
    peers = "   ".join(f"{name} runs {one}" for name, one in sorted(runs.items()))
    return replace(shown, doing=_doing(shown), runs=runs, peers=peers)


def _doing(shown: Shown) -> str:
    return f"{shown.done:,.0f} of {shown.units:,} copies"


def _kept(event: run_events.OutputsKept) -> str:
    files = f", {plural(event.files, 'file')} of {bytes_text(event.bytes)}" if event.files else ""
    left = f"; {plural(event.left_out, 'file')} that fit too did not come" if event.left_out else ""
    return f"copy {event.index} is done at {event.peer}{files}: {event.done:,} of {event.copies:,}{left}"
