"""Groups of a daemon: in a tree of plain files that looks like the kernel's, and in the kernel's where we may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch import cgroup
from axonp2p.sandbox.watch.freezer import Freezer
from axonp2p.sandbox.watch.worker_group import WorkerGroup, claim, own_folder, pid_namespace, what_holds

LIMITS = Limits(cores=1, memory_mb=100, scratch_mb=10)


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    """The group of a unit, as files; only this process is in it."""
    for name, content in {
        "cgroup.type": "domain\n",
        "cgroup.procs": f"{os.getpid()}\n",
        "cgroup.controllers": "cpu io memory pids\n",
        "cgroup.subtree_control": "",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / cgroup.DAEMON).mkdir()
    (tmp_path / cgroup.DAEMON / "cgroup.procs").write_text("")
    return tmp_path


def test_the_daemon_moves_down_and_switches_controllers_on(delegated: Path) -> None:
    territory = claim(delegated)
    assert territory is not None
    assert territory.enabled == cgroup.WANTED
    assert (delegated / cgroup.DAEMON / "cgroup.procs").read_text() == str(os.getpid())
    group = territory.group(LIMITS)
    assert group is not None
    assert group.folder.parent == delegated
    assert cgroup.daemon_of(group.folder.name, pid_namespace()) == os.getpid()


def test_a_group_with_other_programs_is_not_taken(delegated: Path) -> None:
    (delegated / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    assert claim(delegated) is None
    assert (delegated / cgroup.DAEMON / "cgroup.procs").read_text() == ""


def test_a_folder_that_is_no_group_is_not_taken(tmp_path: Path) -> None:
    assert claim(tmp_path) is None


def test_groups_of_a_daemon_that_is_no_more_are_removed_and_those_of_living_ones_kept(delegated: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    left = delegated / cgroup.name_of(pid_namespace(), ended.pid, 1)
    living = delegated / cgroup.name_of(pid_namespace(), os.getppid(), 1)
    left.mkdir()
    living.mkdir()
    assert claim(delegated) is not None
    assert not left.exists()
    assert living.exists()


def test_groups_of_another_containers_daemons_are_left_alone(delegated: Path) -> None:
    """Their process numbers say nothing here: no such process, or another one."""
    elsewhere = pid_namespace() + 1
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    theirs = [delegated / cgroup.name_of(elsewhere, pid, 1) for pid in (ended.pid, os.getpid())]
    for folder in theirs:
        folder.mkdir()
    territory = claim(delegated)
    assert territory is not None
    assert territory.group(LIMITS) is not None
    assert all(folder.exists() for folder in theirs)


def test_what_happened_in_a_group_is_read_from_its_files(tmp_path: Path) -> None:
    group = WorkerGroup(tmp_path)
    assert not group.ran_out_of_memory()
    assert group.cpu_seconds() == 0.0
    (tmp_path / "memory.events").write_text("max 9\noom_kill 1\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    assert group.ran_out_of_memory()
    assert group.cpu_seconds() == 2.5
    assert group.is_frozen()


def test_haste_is_written_wherever_the_group_has_such_files(tmp_path: Path) -> None:
    new, old, gone = tmp_path / "new", tmp_path / "old", tmp_path / "gone"
    for folder, files in ((new, {"cpu.idle": "1", "cpu.stat": "-"}), (old, {"cpu.shares": "15", "tasks": "-"})):
        folder.mkdir()
        for name, value in files.items():
            (folder / name).write_text(value)
    WorkerGroup(new, (old,)).hasten_the_end()
    WorkerGroup(gone).hasten_the_end()  # the kernel was faster
    found = {file.name: file.read_text() for folder in (new, old) for file in folder.iterdir()}
    assert found == {"cpu.idle": "0", "cpu.stat": "-", "cpu.shares": "262144", "tasks": "-"}
    assert not gone.exists()


def test_doctor_is_told_one_of_two_phrases() -> None:
    assert what_holds() in {cgroup.how_limits_hold(()), cgroup.how_limits_hold(cgroup.WANTED)}


@pytest.fixture
def real() -> Iterator[WorkerGroup]:
    """A group of the kernel's."""
    folder = own_folder()
    territory = None if folder is None or (folder / "cgroup.type").exists() else claim(folder)
    group = territory.group(LIMITS) if territory else None
    if group is None:
        pytest.skip("no cgroup v2 here in which this user may make groups without moving this process")
    yield group
    group.remove()
    assert not group.folder.exists()


def test_the_kernel_freezes_thaws_counts_and_ends_a_group(real: WorkerGroup) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as busy:
        real.take(busy.pid)
        freezer = Freezer(busy.pid, 10, real, lambda: pytest.fail("nobody evades"))
        freezer.freeze()
        assert real.is_frozen()
        used = real.cpu_seconds()
        assert real.cpu_seconds() == used
        freezer.thaw()
        while real.cpu_seconds() <= used:
            pass
        freezer.freeze()
        real.remove()
        assert busy.wait() == -9
