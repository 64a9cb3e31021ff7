"""Attacks by system calls that training never needs. Each must be refused before the kernel looks at its arguments.

The arguments are such that a call does no harm, or only to the sandbox, where it is not refused.
"""

from __future__ import annotations

import errno

from axonp2p.sandbox.attacks.attack import Attack, AttackTarget
from tests.system.sandbox.hostile.light.kernel import REFUSALS, ask

_NEW_USER, _NEW_MOUNTS, _NEW_NETWORK, _NEW_PIDS = 0x10000000, 0x20000, 0x40000000, 0x20000000
_NO_ROOM = (*REFUSALS, errno.ENOSPC)
"""A sandbox that was told to allow no more of them says so with an error of its own."""
_NOT_THERE = (*REFUSALS, errno.ENOENT)
_TYPE, _PASTE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX
_HUGE = 0x40000 | 0x20 | 0x2  # MAP_HUGETLB, MAP_ANONYMOUS, MAP_PRIVATE
_HIGH = 0xDEAD << 32
"""Bits that the kernel ignores and a filter may trip over."""


def _asks(
    attack: str, tries: str, call: str, *arguments: int | bytes | None, refusals: tuple[int, ...] = REFUSALS
) -> Attack:
    def how(target: AttackTarget) -> str:
        return ask(call, *arguments, refusals=refusals)

    return Attack(attack, f"tries to {tries}", how)


