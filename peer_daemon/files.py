"""The daemon's own small files: written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from axonp2p.errors import AlreadyRunning


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` in `path` so that a reader sees all of it or what was there before."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def lock_home(home: Path) -> int:
    """Lock `home` for this process and return the descriptor that holds the lock until it is closed.

    Raises `AlreadyRunning`. The kernel lets go of the lock when the process dies, however it dies.
    """
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise AlreadyRunning(
            f"a peer already runs with {home}" + (f" (pid {holder})" if holder else ""),
            fix="stop it first, or give this one its own folder: axon-peer run --home DIR --listen HOST:0",
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def remove_leftovers(jobs: Path) -> None:
    """Remove what the jobs of a daemon that crashed left behind, and make the folder anew."""
    shutil.rmtree(jobs, ignore_errors=True)
    jobs.mkdir(mode=0o700, exist_ok=True)
