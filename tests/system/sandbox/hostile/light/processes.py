"""Attacks on other processes, and on the rights and limits of its own."""

from __future__ import annotations

import os
import resource
import signal
import struct

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack
from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER
from tests.system.sandbox.hostile.light.kernel import ask

_CAPBSET_READ, _GET_NO_NEW_PRIVILEGES = 23, 39


@attack
def signal_to_the_group(target: AttackTarget) -> str:
    """tries to signal the daemon and all that it started, as a group"""
    os.killpg(target.pid, 0)
    return "could have signalled it"


@attack
def session_of_the_daemon(target: AttackTarget) -> str:
    """tries to share the daemon's session, and with it the terminal"""
    # The kernel calls a leader by 0 who is not to be seen from here.
    if os.getsid(0) == 0 or os.getpgid(0) == 0:
        return "is in a session or a group from outside"
    raise AttackHeld("its session is its own")


@attack
def terminal(target: AttackTarget) -> str:
    """tries to open the terminal from which the daemon was started"""
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return "opened it"


@attack
def handle_of_the_daemon(target: AttackTarget) -> str:
    """tries to get hold of the daemon by its number, for its open files"""
    os.close(os.pidfd_open(target.pid))
    return "holds it"


@attack
def priority_of_the_daemon(target: AttackTarget) -> str:
    """tries to slow the daemon down"""
    os.setpriority(os.PRIO_PROCESS, target.pid, 19)
    return "changed its priority"


@attack
def cores_of_the_daemon(target: AttackTarget) -> str:
    """tries to push the daemon to one core"""
    os.sched_setaffinity(target.pid, {0})
    return "changed its cores"


@attack
def limits_of_the_daemon(target: AttackTarget) -> str:
    """tries to change what the daemon may use"""
    resource.prlimit(target.pid, resource.RLIMIT_NOFILE)
    return "read its limits"


@attack
def become_root(target: AttackTarget) -> str:
    """tries to become root"""
    os.setuid(0)
    return f"is user {os.getuid()}"


@attack
def other_groups(target: AttackTarget) -> str:
    """tries to join the groups that may read disks and logs"""
    os.setgroups([0, 4, 6])
    return f"is in {os.getgroups()}"


@attack
def user_of_another_worker(target: AttackTarget) -> str:
    """tries to become the user as whom another worker runs, to signal it"""
    other = FIRST_USER + (os.getuid() + 1) % 2**24
    os.setresuid(other, other, other)
    return f"is user {os.getuid()}"


@attack
def rights_of_root(target: AttackTarget) -> str:
    """tries to take back the rights that root has"""
    data = struct.pack("6I", *(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) * 2)
    return ask("capset", struct.pack("=Ii", 0x20080522, 0), data)


@attack
def faster_than_others(target: AttackTarget) -> str:
    """tries to raise its own priority over that of the person's programs"""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(before, 0) - 1)
    return f"went from {before} to {os.getpriority(os.PRIO_PROCESS, 0)}"


@attack
def real_time(target: AttackTarget) -> str:
    """tries to be scheduled before everything else on the machine"""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "is scheduled first"


@attack
def higher_limits(target: AttackTarget) -> str:
    """tries to raise the limits that were laid on it"""
    for name in ("DATA", "NOFILE", "FSIZE", "CORE", "MEMLOCK", "NPROC", "CPU", "MSGQUEUE", "SIGPENDING", "RTPRIO"):
        what = getattr(resource, f"RLIMIT_{name}", None)
        if what is None:
            continue
        _, hard = resource.getrlimit(what)
        if hard == resource.RLIM_INFINITY:
            continue
        try:
            resource.setrlimit(what, (hard + 1, hard + 1))
        except (OSError, ValueError):
            continue
        return f"raised {name}"
    raise AttackHeld("none can be raised")


@attack
def core_dump(target: AttackTarget) -> str:
    """tries to fill the disk, and to run a program outside, by crashing with all its memory"""
    child = os.fork()
    if child == 0:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.abort()
    _, status = os.waitpid(child, 0)
    if os.WCOREDUMP(status):
        return "left a dump of its memory"
    raise AttackHeld("nothing was dumped")
