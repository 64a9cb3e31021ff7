"""Hostile jobs that take more than they may: processes, memory, disk, output, processor time; and ones that stay."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time

from axonp2p.sandbox.inside import Inside
from tests.system.sandbox.hostile.jobs import ALIVE, BY_ITSELF, hostile

MIB = 2**20


def for_ever() -> None:
    while True:
        time.sleep(600)


def in_children(count: int) -> None:
    """Go on in `count` children, as many of them as can be had; the parent stays."""
    for _ in range(count):
        try:
            if os.fork() == 0:
                return
        except OSError:
            break
    for_ever()


# --- processes ---


@hostile("processes", ALIVE)
def fork_bomb(channel: Inside) -> None:
    """tries to start processes until nothing else can"""
    while True:
        with contextlib.suppress(OSError):
            os.fork()


@hostile("processes", ALIVE)
def bomb_of_orphans(channel: Inside) -> None:
    """tries to start processes that belong to nobody, each in a session of its own"""
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    continue
                os._exit(0)
        except OSError:
            pass


@hostile("processes", ALIVE)
def thread_bomb(channel: Inside) -> None:
    """tries to start threads until nothing else can"""
    threading.stack_size(64 * 1024)
    while True:
        try:
            threading.Thread(target=for_ever, daemon=True).start()
        except RuntimeError:
            time.sleep(0.01)


@hostile("processes", ALIVE)
def zombies(channel: Inside) -> None:
    """tries to use up the numbers of processes with ones that have ended"""
    while True:
        try:
            if os.fork() == 0:
                os._exit(0)
        except OSError:
            time.sleep(0.01)


# --- memory ---


@hostile("memory", BY_ITSELF)
def memory_of_one(channel: Inside) -> None:
    """tries to take all memory in one process"""
    held = []
    while True:
        held.append(bytearray(MIB))


@hostile("memory")
def memory_of_children(channel: Inside) -> None:
    """tries to take all memory a little in each of many processes"""
    in_children(12)
    held = os.urandom(40 * MIB)
    for_ever()
    del held


@hostile(BY_ITSELF, log="Operation not permitted")
def memory_shared(channel: Inside) -> None:
    """tries to take memory that belongs to no process alone"""
    held = [mmap.mmap(-1, 32 * MIB) for _ in range(12)]
    for part in held:
        part.write(b"\1" * len(part))
    for_ever()


@hostile(BY_ITSELF, log="refused")
def memory_of_the_dead(channel: Inside) -> None:
    """tries to keep shared memory that a dead process has filled, which counts for nobody"""
    held = []
    for path in ("", "/dev/zero"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR) if path else -1
            held += [mmap.mmap(descriptor, 32 * MIB) for _ in range(12)]
    if not held:
        raise SystemExit("refused")
    for part in held:
        if os.fork() == 0:
            part.write(b"\1" * len(part))
            os._exit(0)
        os.wait()
    for_ever()


@hostile("memory", BY_ITSELF)
def tables_of_pages(channel: Inside) -> None:
    """tries to fill memory with the kernel's own notes, by reading a byte here and there"""
    # Without a right to write it counts as no data, and all its pages are one.
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    held = [mmap.mmap(-1, 2**36, kind, mmap.PROT_READ) for _ in range(16)]
    for part in held:
        for place in range(0, len(part), 2 * MIB):
            part[place]
    for_ever()


@hostile(BY_ITSELF, "memory", log="refused")
def memory_in_segments(channel: Inside) -> None:
    """tries to take memory in segments that outlive all processes (System V)"""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    for _ in range(64):
        segment = libc.shmget(0, ctypes.c_size_t(16 * MIB), 0o1600)
        address = libc.shmat(segment, None, 0) if segment >= 0 else None
        if address in (None, 2**64 - 1):
            raise SystemExit("refused")
        ctypes.memset(address, 1, 16 * MIB)
    for_ever()


@hostile(BY_ITSELF, "memory", log="Function not implemented")
def memory_in_files_without_names(channel: Inside) -> None:
    """tries to take memory in files that lie nowhere (memfd)"""
    held = [os.memfd_create("x") for _ in range(200)]
    for descriptor in held:
        os.write(descriptor, bytes(4 * MIB))
    for_ever()


@hostile("memory", "files", "processes")
def memory_in_sockets(channel: Inside) -> None:
    """tries to take memory in letters that nobody fetches"""
    in_children(12)
    held = []
    while True:
        try:
            one, other = socket.socketpair()
        except OSError:
            for_ever()
        for end in (one, other):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
            end.setblocking(False)
            try:
                while True:
                    end.send(bytes(2**16))
            except OSError:
                pass
        held.append((one, other))


@hostile("memory", "files", "processes", ALIVE)
def memory_in_pipes(channel: Inside) -> None:
    """tries to take memory in pipes that nobody reads"""
    in_children(12)
    held = []
    while True:
        try:
            ends = os.pipe()
        except OSError:
            for_ever()
        os.set_blocking(ends[1], False)
        held.append(ends)
        try:
            while True:
                os.write(ends[1], bytes(2**16))
        except OSError:
            pass


# --- disk ---


