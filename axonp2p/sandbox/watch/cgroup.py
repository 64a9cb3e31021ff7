"""The limits that the kernel's control groups can hold for us, and which values they get. Decides only.

Those of the new kind (v2) are used where there are any. A controller that they lack may be mounted in the old way (v1),
in a tree of its own, where root may make groups.

A group counts everything: pages of tmpfs, socket buffers, children that nobody waited for. A daemon gets groups of its
own where systemd delegates its unit to it (`Delegate=yes`), or as root. `worker_group` makes and removes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.sandbox.limits import MIB, Limits, Priority, kernel_task_limit

WANTED = ("memory", "pids", "cpu", "io")
DAEMON = "axon-daemon"
"""The daemon's own group, below the one that was delegated: a group with groups below it may hold no processes."""
_WORKER = "axon-worker-"
_KERNEL_MB = 32
"""MiB that a group may hold beside memory and /tmp: stacks, page tables and buffers of the kernel."""
_PERIOD_US = 100_000


@dataclass(frozen=True)
class GroupPlace:
    """The findings at the group that the daemon runs in."""

    writable: bool
    """Groups can be made below it."""
    top: bool
    """It is the machine's root group, which holds processes and groups alike."""
    others: int
    """Processes in it that are not the daemon's."""
    offered: frozenset[str]
    """Controllers that groups below it may be given."""


@dataclass(frozen=True)
class GroupClaim:
    """How the daemon gets groups of its own."""

    move_daemon: bool
    """Into a group `DAEMON` below the present one, first."""
    enable: tuple[str, ...]
    """Controllers to switch on for the groups below."""


def claim(place: GroupPlace) -> GroupClaim | None:
    """How to get groups there; None where there are none to be had."""
    if not place.writable or (place.others and not place.top):
        return None
    return GroupClaim(not place.top, tuple(name for name in WANTED if name in place.offered))


def settings(limits: Limits, there: Collection[str]) -> dict[str, str]:
    """Value by file for a worker's group; `there` are the names of files that it has."""
    wanted = {
        "memory.max": str((limits.memory_mb + limits.scratch_mb + _KERNEL_MB) * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(kernel_task_limit(limits.processes, limits.cores)),
        "cpu.max": f"{limits.cores * _PERIOD_US} {_PERIOD_US}",
        "cpu.cfs_period_us": str(_PERIOD_US),  # the old kind, which takes them in this order
        "cpu.cfs_quota_us": str(limits.cores * _PERIOD_US),
        **_share(limits.priority, there),
    }
    return {name: value for name, value in wanted.items() if name in there}


def _share(priority: Priority, there: Collection[str]) -> dict[str, str]:
    if priority == "normal":
        return {}
    if priority == "low":
        # Of 100, and in the old kind of 1024.
        return {"cpu.weight": "10", "cpu.shares": "102", "io.weight": "default 10"}
    # An idle group has no weight that could be set.
    # The old kind weighs as much as a lowered session does (`priority`): idle groups starve on a busy machine.
    idle = "cpu.idle" in there and "cpu.shares" not in there
    return {**({"cpu.idle": "1"} if idle else {"cpu.weight": "1"}), "cpu.shares": "15", "io.weight": "default 1"}


def haste(there: Collection[str]) -> dict[str, str]:
    """Value by file for a group whose processes were killed: what they still do comes before all else.

    Whatever priority a process has, its group stands behind all others by its own share.
    """
    wanted = {
        "cpu.idle": "0",
        "cpu.weight": "10000",
        "cpu.shares": "262144",
        "cpu.max": "max",
        "cpu.cfs_quota_us": "-1",
    }
    return {name: value for name, value in wanted.items() if name in there}


def hold_cores(there: Collection[str]) -> bool:
    """Whether groups with files of these names hold workers to their cores."""
    return bool({"cpu.max", "cpu.cfs_quota_us"} & set(there))


def how_limits_hold(enabled: Collection[str]) -> str:
    """One phrase for the owner; `enabled` are the controllers that workers' groups have."""
    if {"memory", "pids"} <= set(enabled):
        return "memory and processes are held by the kernel's control groups"
    return "memory and processes are held by limits of each process and a watch ten times a second"


def own_group(proc_self_cgroup: str) -> str | None:
    """The path of a process's group in the v2 hierarchy, from /proc/PID/cgroup; None where there is none."""
    for line in proc_self_cgroup.splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def mount_point(mountinfo: str) -> tuple[str, str] | None:
    """(root, folder): which part of the v2 hierarchy is mounted and where, from /proc/PID/mountinfo."""
    return _mounted(mountinfo, "cgroup2", "")


OLD = ("pids", "cpu")
"""Controllers of the old kind that are of use. No other limit of root's processes is held by the kernel than the first,
and none of cores than the second."""


def old_place(controller: str, proc_self_cgroup: str, mountinfo: str) -> tuple[str, str, str] | None:
    """(group, root, folder) of a process in the old tree of a controller; None where there is none."""
    lines = [line.split(":", 2) for line in proc_self_cgroup.splitlines()]
    own = next((words[2] for words in lines if controller in words[1].split(",")), None)
    mounted = _mounted(mountinfo, "cgroup", controller)
    return None if own is None or mounted is None else (own, *mounted)


def _mounted(mountinfo: str, kind: str, option: str) -> tuple[str, str] | None:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words = after.split()
        if words[:1] == [kind] and (not option or option in words[-1].split(",")):
            fields = before.split()
            return fields[3], fields[4]
    return None


def name_of(namespace: int, daemon: int, number: int) -> str:
    """The name of a worker's group: that of the daemon with that process number, which counts its workers.

    `namespace` is where that number holds: daemons of two containers may have the same one, and the same groups above.
    """
    return f"{_WORKER}{namespace}-{daemon}-{number}"


def daemon_of(name: str, namespace: int) -> int | None:
    """The daemon whose worker's group that is, by process number; None for a name not ours, or of another namespace."""
    words = name.removeprefix(_WORKER).split("-")
    if not name.startswith(_WORKER) or len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    return int(words[1]) if int(words[0]) == namespace else None


def count(events: str, name: str) -> int:
    """A number from a file of lines "name number", such as memory.events; 0 when it is not there."""
    return next((int(line.split()[1]) for line in events.splitlines() if line.split()[:1] == [name]), 0)
