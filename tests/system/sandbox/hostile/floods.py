"""Hostile jobs that multiply: processes, and memory in all the places where it can be hidden."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import socket
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
