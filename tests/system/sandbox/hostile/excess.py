"""Hostile jobs that take more disk, output or processor time than they may, and ones that do not end."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time

from axonp2p.sandbox.inside import Inside
from tests.system.sandbox.hostile.floods import MIB, for_ever
from tests.system.sandbox.hostile.jobs import ALIVE, BY_ITSELF, hostile

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
