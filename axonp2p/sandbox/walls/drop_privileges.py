"""The first thing that a worker of root's does: it becomes a user whom nobody is, and gives up every right for ever.

    python -s -P -m axonp2p.sandbox.walls.drop_privileges USER MODULE ARGUMENT...

Linux does not hold root to a number of processes, and a user namespace does not change that: root in it is root
outside. So a daemon that runs as root builds the sandbox without one, and its worker takes the number of a user from a
range that nobody gives out. The kernel then counts the processes of this worker, and of nobody else.

Runs inside the sandbox, before anything of the job is there. Ends with code 1 when a right is left.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import runpy
import secrets
import struct
import sys

from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER, RANGE

_CAPBSET_DROP = 24
_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words for each set
_SETS = struct.Struct("6I")
_EMPTY = bytes(_SETS.size)


def choose_user() -> int | None:
    """The user that the next worker of this process becomes; None when this process is no root, and needs no such user.

    One of 16 million, so that no two workers of this machine have the same.
    """
    if os.geteuid() != 0 or not _has_all_users():
        return None
    while True:
        user = FIRST_USER + secrets.randbelow(~RANGE & 0xFFFFFFFF)
        try:
            pwd.getpwuid(user)
        except KeyError:
            return user


def _has_all_users() -> bool:
    """False in a container whose root is an ordinary user outside, and held as one."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        parts = [list(map(int, line.split())) for line in file]
    return any(
        inside <= FIRST_USER and inside + count > FIRST_USER + (~RANGE & 0xFFFFFFFF) for inside, _, count in parts
    )


def drop_privileges(user: int) -> None:
    """Become `user`, with a group of the same number and no other. Raises `OSError` when a right is left."""
    libc = ctypes.CDLL(None, use_errno=True)
    right = 0
    # The rights that a program on disk could give back; the kernel says no to the first number that is no right.
    while libc.prctl(_CAPBSET_DROP, ctypes.c_ulong(right), 0, 0, 0) == 0:
        right += 1
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    header = struct.pack("=Ii", _VERSION, 0)
    # The rights to be inherited stay; the others were taken with root.
    _done(libc.capset(header, _EMPTY))
    left = ctypes.create_string_buffer(_SETS.size)
    _done(libc.capget(header, left))
    if left.raw != _EMPTY or not right or {*os.getresuid(), *os.getresgid()} != {user} or os.getgroups():
        raise OSError(f"rights are left after becoming user {user}: {_SETS.unpack(left.raw)}")


def _done(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"cannot give up rights: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    drop_privileges(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
