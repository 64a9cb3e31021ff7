"""Landlock: a worker gives up, for itself and all that it starts, every file but those that it needs.

A wall within the wall. The sandbox's mounts already show little; should a stranger's code find a way around them, the
kernel still asks Landlock for every file by what it is, not by where it appears. The first half decides which rights
there are on which paths inside; the second lays them on this process, before any of the job is read.

Each version of Landlock knows more rights; what the kernel's version does not know cannot be taken away, and where
there is none at all the mounts and the filter of system calls stand alone (`version` tells, for `axon-peer doctor`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from axonp2p.sandbox.gpu_access import LIBRARIES_INSIDE, OWN_MAPS, TOLD

NEWEST = 7
"""The newest version that this file knows rights of; version 7 added none, only words in the kernel's audit log."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _REMOVE_FOLDER, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DEVICE, _MAKE_FOLDER, _MAKE_FILE, _MAKE_SOCKET, _MAKE_PIPE, _MAKE_BLOCK, _MAKE_LINK = (
    1 << bit for bit in range(6, 13)
)
_REFER, _TRUNCATE, _IOCTL_DEVICE = (1 << bit for bit in range(13, 16))
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_ONE_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
"""The rights that mean something on a file that is no folder; the kernel refuses rules with others."""

_READ = _READ_FILE | _READ_FOLDER
_RUN = _READ | _EXECUTE
_CHANGE = (_READ | _WRITE_FILE | _TRUNCATE | _REFER | _REMOVE_FOLDER | _REMOVE_FILE) | (
    _MAKE_FOLDER | _MAKE_FILE | _MAKE_SOCKET | _MAKE_LINK
)

PLACES: dict[str, int] = {
    **dict.fromkeys(("/usr", "/lib", "/lib32", "/lib64", "/python", "/packages", "/axon", LIBRARIES_INSIDE), _RUN),
    **dict.fromkeys(("/job", "/blobs", "/data", "/etc", "/proc/cpuinfo", "/proc/meminfo", OWN_MAPS, *TOLD), _READ),
    # Nothing that was written inside is run as a program. Python's modules are read, so they are not meant.
    "/tmp": _CHANGE,  # noqa: S108
    **dict.fromkeys((f"/dev/{name}" for name in ("null", "full", "random", "urandom")), _READ | _WRITE_FILE),
}
"""Path inside -> rights; on all below it where it is a folder. Everything else is out of reach."""
_NO_CHANGE = _RUN | _IOCTL_DEVICE
"""The rights that leave files as they are."""
_GPU = _READ_FILE | _WRITE_FILE | _IOCTL_DEVICE
"""On the nodes of a GPU, and on no other device: all that is asked of a GPU is asked by ioctl."""


@dataclass(frozen=True)
class Handled:
    """The rights that are taken away unless a rule gives them: struct landlock_ruleset_attr."""

    files: int
    tcp: int
    scopes: int


def handled(version: int) -> Handled:
    """All that this version of Landlock can take away."""
    bits = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    return Handled(
        files=(1 << bits) - 1,
        tcp=_BIND_TCP | _CONNECT_TCP if version >= 4 else 0,
        scopes=_SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= 6 else 0,
    )


def rights(path: str, version: int, *, folder: bool, executes: bool = False) -> int:
    """The rights given on one of `PLACES`, as far as this version knows them and each means something there.

    `executes`: the job's own programs may be executed. They lie in /job, where nobody inside can change them.
    """
    given = PLACES[path] | (_EXECUTE if executes and path == "/job" else 0)
    return given & handled(version).files & (-1 if folder else _ONE_FILE)


def device_rights(version: int) -> int:
    """The rights given on a node of the worker's GPU."""
    return _GPU & handled(version).files


# --- from here on, the door to the kernel -----------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on all kinds of processor
_ASK_VERSION, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("descriptor", ctypes.c_int32)]


def version() -> int:
    """The version of this kernel's Landlock, as far as it is known here; 0 where there is none."""
    try:
        return min(_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION), NEWEST)
    except OSError as error:
        # Built without it, or switched off at boot.
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


def restrict_self(*, executes: bool, devices: Iterable[str] = ()) -> int:
    """Give up all files but `PLACES`, TCP, and signals to others; gives back `version()`, and 0 when nothing was done.

    `executes`: programs of /job may be executed. `devices`: the nodes of the worker's GPU. Counts for the thread that
    calls, and for threads and processes that it starts later. Raises `OSError`.
    """
    found = version()
    if found:
        places = {path: rights(path, found, folder=os.path.isdir(path), executes=executes) for path in PLACES}
        _restrict(handled(found), places | dict.fromkeys(devices, device_rights(found)))
    return found


def write_only_below(folder: str, devices: Iterable[str] = ()) -> int:
    """Give up changing any file but those below this folder, and devices; gives back and raises as `restrict_self`.

    `devices`: nodes of a GPU, as far as they are here.
    """
    found = version()
    if found:
        writing = handled(found).files & ~_NO_CHANGE
        places = (*(path for path in PLACES if path.startswith("/dev/")), *devices)
        _restrict(Handled(writing, 0, 0), {folder: writing, **dict.fromkeys(places, writing & _WRITE_FILE)})
    return found


def _restrict(taken: Handled, places: Mapping[str, int]) -> None:
    """Take these away, but for the rights on these paths."""
    ruleset = _Ruleset(taken.files, taken.tcp, taken.scopes)
    # Older versions take a longer struct as long as what they do not know is 0.
    rules = _call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0)
    try:
        for path, given in places.items():
            _allow(rules, path, given)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "cannot give up new privileges")
        _call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, given: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # not every system has each of them
    try:
        beneath = _Beneath(given, place)
        _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    # Each as wide as a register: the kernel would find rubbish in the upper half of a plain int.
    result: int = libc.syscall(
        *(ctypes.c_long(word) if isinstance(word, int) else word for word in (number, *arguments))
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result
