"""Makes, uses and removes the control groups that `cgroup` decides about, where this daemon may have any."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch import cgroup
from axonp2p.sandbox.watch.process_tree import descendants

_OWN = 1000
"""More processes than a daemon has before its first worker."""
_REMOVE_S = 2.0
"""How long an ended worker's group may take until it can be removed, in seconds."""


class WorkerGroup:
    """The control group of one worker."""

    def __init__(self, folder: Path, old: tuple[Path, ...] = (), *, holds_cores: bool = False) -> None:
        """`old` are groups of the old kind beside it, one for each controller that it lacks."""
        self.folder = folder
        self.holds_cores = holds_cores
        """Whether the kernel gives its processes no more than their cores."""
        self._old = old

    def take(self, pid: int) -> None:
        """Put a process into it; all that it starts stays in it. Raises `OSError`."""
        for folder in (self.folder, *self._old):
            _write(folder / "cgroup.procs", str(pid))

    def limit(self, limits: Limits) -> None:
        """Have the kernel hold its processes to other limits than before. Raises `OSError`."""
        for folder in (self.folder, *self._old):
            _limit(folder, limits)

    def kill(self) -> None:
        """End all its processes, and those that are being born, in one stroke; nothing before Linux 5.14."""
        with contextlib.suppress(OSError):
            _write(self.folder / "cgroup.kill", "1")

    def hasten_the_end(self) -> None:
        """Let its processes, which were just killed, end soon, though the machine is busy."""
        for folder in (self.folder, *self._old):
            with contextlib.suppress(OSError):  # it is gone
                for file, value in cgroup.haste(os.listdir(folder)).items():
                    _write(folder / file, value)

    def freeze(self, wish: bool) -> None:
        """Begin to freeze, or thaw, all its processes. Raises `OSError`."""
        _write(self.folder / "cgroup.freeze", "1" if wish else "0")

    def is_frozen(self) -> bool:
        """Whether all its processes stand still."""
        return bool(self._count("cgroup.events", "frozen"))

    def cpu_seconds(self) -> float:
        """Processor time of all that ever ran in it."""
        return self._count("cpu.stat", "usage_usec") / 1e6

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended processes of it because it was full."""
        return self._count("memory.events", "oom_kill") > 0

    def remove(self) -> None:
        """End what is left in it and remove it; waits a moment for the kernel."""
        self.kill()
        for folder in (self.folder, *self._old):
            _remove(folder)

    def _count(self, file: str, name: str) -> int:
        try:
            return cgroup.count((self.folder / file).read_text(encoding="ascii"), name)
        except OSError:
            return 0  # not in this kernel, or removed


class Territory:
    """The group below which this daemon may make others."""

    def __init__(self, folder: Path, enabled: tuple[str, ...], old: tuple[Path, ...] = ()) -> None:
        self.folder = folder
        self.old = old
        """Where groups of the old kind are made, for controllers that the new ones do not have."""
        self.enabled = enabled
        """The controllers that workers' groups have."""
        self._numbers = itertools.count(1)

    def group(self, limits: Limits) -> WorkerGroup | None:
        """A new group with these limits; None when the kernel does not give one any more."""
        name = cgroup.name_of(pid_namespace(), os.getpid(), next(self._numbers))
        made: list[Path] = []
        files: set[str] = set()
        for folder in (self.folder / name, *(above / name for above in self.old)):
            try:
                folder.mkdir()
                values = _limit(folder, limits)
            except OSError:
                WorkerGroup(folder).remove()
                if not made:
                    return None
                continue  # one of the old kind: the others hold without it
            made.append(folder)
            files.update(values)
        return WorkerGroup(made[0], tuple(made[1:]), holds_cores=cgroup.hold_cores(files))

    def remove_leftovers(self) -> None:
        """Remove the groups of daemons that are no more; those of other PID namespaces may live, unseen from here."""
        for above in (self.folder, *self.old):
            for folder in above.iterdir():
                daemon = cgroup.daemon_of(folder.name, pid_namespace())
                if daemon is not None and daemon != os.getpid() and not os.path.exists(f"/proc/{daemon}"):
                    WorkerGroup(folder).remove()


