"""Asks the kernel without a library between, as an attacker would."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

from axonp2p.sandbox.attacks.attack import AttackHeld

# (on x86_64, on aarch64 and all newer machines); None where there is no such call.
NUMBERS: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "inotify_init1": (294, 26),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mlockall": (151, 230),
    "mmap": (9, 222),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "seccomp": (317, 277),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmget": (29, 194),
    "splice": (275, 76),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syncfs": (306, 267),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}

REFUSALS = (errno.EPERM, errno.ENOSYS, errno.EACCES)
"""What a kernel says that did not even begin; anything else shows that the call can be reached."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def ask(name: str, *arguments: int | bytes | None, refusals: tuple[int, ...] = REFUSALS) -> str:
    """Make that system call; at most 6 arguments. Raises `OSError` when it was refused, `AttackHeld` without it.

    Numbers are passed with all their 64 bits. An error that is no refusal counts as reached: it is told, not raised.
    """
    x86, others = NUMBERS[name]
    number = x86 if platform.machine() == "x86_64" else others
    if number is None:
        raise AttackHeld(f"{platform.machine()} has no such call")
    answer = syscall(number, *arguments)
    if answer >= 0:
        return f"{name} was allowed"
    error = -answer
    if error in refusals:
        raise OSError(error, os.strerror(error))
    return f"{name} got through to the kernel, which said: {os.strerror(error)}"


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """What the kernel answers; below zero an error's number."""
    passed = [ctypes.c_ulong(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    ctypes.set_errno(0)
    answer = int(_libc.syscall(ctypes.c_long(number), *passed))
    return answer if answer != -1 else -ctypes.get_errno()
