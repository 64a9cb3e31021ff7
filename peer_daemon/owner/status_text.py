"""A peer's status, and its history, in lines for its owner's terminal. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from axonp2p.plain_text import columns, plural
from peer_daemon.control.status import (
    Carried,
    HappeningTold,
    HistoryTold,
    JobNow,
    LimitsNow,
    MachineNow,
    NetworkNow,
    Status,
)
from peer_daemon.page.headline import headline
from peer_daemon.page.words import credit, duration, mebibytes, proof

Local = Callable[[float], datetime]
"""From Unix seconds to what the clock on the wall shows."""

_REACHABLE = {"yes": "others can call it", "no": "others cannot call it", "unknown": "nobody has tried to call it yet"}


def local_time(at: float) -> datetime:
    """On this machine."""
    return datetime.fromtimestamp(at).astimezone()


def status_text(status: Status, local: Local) -> str:
    """All of it, a subject a line."""
    first = headline(status)
    state = f"{first.word}   since {when(status.since, status.now, local)}"
    if status.until is not None:
        state += f" until {when(status.until, status.now, local)}"
    rows = [(status.name, state), ("", first.sentence), *([("fix", first.fix)] if first.fix else [])]
    rows += [("job", _job_text(job)) for job in status.jobs]
    rows += [
        ("machine", _machine_text(status.machine)),
        *(("gpu", text) for text in status.machine.gpus),
        ("limits", f"{_size_text(status)}, {_when_text(status.limits)}"),
        ("credits", _credits_text(status)),
        *(("ledger", text) for text in _ledger_texts(status, local)),
        ("network", _network_text(status.network)),
    ]
    if status.page:
        rows.append(("page", f"{status.page}   (axon-peer page: with the token to change things)"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def state_sentence(status: Status) -> str:
    """ "READY: no job wants this machine now"."""
    first = headline(status)
    return f"{first.word}: {first.sentence}"


def paused_text(before: Status, after: Status, local: Local, *, resume: str) -> str:
    """The text about a pause, from the status before it and after it; `resume` is the command that ends it."""
    if after.state != "paused":
        return state_sentence(after)
    left = [job.job for job in after.jobs]
    ended = [job.job for job in before.jobs if job.job not in left]
    lasting = f" until {when(after.until, after.now, local)}" if after.until is not None else ""
    handed = f" {' and '.join(ended)} {'was' if len(ended) == 1 else 'were'} handed back." if ended else ""
    waits = f" Being handed back: {' and '.join(left)}." if left else ""
    return f"Paused{lasting}.{handed}{waits}   Resume: {resume}"


def finishing_text(status: Status, *, resume: str) -> str:
    """The text about a peer that was told to finish; `resume` is the command that takes the order back."""
    return f"{state_sentence(status)}.   {'Work on' if status.state == 'finishing' else 'Resume'}: {resume}"


def limits_text(status: Status) -> str:
    """Every limit with its option."""
    limits = status.limits
    rows = [
        ("--cores", f"{limits.cores}", f"of {status.machine.cores}, for each job"),
        ("--memory", mebibytes(limits.memory_mb), f"of {mebibytes(status.machine.memory_mb)}, for each job"),
        ("--disk", mebibytes(limits.disk_mb), "for each job"),
        ("--slots", f"{limits.slots}", "jobs at a time"),
        ("--hours", ", ".join(limits.hours) or "any", "local time"),
        ("--on-battery" if limits.on_battery else "--no-battery", "", _battery_text(limits)),
        ("--others-cpu", f"{limits.others_cpu} %", _others_text(limits)),
        ("--yield-to", ", ".join(limits.yield_to) or "none", "programs that have the machine for themselves"),
        ("--in-use" if limits.in_use_run else "--no-in-use", "", _in_use_text(limits)),
    ]
    names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:<{names}}  {value:<{values}}  {means}" for name, value, means in rows)


def when(at: float, now: float, local: Local) -> str:
    """The time of day, with the day when it is not today."""
    moment = local(at)
    return f"{moment:%H:%M}" if moment.date() == local(now).date() else f"{moment:%a %d %b %H:%M}"


def _job_text(job: JobNow) -> str:
    done = f"{plural(job.round, 'round')} accepted"
    frozen = ", paused until the machine is free" if job.frozen else ""
    used = f"{plural(job.cores, 'core')}, {mebibytes(job.memory_mb)} of {mebibytes(job.memory_limit_mb)}"
    gpu = f", {job.gpu}" if job.gpu else ""
    return f"{job.job} for {job.client}: {done}, {used}{gpu}{frozen}"


def _machine_text(machine: MachineNow) -> str:
    """As far as it tells."""
    told = [f"other programs use {machine.others_cpu_percent:.0f} % CPU"]
    if machine.memory_free_mb is not None:
        told.append(f"{mebibytes(machine.memory_free_mb)} memory free")
    if machine.standby_mb:
        told.append(f"{mebibytes(machine.standby_mb)} held by a worker that waits for the next job")
    if machine.temperature_c is not None:
        told.append(f"{machine.temperature_c:.0f} C")
    if machine.on_battery is not None:
        told.append("on battery" if machine.on_battery else "on the mains")
    return ", ".join(told)


def _size_text(status: Status) -> str:
    limits = status.limits
    jobs = "" if limits.slots == 1 else f", {limits.slots} jobs at a time, each"
    memory, disk = mebibytes(limits.memory_mb), mebibytes(limits.disk_mb)
    return f"{limits.cores} of {plural(status.machine.cores, 'core')}, {memory} memory, {disk} disk{jobs}"


def _when_text(limits: LimitsNow) -> str:
    return f"{', '.join(limits.hours) or 'at any hour'}, {_battery_text(limits)}, {_others_text(limits)}"


def _battery_text(limits: LimitsNow) -> str:
    return "also on battery" if limits.on_battery else "never on battery"


def _in_use_text(limits: LimitsNow) -> str:
    if not limits.in_use_run:
        return "never while somebody uses this machine"
    cores = f", on {plural(limits.in_use_cores, 'core')} then (--in-use-cores)" if limits.in_use_cores else ""
    return f"also while somebody uses this machine{cores}"


def _others_text(limits: LimitsNow) -> str:
    if limits.others_cpu >= 100:
        return "whatever other programs do"
    return f"while other programs use at most {limits.others_cpu} % of the CPU"


def _credits_text(status: Status) -> str:
    earned = status.credits
    return (
        f"{credit(earned.today)} today, {credit(earned.confirmed)} confirmed in all,"
        f" {credit(earned.pending)} wait for a tracker"
    )


def _ledger_texts(status: Status, local: Local) -> list[str]:
    """The outcomes of the last looks at trackers' logs, in words; none before the first."""
    ledger = status.ledger
    told = [f"{one.tracker} at {when(one.at, status.now, local)}: {proof(one)}" for one in ledger.logs]
    if ledger.silent:
        told.insert(0, f"nothing could be checked at {when(ledger.silent_at, status.now, local)}: {ledger.silent}")
    return told


