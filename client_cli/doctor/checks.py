"""From what was found to what is wrong, and what mends it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axonp2p.errors import (
    DhtSilent,
    KeyFileUnsafe,
    LogForked,
    SandboxMissing,
    SettingsError,
    SwarmSplit,
)
from axonp2p.findings import Check, failed, ok, warn
from axonp2p.plain_text import mebibytes_text, plural
from axonp2p.sandbox.walls.diagnosis import FIXED_BY
from axonp2p.table.tracker_checks import tracker_checks
from client_cli.doctor.facts import ClientFacts, ClientMachineFacts, ClientTrackerFacts, DhtFacts, LogFacts

LITTLE_DISK_MB = 2048
LITTLE_MEMORY_MB = 2048
_SHOWN_NAMES = 4
_OF_TORCH = ("torch", "safetensors")
"""Libraries that a client which only submits can do without."""

_LET_UDP = (
    "let UDP out, and the answers in: sudo ufw allow out proto udp    (or the router's firewall);"
    " without it nothing is found once every tracker is dead"
)


def checks_of(facts: ClientFacts) -> list[Check]:
    """Every check, in the order in which people should read them."""
    answering = [tracker for tracker in facts.trackers if not tracker.trouble]
    found = [*_machine(facts.machine), *_trackers(facts)]
    if answering:
        found.append(_swarm(answering))
    found += _ledger(facts.logs)
    return [*found, *_dht(facts.dht, answering)]


def _machine(machine: ClientMachineFacts) -> Iterable[Check]:
    missing = [name for name, version in machine.versions.items() if not version]
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items() if version)
    if missing and {*missing} <= {*_OF_TORCH}:
        yield ok("versions", f'{versions}; no torch, which only axon check needs (pip install "axonp2p[torch]")')
    elif missing:
        fix = f"pip install {' '.join(missing)}"
        yield warn("versions", f"{versions}; missing: {', '.join(missing)}", fix)
    else:
        yield ok("versions", versions)
    if machine.key_trouble:
        yield failed("key", KeyFileUnsafe(machine.key_trouble, fix=machine.key_fix))
    room = f"{mebibytes_text(machine.memory_mb)} memory, {mebibytes_text(machine.disk_free_mb)} free at {machine.home}"
    if machine.disk_free_mb < LITTLE_DISK_MB or machine.memory_mb < LITTLE_MEMORY_MB:
        yield warn("room", room, f"make room, or name another folder with --home (now {machine.home})")
    else:
        yield ok("room", room)
    if machine.sandbox_trouble:
        cause, _, fix = machine.sandbox_trouble.partition(FIXED_BY)
        text = f"none can be had, so this computer can submit jobs but not lend itself ({cause})"
        yield warn("sandbox", text, fix, SandboxMissing.code)
    else:
        yield ok("sandbox", "a job can be locked up here")


def _trackers(facts: ClientFacts) -> Iterable[Check]:
    if facts.settings_trouble and facts.dht.known and not facts.trackers:
        yield warn("trackers", f"{facts.settings_trouble}; the DHT alone is asked", facts.settings_fix)
    elif facts.settings_trouble:
        yield failed("trackers", SettingsError(facts.settings_trouble, fix=facts.settings_fix))
    yield from tracker_checks(facts.trackers)


def _swarm(trackers: Sequence[ClientTrackerFacts]) -> Check:
    groups = groups_of(trackers)
    if len(groups) == 1:
        alive = max(tracker.alive for tracker in trackers)
        seen_by = "" if len(trackers) == 1 else f", the same at all {len(trackers)} trackers"
        if not alive:
            return warn("swarm", "no peer is known to any tracker", "lend a machine: axon-peer run")
        return ok("swarm", f"{plural(alive, 'peer')}{seen_by}")
    told = "; ".join(_group_text(group) for group in groups)
    return failed(
        "swarm",
        SwarmSplit(
            f"trackers see {len(groups)} different swarms: {told}",
            fix="let the trackers reach each other (there: axon-tracker status shows whom one lacks; a firewall between"
            " them, or a wrong public-address or trackers in its config.toml); until then name all: --tracker",
        ),
    )


def _group_text(group: Sequence[ClientTrackerFacts]) -> str:
    trackers = " and ".join(tracker.name for tracker in group)
    names = sorted({name for tracker in group for name in tracker.names.values()})
    some = ", ".join(names[:_SHOWN_NAMES]) + (" ..." if len(names) > _SHOWN_NAMES else "")
    count = max(tracker.alive for tracker in group)
    return f"{trackers}: {plural(count, 'peer')}{f' ({some})' if names else ''}"


def _ledger(logs: LogFacts) -> Iterable[Check]:
    if logs.trouble:
        yield warn("ledger", f"what was seen of the trackers' logs is lost: {logs.trouble}", logs.fix)
    for name, why in logs.false.items():
        fix = (
            f"believe its balances no more; the evidence is in {logs.kept}: show it to its operator, ask other trackers"
        )
        yield failed("ledger", LogForked(f"the log of tracker {name} is false: {why}", fix=fix))
    for name, why in logs.unproved.items():
        text = f"tracker {name} does not prove that its log continues what was seen of it: {why}"
        yield warn("ledger", text, "run this again; if it stays so, ask its operator for axon-tracker check")
    for name, (before, after) in logs.anew.items():
        if after < before:
            text = f"tracker {name} began a new log of {after:,} entries; the one before had {before:,}"
            yield warn("ledger", text, "nothing, if it was restored: the others hand over what it lacks")
    if logs.entries and not (logs.false or logs.unproved):
        told = ", ".join(f"{name} ({entries:,})" for name, entries in logs.entries.items())
        yield ok("ledger", f"every log continues what was seen of it before: {told}")


def _dht(dht: DhtFacts, trackers: Sequence[ClientTrackerFacts]) -> Iterable[Check]:
    if not dht.wanted:
        yield warn("dht", "switched off: nothing is found once every tracker is dead", "[client] dht = true")
    elif dht.trouble:
        yield failed("dht", DhtSilent(dht.trouble, fix="leave UDP sockets to this program"))
    elif not dht.known:
        if any(tracker.alive for tracker in trackers):
            text = "no peer is a DHT node that others can reach, yet: nothing is found once every tracker is dead"
            fix = "wait half a minute where peers have just come; else, on a peer: [peer] dht = true, and let UDP in"
            yield warn("dht", text, fix)
        else:
            yield ok("dht", "no node is known yet")
    elif not dht.answering:
        error = DhtSilent(f"none of {plural(dht.known, 'node')} answers over UDP", cause=_why_silent(dht), fix=_LET_UDP)
        yield failed("dht", error)
    else:
        yield ok("dht", f"{plural(dht.answering, 'node')} answered over UDP, {dht.known} known before")


def _why_silent(dht: DhtFacts) -> str:
    if dht.over_tcp:
        return "UDP is blocked: the same peers answer over TCP"
    if dht.over_tcp == 0:
        return "those peers do not answer over TCP either: they are gone, or nothing gets out of this network"
    return "UDP is blocked here, or all of them are gone"


FEW = 1
"""Peers that one tracker may lack: one that has just left, or was marked as silent there."""
SHARE = 0.1
"""The part of all peers that it may lack beside."""
ENOUGH_IN_COMMON = 5.0
"""With fewer expected in common, two samples say nothing; then only the numbers of peers are compared."""


def groups_of(trackers: Sequence[ClientTrackerFacts]) -> list[list[ClientTrackerFacts]]:
    """Trackers that see the same swarm stand together, the group that sees most peers first.

    A tracker shows at most 200 peers, a random part of a larger swarm. Where two showed all that they know, the sets
    are compared. Where they did not, two samples of one swarm have about |A| * |B| / size peers in common, and two
    halves of a split one have none.
    """
    groups: list[list[ClientTrackerFacts]] = []
    for tracker in trackers:
        alike = [group for group in groups if any(_see_the_same(tracker, other) for other in group)]
        groups = [group for group in groups if group not in alike]
        groups.append([tracker, *(other for group in alike for other in group)])
    for group in groups:
        group.sort(key=lambda tracker: tracker.name)
    return sorted(groups, key=lambda group: (-max(tracker.alive for tracker in group), group[0].name))


def _see_the_same(one: ClientTrackerFacts, other: ClientTrackerFacts) -> bool:
    shown_all = len(one.peers) >= one.alive and len(other.peers) >= other.alive
    if shown_all:
        return len(one.peers ^ other.peers) <= max(FEW, SHARE * len(one.peers | other.peers))
    size = max(one.alive, other.alive)
    expected = len(one.peers) * len(other.peers) / size
    if expected < ENOUGH_IN_COMMON:
        return min(one.alive, other.alive) >= (1 - 2 * SHARE) * size
    return len(one.peers & other.peers) >= expected / 4
