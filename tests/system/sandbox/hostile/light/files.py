"""Attacks on files: what a job may not read, and where it may not write."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack
from tests.system.sandbox.hostile.light.outside import neighbour

_SCRATCH = Path("/tmp")


def _read(path: str | Path) -> str:
    with open(path, "rb") as file:
        return f"read {len(file.read(4096))} bytes of {path}"


def _write(path: str | Path) -> str:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    os.close(descriptor)
    return f"could have written to {path}"


@attack
def password_file(target: AttackTarget) -> str:
    """tries to read the passwords of this machine in /etc/shadow"""
    return _read("/etc/shadow")


@attack
def other_job(target: AttackTarget) -> str:
    """tries to look into the folder of another job"""
    return f"saw {os.listdir(neighbour(target))}"


@attack
def out_of_the_job_folder(target: AttackTarget) -> str:
    """tries to climb out of its own folder with /job/../.."""
    return f"saw {os.listdir('/job/../neighbour')}"


@attack
def link_to_the_outside(target: AttackTarget) -> str:
    """tries to read a file outside through a symbolic link of its own"""
    link = _SCRATCH / "link-out"
    link.symlink_to(target.secret)
    try:
        return _read(link)
    finally:
        link.unlink()


@attack
def hard_link(target: AttackTarget) -> str:
    """tries to give a file of the system a second name in its own folder"""
    os.link(sys.executable, _SCRATCH / "hard-link")
    return f"linked {sys.executable}"


@attack
def link_into_the_job_folder(target: AttackTarget) -> str:
    """tries to write into its job's folder through a symbolic link"""
    link = _SCRATCH / "link-job"
    link.symlink_to("/job/left-behind")
    try:
        return _write(link)
    finally:
        link.unlink()


@attack
def axon_itself(target: AttackTarget) -> str:
    """tries to change Axon's own code"""
    return _write("/axon/axonp2p/sandbox/inside.py")


@attack
def packages(target: AttackTarget) -> str:
    """tries to put a module among the installed packages"""
    folders = [path for path in sys.path if path.startswith(("/packages", "/usr", "/python"))]
    refused: OSError | None = None
    for folder in folders:
        try:
            return _write(f"{folder}/left_behind.py")
        except OSError as error:
            refused = error
    raise refused or AttackHeld("there are no packages")


@attack
def compiled_module(target: AttackTarget) -> str:
    """tries to replace the compiled form of a module that the daemon loads too"""
    cached = attack.__code__.co_filename
    folder = os.path.dirname(cached) + "/__pycache__"
    os.makedirs(folder, exist_ok=True)
    return _write(f"{folder}/left_behind.pyc")


@attack
def loader_cache(target: AttackTarget) -> str:
    """tries to change where programs find their libraries"""
    return _write("/etc/ld.so.cache")


@attack
def user_list(target: AttackTarget) -> str:
    """tries to change the list of users"""
    return _write("/etc/passwd")


@attack
def root_folder(target: AttackTarget) -> str:
    """tries to make a folder beside the others in the root, whose size nobody limits"""
    os.mkdir("/left-behind")
    return "made /left-behind"


@attack
def device_folder(target: AttackTarget) -> str:
    """tries to fill /dev, which is memory"""
    return _write("/dev/left-behind")


@attack
def owner_of_a_file(target: AttackTarget) -> str:
    """tries to take a library over, or to change its rights"""
    try:
        os.chmod(os.__file__, 0o777)
    except OSError:
        os.chown(os.__file__, os.getuid(), os.getgid())
    return f"changed {os.__file__}"


@attack
def times_of_a_file(target: AttackTarget) -> str:
    """tries to change the times of a library, so that caches are made anew"""
    os.utime(os.__file__)
    return f"changed the times of {os.__file__}"


@attack
def reading_turned_to_writing(target: AttackTarget) -> str:
    """tries to shorten a file that was opened for reading"""
    descriptor = os.open("/job", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchmod(descriptor, 0o777)
    finally:
        os.close(descriptor)
    return "changed the rights of its job's folder through an open descriptor"


@attack
def device_node(target: AttackTarget) -> str:
    """tries to make a device of its own that is the machine's memory"""
    os.mknod(_SCRATCH / "mem", stat.S_IFCHR | 0o666, os.makedev(1, 1))
    return "made a device"


@attack
def disk_node(target: AttackTarget) -> str:
    """tries to make a device of its own that is the machine's disk"""
    for major in (8, 254, 259):
        os.mknod(_SCRATCH / f"disk{major}", stat.S_IFBLK | 0o666, os.makedev(major, 0))
    return "made a device"


@attack
def own_setuid_program(target: AttackTarget) -> str:
    """tries to leave a program behind that gives its owner's rights to who runs it"""
    program = _SCRATCH / "setuid"
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o4755)
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        raise AttackHeld("such rights mean nothing in /tmp")
    return "made a setuid program"


@attack
def setuid_programs(target: AttackTarget) -> str:
    """tries to become root with su, sudo, mount and their kind"""
    folders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"]
    found = [f"{folder}/{name}" for folder in folders for name in _RISERS if os.path.exists(f"{folder}/{name}")]
    found += [path for path in _setuid_helpers() if not os.statvfs(path).f_flag & os.ST_NOSUID]
    if found:
        return f"found {', '.join(found[:4])}"
    raise AttackHeld("no such program is here, or its rights mean nothing")


_RISERS = ("su", "sudo", "mount", "umount", "passwd", "newgrp", "pkexec", "fusermount3", "newuidmap", "doas", "bwrap")


def _setuid_helpers() -> list[str]:
    """Programs among the libraries that run with their owner's rights."""
    folders = ("openssh", "dbus-1.0", "polkit-1", "policykit-1", "eject", "xorg", "snapd", "chromium")
    found = []
    for folder in folders:
        for base, _, names in os.walk(f"/usr/lib/{folder}"):
            paths = (os.path.join(base, name) for name in names)
            found += [path for path in paths if not os.path.islink(path) and os.stat(path).st_mode & stat.S_ISUID]
    return found
