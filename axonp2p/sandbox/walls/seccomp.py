"""The door to libseccomp: `syscalls` made into the program that the kernel runs before each call of a worker.

The system's own library by ctypes, and not a package: bubblewrap's users have it installed, and what PyPI has is no
longer kept (docs/decisions/0011). Only the few functions that are declared here are used.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from typing import IO

from axonp2p.errors import SandboxMissing
from axonp2p.sandbox.walls.syscalls import ABSENT, ALLOWED, GPU_ALLOWED, LIMITED, NEWEST_KNOWN, NUMBERS, REFUSED, names

LIBRARY = "libseccomp.so.2"
FIX = "sudo apt install libseccomp2 (or: sudo dnf install libseccomp)"

# From <seccomp.h>, where they are promised not to change.
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_BAD_ARCHITECTURE = 2  # SCMP_FLTATR_ACT_BADARCH
_MASKED_EQUAL = 7  # SCMP_CMP_MASKED_EQ
_ABSENT, _REFUSE = _ERRNO | errno.ENOSYS, _ERRNO | errno.EPERM


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp"""

    _fields_ = [
        ("position", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    ]


@functools.cache
def filter_program(*, gpu: bool = False) -> bytes:
    """The filter as the kernel takes it: 8 bytes an instruction. Made once a process, in a few milliseconds.

    `gpu`: with what CUDA asks of its driver.
    Raises `SandboxMissing` where libseccomp is not installed or cannot make it.
    """
    library = _library()
    context = library.seccomp_init(_REFUSE)
    if not context:
        raise SandboxMissing("libseccomp does not know this kind of processor", fix=FIX)
    try:
        # A 32-bit call, or one of x32, has other numbers: whoever makes one means to fool a list of names.
        _done(library.seccomp_attr_set(context, _BAD_ARCHITECTURE, _KILL_PROCESS), "the answer to other architectures")
        _add_rules(library, context, gpu)
        with open(os.memfd_create("filter"), "w+b", buffering=0) as file:
            _done(library.seccomp_export_bpf(context, file.fileno()), "the program")
            file.seek(0)
            return file.read()
    finally:
        library.seccomp_release(context)


def open_filter(*, gpu: bool = False) -> IO[bytes]:
    """The filter in a file in memory, to be read from its start by `bwrap --seccomp`. Raises `SandboxMissing`."""
    file = open(os.memfd_create("filter"), "w+b", buffering=0)  # noqa: SIM115  bubblewrap reads it
    file.write(filter_program(gpu=gpu))
    file.seek(0)
    return file


def known_calls() -> dict[int, str]:
    """Number -> name of each call that libseccomp knows on this kind of processor. Raises `SandboxMissing`."""
    library = _library()
    native = library.seccomp_arch_native()
    found: dict[int, str] = {}
    for number in range(NUMBERS):
        if place := library.seccomp_syscall_resolve_num_arch(native, number):
            found[number] = ctypes.string_at(place).decode()
            library.free(place)
    return found


def _add_rules(library: ctypes.CDLL, context: int, gpu: bool) -> None:
    def add(action: int, number: int, *compared: _Comparison) -> None:
        rules = (_Comparison * len(compared))(*compared)
        _done(library.seccomp_rule_add_array(context, action, number, len(compared), rules), f"call {number}")

    numbers = {name: number for number, name in known_calls().items()}
    # A name without a number does not exist on this kind of processor, or is newer than the library.
    for name in names(ALLOWED):
        if name in numbers:
            add(_ALLOW, numbers[name])
    for name in names(ABSENT):
        if name in numbers:
            add(_ABSENT, numbers[name])
    limited = [*LIMITED.items(), *(GPU_ALLOWED if gpu else ())]
    for name, argument in limited:
        for value in argument.values if name in numbers else ():
            add(_ALLOW, numbers[name], _Comparison(argument.position, _MASKED_EQUAL, argument.mask, value))
    thought_about = {*names(ALLOWED), *names(ABSENT), *names(REFUSED), *LIMITED}
    for number in set(range(NEWEST_KNOWN, NUMBERS)).difference(map(numbers.get, thought_about)):
        add(_ABSENT, number)


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise SandboxMissing(
            "libseccomp is not installed, and no stranger's code is run without a filter of system calls",
            cause=str(error),
            fix=FIX,
        ) from error
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int),
        *(ctypes.c_uint, ctypes.POINTER(_Comparison)),
    ]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_arch_native.restype = ctypes.c_uint32
    library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p
    library.seccomp_syscall_resolve_num_arch.argtypes = [ctypes.c_uint32, ctypes.c_int]
    library.free.argtypes = [ctypes.c_void_p]
    return library


def _done(result: int, what: str) -> None:
    if result < 0:
        raise SandboxMissing(f"libseccomp did not take {what}", cause=os.strerror(-result), fix=FIX)
