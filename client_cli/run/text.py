"""Copies of one command in words: how they stand, and what they came to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.errors import AxonError, CopiesFailed
from axonp2p.kinds.run.events import IndexFailed, JobResults
from axonp2p.plain_text import plural
from client_cli.run import lines
from client_cli.text.kind_text import Command, KindLines, KindText
from client_cli.text.result_text import done_text, end_of_results, failed_text, last_told, words_of_results


def _failure(event: JobFinished, told: Sequence[Event], command: Command) -> AxonError | None:
    """As `KindEnd` has it."""
    results = last_told(told, JobResults)
    if results is None or not results.failed:
        return None
    first = results.failed[0]
    why = next((one.reason for one in reversed(told) if isinstance(one, IndexFailed) and one.index == first), "")
    return CopiesFailed(
        f"{len(results.failed):,} of {plural(results.copies, 'copy')} failed: {lines.indices_text(results.failed)}",
        cause=f"copy {first}: {why}" if why else "",
        fix=command("logs", event.job, "--index", str(first)),
    )


def _facts(job: dict[str, Any]) -> dict[str, str]:
    return {"copies": done_text(job, job["copies"]), "command": job["spec"]["run"]["command"]}


TEXT = KindText(
    lines=KindLines(lines.stays, lines.stays_without_bar, lines.end, lines.bar),
    words=words_of_results("run", "copies their files, results.csv and logs into a folder."),
    end=end_of_results("run", JobResults, lines.results_text, lambda one: one.failed if one else [], _failure),
    facts=_facts,
    so_far=failed_text,
)
"""The text that a terminal shows of copies of one command."""