@hostile(BY_ITSELF, "disk", log="No space left on device")
def disk_flood(channel: Inside) -> None:
    """tries to fill the disk"""
    for number in range(64):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(bytes(MIB))


@hostile(BY_ITSELF, "disk", log="No space left on device")
def files_without_names(channel: Inside) -> None:
    """tries to fill the disk with files that were removed while they are open"""
    held = []
    for number in range(64):
        held.append(open(f"/dev/shm/{number}", "wb", buffering=0))  # noqa: SIM115
        os.unlink(f"/dev/shm/{number}")
        held[-1].write(bytes(MIB))
        os.fsync(held[-1])
        if os.statvfs("/tmp").f_bfree == 0:
            raise OSError(28, os.strerror(28))


@hostile("files")
def many_files(channel: Inside) -> None:
    """tries to use up the numbers of files with empty ones"""
    for number in range(10**6):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT))


@hostile("files", BY_ITSELF)
def deep_folders(channel: Inside) -> None:
    """tries to make folders so deep that nobody can remove them"""
    for _ in range(10**6):
        os.mkdir("deeper")
        os.chdir("deeper")


@hostile(BY_ITSELF, "disk", log="File too large")
def sparse_file(channel: Inside) -> None:
    """tries to make a file that is larger than the disk and costs nothing"""
    os.truncate(os.open("/tmp/sparse", os.O_CREAT | os.O_RDWR), 2**40)


@hostile("output")
def unpacked_without_end(channel: Inside) -> None:
    """tries to drown the daemon in a small file that unpacks to a huge one"""
    import zlib

    small = zlib.compress(bytes(8 * MIB), 9)
    while True:
        os.write(1, zlib.decompress(small))


@hostile(BY_ITSELF, "files", log="Too many open files")
def open_files(channel: Inside) -> None:
    """tries to use up the descriptors of the machine"""
    held = []
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))


# --- output ---


@hostile("output")
def log_flood(channel: Inside) -> None:
    """tries to fill the daemon's disk and memory with what it prints"""
    while True:
        os.write(2, b"x" * 2**16)


@hostile("output", ALIVE)
def log_of_single_bytes(channel: Inside) -> None:
    """tries to keep the daemon busy with many small pieces of output"""
    while True:
        os.write(1, b"\n")


@hostile(BY_ITSELF, log="the end")
def log_that_commands(channel: Inside) -> None:
    """tries to command the terminal of whoever reads its log"""
    print("\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\r\b\x7f\x00the end")


@hostile(BY_ITSELF, log="the end")
def log_that_lies(channel: Inside) -> None:
    """tries to show other words than it printed, by marks that turn text around or hide it"""
    print("\u202etfel ot thgir\u202c \u200bhidden\u2066 \u2028 \ufeff\U000e0041 the end")
    sys.stdout.buffer.write(b"\xff\xfe\xc0\x80\xed\xa0\x80\n")


# --- processor time ---


@hostile("cores", ALIVE)
def more_threads_than_cores(channel: Inside) -> None:
    """tries to keep all cores busy where it may use one"""
    for _ in range(3):
        os.fork()
    while True:
        pass


@hostile("cpu", limits={"cpu_seconds": 1})
def processor_time(channel: Inside) -> None:
    """tries to go on when its processor time is used up"""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


@hostile("cpu", limits={"cpu_seconds": 1})
def processor_time_of_children(channel: Inside) -> None:
    """tries to use its processor time again and again in children that end soon"""
    while True:
        if os.fork() == 0:
            until = time.process_time() + 0.05
            while time.process_time() < until:
                pass
            os._exit(0)
        os.wait()


@hostile("time", limits={"wall_seconds": 1})
def wall_time(channel: Inside) -> None:
    """tries to stay for ever without doing anything"""
    for_ever()


@hostile(ALIVE)
def new_programs(channel: Inside) -> None:
    """tries to shake its limits off by becoming another program again and again"""
    held_back = "assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= 256"
    again = f"import os, resource, sys; {held_back}; os.execv(sys.executable, sys.orig_argv)"
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", again])


# --- staying, and not dying ---


@hostile(BY_ITSELF)
def child_that_stays(channel: Inside) -> None:
    """tries to leave a process behind that holds the log open"""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for_ever()
    os._exit(3)


@hostile(ALIVE)
def deaf_to_signals(channel: Inside) -> None:
    """tries to live on by ignoring all signals"""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    for_ever()


@hostile(ALIVE)
def standing_still(channel: Inside) -> None:
    """tries to live on by standing still, it and its child"""
    if os.fork() == 0:
        for_ever()
    os.kill(-1, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


@hostile(BY_ITSELF, ALIVE)
def kill_everything(channel: Inside) -> None:
    """tries to kill every process of this machine"""
    os.kill(-1, signal.SIGKILL)
    os.kill(1, signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


@hostile(BY_ITSELF, "memory")
def crash(channel: Inside) -> None:
    """tries to fill the disk with a dump of its memory"""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    held = os.urandom(64 * MIB)
    os.abort()
    del held


@hostile(BY_ITSELF)
def endless_recursion(channel: Inside) -> None:
    """tries to take memory by a stack without end"""
    sys.setrecursionlimit(10**9)
    endless = lambda: [*map(lambda _: endless(), [0])]  # noqa: E731, C417
    endless()