@cache
def own_territory() -> Territory | None:
    """This daemon's territory, claimed once, without what an earlier one left; None where it may have none."""
    folder = own_folder()
    return None if folder is None else claim(folder, old_folders())


def what_holds() -> str:
    """The means that hold workers to their limits if a daemon runs where this process does: a phrase for the owner."""
    folder = own_folder()
    claimed = None if folder is None else cgroup.claim(_look(folder))
    return cgroup.how_limits_hold(claimed.enable if claimed else ())


def pid_namespace() -> int:
    """Where process numbers mean what they mean here: the number of this PID namespace. Raises `OSError`."""
    return os.stat("/proc/self/ns/pid").st_ino


def own_folder() -> Path | None:
    """The folder of the group that this process runs in; None without cgroup v2."""
    own = cgroup.own_group(_read(Path("/proc/self/cgroup")))
    mounted = cgroup.mount_point(_read(Path("/proc/self/mountinfo")))
    if own is None or mounted is None:
        return None
    return _below(own, *mounted)


def old_folders() -> dict[str, Path]:
    """By controller, the folder of the old kind in which this process is, if it may make others below it."""
    own, mounts = _read(Path("/proc/self/cgroup")), _read(Path("/proc/self/mountinfo"))
    places = {name: found for name in cgroup.OLD if (found := cgroup.old_place(name, own, mounts))}
    folders = {name: _below(*place) for name, place in places.items()}
    return {name: folder for name, folder in folders.items() if folder is not None and os.access(folder, os.W_OK)}


def _below(own: str, root: str, folder: str) -> Path | None:
    inside = os.path.relpath(own, root)
    return None if inside.startswith("..") else Path(folder, inside)


def claim(folder: Path, old: Mapping[str, Path] | None = None) -> Territory | None:
    """Take the group at `folder`, in which this process runs, as a territory; None where that is not allowed.

    `old` has, by controller, the folders that are used where groups of the new kind lack that controller.
    """
    if folder.name == cgroup.DAEMON:  # claimed before, by a caller of this process
        folder = folder.parent
    claimed = cgroup.claim(_look(folder))
    if claimed is None:
        return None
    try:
        if claimed.move_daemon:
            (folder / cgroup.DAEMON).mkdir(exist_ok=True)
            for pid in _members(folder):
                _write(folder / cgroup.DAEMON / "cgroup.procs", str(pid))
        enabled = tuple(name for name in claimed.enable if _enable(folder, name))
        territory = Territory(folder, enabled, tuple(path for name, path in (old or {}).items() if name not in enabled))
        territory.remove_leftovers()
    except OSError:
        return None
    return territory


def _look(folder: Path) -> cgroup.GroupPlace:
    return cgroup.GroupPlace(
        writable=os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK),
        # Only the root group of the machine lacks this file.
        top=not (folder / "cgroup.type").exists(),
        others=len(set(_members(folder)).difference(descendants(os.getpid(), _OWN))),
        offered=frozenset(_read(folder / "cgroup.controllers").split()),
    )


def _limit(folder: Path, limits: Limits) -> Mapping[str, str]:
    values = cgroup.settings(limits, os.listdir(folder))
    for file, value in values.items():
        _write(folder / file, value)
    return values


def _remove(folder: Path) -> None:
    until = time.monotonic() + _REMOVE_S
    while folder.exists() and time.monotonic() < until:
        try:
            folder.rmdir()
        except OSError:  # the kernel has not cleared it yet
            time.sleep(0.01)


def _enable(folder: Path, controller: str) -> bool:
    try:
        _write(folder / "cgroup.subtree_control", f"+{controller}")
    except OSError:
        return False
    return True


def _members(folder: Path) -> list[int]:
    return [int(word) for word in _read(folder / "cgroup.procs").split()]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(file: Path, value: str) -> None:
    # Such files take one write, and are never made by it.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode("ascii"))
    finally:
        os.close(descriptor)