ATTACKS = (
    # Folders
    _asks("chroot", "choose another root folder, a step out of this one", "chroot", b"/tmp"),
    _asks("pivot-root", "swap the root folder", "pivot_root", b"/tmp", b"/tmp"),
    _asks("mount", "mount a filesystem over its own", "mount", b"none", b"/tmp", b"tmpfs", 0, None),
    _asks("mount-proc", "mount /proc, which it was not given", "mount", b"proc", b"/tmp", b"proc", 0, None),
    _asks("bind", "make its job's folder writable by a second mount", "mount", b"/job", b"/tmp", None, 0x1000, None),
    _asks("remount", "make all folders writable", "mount", b"none", b"/job", None, 0x20 | 0x1000, None),
    _asks("unmount", "take a mount away, to see what lies below", "umount2", b"/job", 2),
    _asks("fsopen", "mount in the newer way", "fsopen", b"tmpfs", 0),
    _asks("open-tree", "copy a mount", "open_tree", 2**64 - 100, b"/job", 1),
    _asks("move-mount", "move a mount", "move_mount", 2**64 - 100, b"/job", 2**64 - 100, b"/tmp", 0),
    _asks("mount-setattr", "make a mount writable", "mount_setattr", 2**64 - 100, b"/job", 0, None, 0),
    _asks("file-handle", "open a file by its number on the disk", "open_by_handle_at", 0, None, 0),
    _asks("file-handle-name", "learn a file's number on the disk", "name_to_handle_at", 0, b"/job", None, None, 0),
    _asks("watch-files", "watch which programs and libraries the person uses", "inotify_init1", 0),
    _asks("watch-filesystem", "watch all of a filesystem", "fanotify_init", 0, 0),
    _asks("quota", "change disk quotas", "quotactl", 0x800003 << 8, b"/dev/vda", 0, None),
    # Namespaces
    _asks("new-mounts", "make a mount namespace of its own", "unshare", _NEW_MOUNTS),
    _asks("new-network", "make a network namespace of its own", "unshare", _NEW_NETWORK),
    _asks("clone-user", "start a child that is root", "clone", _NEW_USER | 17, 0, 0, 0, 0, refusals=_NO_ROOM),
    _asks("clone-pids", "start a child that cannot be counted", "clone", _NEW_PIDS | 17, 0, 0, 0, 0),
    _asks("clone3", "start a child by a call whose arguments no filter can see", "clone3", None, 0),
    _asks("enter-namespace", "enter the namespaces of another process", "setns", 0, 0),
    # Other processes
    _asks("trace", "trace a process", "ptrace", 0, 0, None, None),
    _asks("trace-first", "trace the first process of its sandbox", "ptrace", 0x4206, 1, None, None),
    _asks("read-memory", "read another process's memory", "process_vm_readv", 1, None, 0, None, 0, 0),
    _asks("write-memory", "write another process's memory", "process_vm_writev", 1, None, 0, None, 0, 0),
    _asks("drop-memory", "push another process's memory out", "process_madvise", 0, None, 0, 0, 0),
    _asks("take-descriptor", "take an open file from another process", "pidfd_getfd", 0, 0, 0),
    _asks("compare", "learn kernel addresses by comparing processes", "kcmp", 1, 1, 0, 0, 0),
    _asks("move-pages", "move another process's memory", "move_pages", 0, 0, None, None, None, 0),
    _asks("migrate-pages", "move another process to slower memory", "migrate_pages", 0, 0, None, None),
    # Terminals
    _asks("type", "type into the terminal", "ioctl", 0, _TYPE, b"x"),
    _asks("type-high-bits", "type into the terminal past a careless filter", "ioctl", 0, _HIGH | _TYPE, b"x"),
    _asks("paste", "paste into the console", "ioctl", 0, _PASTE, b"\2"),
    _asks("paste-high-bits", "paste into the console past a careless filter", "ioctl", 0, _HIGH | _PASTE, b"\2"),
    _asks("hang-up", "hang the terminal up", "vhangup"),
    # Parts of the kernel with a long list of past mistakes
    _asks("key-ring", "read the person's key ring", "keyctl", 0, 2**64 - 4, 0),
    _asks("add-key", "fill the kernel's memory with keys", "add_key", b"user", b"x", b"x", 1, 2**64 - 3),
    _asks("request-key", "ask for a key of the person", "request_key", b"user", b"x", None, 0),
    _asks("kernel-programs", "load a program into the kernel (BPF)", "bpf", 0, None, 0),
    _asks("performance-counters", "watch other programs by performance counters", "perf_event_open", None, 0, 0, 0, 0),
    _asks("page-faults", "hold the kernel up at a page fault", "userfaultfd", 1),
    _asks("kernel-queue", "pass calls by the filter in a queue (io_uring)", "io_uring_setup", 1, None),
    _asks("secret-memory", "hide memory from the kernel's own count", "memfd_secret", 0),
    _asks("program-in-memory", "run a program that is no file", "memfd_create", b"x", 0),
    _asks("segments", "change the tables by which memory is found", "modify_ldt", 0, None, 0),
    _asks("ports", "talk to the hardware directly", "iopl", 3),
    _asks("port-range", "talk to one device directly", "ioperm", 0x80, 1, 1),
    # The machine itself
    _asks("restart", "restart the machine", "reboot", 0, 0, 0, None),
    _asks("other-kernel", "start another kernel", "kexec_load", 0, 0, None, 0),
    _asks("module", "load code into the kernel", "init_module", None, 0, b""),
    _asks("module-file", "load code into the kernel from a file", "finit_module", 0, b"", 0),
    _asks("remove-module", "take a part of the kernel away", "delete_module", b"axon", 0x800),
    _asks("set-time", "change the clock", "settimeofday", None, None),
    _asks("set-clock", "change the clock in the newer way", "clock_settime", 0, None),
    _asks("tune-clock", "make the clock run fast or slow", "adjtimex", None),
    _asks("host-name", "rename the machine", "sethostname", b"axon", 4),
    _asks("domain-name", "rename the machine's domain", "setdomainname", b"axon", 4),
    _asks("swap-on", "make a file a part of the machine's memory", "swapon", None, 0),
    _asks("swap-off", "take the machine's swap away", "swapoff", None),
    _asks("accounting", "have the kernel write a file at each end of a process", "acct", None),
    _asks("kernel-log", "read or clear the kernel's messages", "syslog", 3, None, 0),
    _asks("write-all-disks", "have the machine write out all its disks, again and again", "syncfs", 0),
    # Memory that no limit of a process counts
    _asks("shared-zeros", "take such memory from /dev/zero", "openat", 0, b"/dev/zero", 2, 0, refusals=_NOT_THERE),
    _asks("segment", "take memory that outlives all processes (System V)", "shmget", 0, 4096, 0o1600),
    _asks("huge-pages", "take the huge pages that the owner set aside", "mmap", None, 2**21, 3, _HUGE, 2**64 - 1, 0),
    _asks("large-pipe", "take the pipes' memory that the person's programs need", "fcntl", 1, 1031, 2**20),
    _asks("pages-in-a-pipe", "keep memory in a pipe after giving it up", "vmsplice", 1, None, 0, 0),
    _asks("files-in-a-pipe", "keep files in a pipe after removing them", "splice", 0, None, 1, None, 0, 0),
    _asks("labels-of-files", "keep data in labels of files", "setxattr", b"/tmp", b"user.x", b"x", 1, 0),
    _asks("memory-that-stays", "take memory that cannot be swapped out", "mlockall", 1),
    # Doors by which filters are passed
    _asks("other-personality", "be taken for a 32-bit program", "personality", 8),
    _asks("known-addresses", "have its memory at addresses that can be foreseen", "personality", 0x0040000),
    _asks("own-filter", "lay a filter over the filter that holds it", "seccomp", 0, 0, None),
    _asks("message-queue", "keep data in the kernel when it has ended", "mq_open", b"axon", 0o102, 0o600, None),
)