def _network_text(network: NetworkNow) -> str:
    answering = sum(tracker.answers for tracker in network.trackers)
    found = f"{_REACHABLE[network.reachable]}, at {network.address}" if network.address else "nobody can find it"
    if network.relays:
        found += f", but reach it through {plural(len(network.relays), 'relay')} ({', '.join(network.relays)})"
    if network.router and network.reachable != "yes":
        found += f"; the router: {network.router}"
    known = f"{answering} of {plural(len(network.trackers), 'tracker')} answer, {network.dht_nodes} DHT nodes"
    return f"{found}; {known}{_carried_text(network.carried)}"


def _carried_text(carried: Carried | None) -> str:
    if carried is None:
        return ""
    if not carried.on:
        return "; a relay for others once they can call it"
    return f"; a relay for {plural(carried.peers, 'peer')}, {carried.bytes / 2**20:,.0f} MiB so far"


def history_text(told: HistoryTold, local: Local) -> str:
    """A line a stretch of time or happening, oldest first."""
    rows = [(span.began, duration(span.ended - span.began), span.state, span.sentence) for span in told.spans]
    rows += [(one.at, "", one.kind, _said(one)) for one in told.happenings]
    if not rows:
        return "Nothing was kept of that time."
    lines = [[f"{local(at):%a %d %b %H:%M}", long, what, said] for at, long, what, said in sorted(rows)]
    return columns(["when", "for", "what", "because"], lines, right=(1,))


def _said(one: HappeningTold) -> str:
    return one.sentence if one.job in one.sentence else f"{one.job}: {one.sentence}"
