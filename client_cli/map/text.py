"""Calls of a function in words: how they stand, and what they came to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.errors import AxonError, CallsFailed
from axonp2p.kinds.map.events import CallFailed, CallsDone
from axonp2p.plain_text import plural
from client_cli.map import lines
from client_cli.text.kind_text import Command, KindLines, KindText
from client_cli.text.result_text import done_text, end_of_results, failed_text, last_told, words_of_results


def _failure(event: JobFinished, told: Sequence[Event], command: Command) -> AxonError | None:
    """As `KindEnd` has it."""
    results = last_told(told, CallsDone)
    if results is None or not results.failed:
        return None
    first = next((one for one in told if isinstance(one, CallFailed)), None)
    return CallsFailed(
        f"{results.failed:,} of {plural(results.done, 'call')} failed",
        cause=f"call {first.item}: {first.kind}: {first.message}" if first else "",
        fix=f"{command('fetch', event.job, '-o', 'OUT')}      (results.sqlite has the errors)",
    )


def _facts(job: dict[str, Any]) -> dict[str, str]:
    function = job["spec"]["map"].get("fn") or "calls of a program"
    return {"calls": done_text(job, job["items"]), "function": function}


TEXT = KindText(
    lines=KindLines(lines.stays, lines.stays_without_bar, lines.end, lines.bar, lines.again),
    words=words_of_results("map", "copies results.sqlite and logs into a folder."),
    end=end_of_results("map", CallsDone, lines.results_text, lambda one: one.failed if one else 0, _failure),
    facts=_facts,
    so_far=failed_text,
)
"""The text that a terminal shows of calls of a function."""
