"""The facts that people and programs are told about jobs, as data for JSON or as text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.lifecycle import JobState, is_over, seen_state
from axonp2p.plain_text import bytes_text, columns, plural
from client_cli.text.kind_text import text_of
from client_cli.text.render import credits_text, duration_text, pairs


def job_data(record: JobRecord, *, at_work: bool) -> dict[str, Any]:
    """The facts of a job; its state is the one that people see (`seen_state`)."""
    facts: dict[str, Any] = msgspec.to_builtins(record)
    facts |= {"kind": record.kind, "done": record.done, "units": record.units, "kept": record.kept}
    # Values that the job's next life needs, and nobody else.
    for name in ("ahead", "last", "unpaid", "receipts", "lives", "state_name", "bundle", "named_trackers"):
        facts.pop(name, None)
    facts["state"] = str(seen_state(record.state, at_work=at_work, waits=bool(record.waits_for)))
    return facts


def jobs_text(jobs: Sequence[dict[str, Any]], now: float) -> str:
    """A line a job. `now` is Unix time."""
    rows = [
        [
            job["id"],
            f"{job['state']} *" if told_text(job) else job["state"],
            f"{job['done']}/{job['units']} {units_name(job)}",
            text_of(job["kind"]).so_far(job) or "-",
            str(peers_count(job)),
            credits_text(sum(job["credits"].values())),
            f"{duration_text(max(0.0, now - job['created']))} ago",
        ]
        for job in jobs
    ]
    heads = ["job", "state", "done", "so far", "peers", "credits", "submitted"]
    if any("copy" in job for job in jobs):
        heads.append("copy")
        rows = [[*row, job.get("copy", "-")] for row, job in zip(rows, jobs, strict=True)]
    notes = {f"\n* {told}" for job in jobs if (told := told_text(job))}
    return columns(heads, rows, right=(4, 5, 6)) + "".join(sorted(notes))


def told_text(job: dict[str, Any]) -> str:
    """Which host said so last, where the job's state may have changed since; else empty."""
    if "hosted" not in job or is_over(JobState(job["state"])):
        return ""
    return f"as told by {job['hosted']}; axon jobs --hosted asks it now"


def units_name(job: dict[str, Any]) -> str:
    """The noun for its units of work, in the form that fits their number: "rounds", "copies"."""
    return plural(job["units"], text_of(job["kind"]).words.unit).partition(" ")[2]


def peers_count(job: dict[str, Any]) -> int:
    """Those that it had, or wants where it had none yet."""
    return len(job["peers"]) or int(job["peers_wanted"])


def status_text(job: dict[str, Any], command: Callable[..., str]) -> str:
    """Everything about one job, and the next command that makes sense; `command` spells one."""
    facts = {
        "job": job["id"],
        "state": _state(job),
        **text_of(job["kind"]).facts(job),
        "peers": "",
        "bytes": f"{bytes_text(job['wire_bytes'])} on the wire",
        "credits": credits_text(sum(job["credits"].values())),
        "tracker": job["tracker"],
        "host": job.get("hosted", ""),
        "copy": job.get("copy", ""),
        "from": job["folder"],
        "kept in": job["kept_in"],
    }
    lines = [pairs({name: value for name, value in facts.items() if value})]
    if job["peers"]:
        heads = ["peer", "rtt", "credits", ""]
        lines += ["", columns(heads, [_peer_row(peer, job) for peer in job["peers"]], right=(1, 2))]
    if job["error"]:
        lines += ["", f"error {job['error']['code']}: {job['error']['message']}"]
        lines += [f"{name}: {job['error'][name]}" for name in ("cause", "fix") if job["error"][name]]
    if next_command := _next(job, command):
        lines += ["", next_command]
    return "\n".join(lines)


def _state(job: dict[str, Any]) -> str:
    if job["state"] != JobState.WAITING:
        return str(job["state"])
    return f"waiting for {', '.join(job['waits_for'])}: it cannot continue without"


def _peer_row(peer: dict[str, Any], job: dict[str, Any]) -> list[str]:
    note = ""
    if peer["lost"]:
        note = f"left: {peer['lost']}"
    elif peer["paused"] and job["state"] in (JobState.RUNNING, JobState.WAITING):
        note = f"paused: {peer['paused']}"
    return [peer["name"], f"{peer['rtt_s'] * 1000:.1f} ms", credits_text(job["credits"].get(peer["name"], 0.0)), note]


def _next(job: dict[str, Any], command: Callable[..., str]) -> str:
    if job["state"] == "finished":
        return f"{text_of(job['kind']).words.result}: {command('fetch', job['id'], '-o', 'OUT')}"
    if job["state"] in (JobState.PAUSED, JobState.FAILED, JobState.INTERRUPTED):
        stop = f"   or end it with what is kept: {command('stop', job['id'])}" if job["kept"] else ""
        return f"continue: {command('resume', job['id'])}{stop}"
    if job["state"] == "cancelled" and job["kept"] and KINDS[job["kind"]].write_round:
        return f"the last that is kept: {command('fetch', job['id'], '--round', 'last', '-o', 'OUT')}"
    return ""
