"""Attacks through open descriptors: those that it was given, and those that it could smuggle."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import struct
import sys

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack


def _channel() -> int:
    """The one descriptor, besides 0, 1 and 2, that every worker has."""
    return int(sys.argv[1])


_SO_PEERPIDFD = 77


@attack
def descriptor_folder(target: AttackTarget) -> str:
    """tries to open the daemon's files once more through /dev/fd and /proc/self/fd"""
    for folder in ("/dev/fd", "/proc/self/fd"):
        if os.path.exists(folder):
            return f"saw {os.listdir(folder)}"
    raise AttackHeld("there is no such folder")


@attack
def standard_input(target: AttackTarget) -> str:
    """tries to read what is typed to the daemon"""
    if not os.isatty(0) and not (select.select([0], [], [], 0)[0] and os.read(0, 1)):
        raise AttackHeld("there is nothing to read")
    return "reads it"


@attack
def log_read_back(target: AttackTarget) -> str:
    """tries to read the daemon's log through the pipe it writes to"""
    return f"read {os.read(1, 64)!r}"


@attack
def daemon_behind_the_channel(target: AttackTarget) -> str:
    """tries to learn from the channel who the daemon is"""
    with socket.socket(fileno=os.dup(_channel())) as channel:
        told = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _, _ = struct.unpack("3i", told)
    if pid:
        return f"learned that its number is {pid}"
    raise AttackHeld("the kernel does not say")


@attack
def handle_from_the_channel(target: AttackTarget) -> str:
    """tries to get hold of the daemon through the channel, and to signal it"""
    with socket.socket(fileno=os.dup(_channel())) as channel:
        handle = channel.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    signal.pidfd_send_signal(handle, 0)
    return "could have signalled it"


@attack
def signals_by_descriptor(target: AttackTarget) -> str:
    """tries to make the kernel signal the daemon whenever the channel is used"""
    fcntl.fcntl(_channel(), fcntl.F_SETOWN, target.pid)
    return "made the daemon the owner of the channel's signals"


@attack
def smuggled_descriptors(target: AttackTarget) -> str:
    """tries to keep files alive by sending their descriptors to itself without end"""
    one, other = socket.socketpair()
    with one, other:
        passed = array.array("i", [0] * 253)
        one.setblocking(False)
        sent = 0
        try:
            while sent < 2**20:
                one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
                sent += len(passed)
        except BlockingIOError as full:
            raise AttackHeld(f"the kernel took {sent} of them and no more") from full
        except OSError as error:
            raise AttackHeld(f"the kernel took {sent} of them and no more: {error.strerror}") from error
    return f"sent {sent} of them"
