"""The tracker's folder: one tracker at a time, and the file that says where it listens."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from axonp2p.errors import AlreadyRunning, SettingsError


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold `home/lock`, which the kernel lets go when we die, however we die. Raises `AlreadyRunning`."""
    path = home / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"cannot write to {home}: {error.strerror}", fix="choose another --home DIR") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 20).decode(errors="replace").strip()
            raise AlreadyRunning(
                f"a tracker already runs with {home}" + (f" (pid {holder})" if holder.isdigit() else ""),
                fix="stop it, or give this one its own folder and port: axon-tracker run --home DIR --listen HOST:0",
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


class AddressFile:
    """`home/address`: there while the tracker answers, gone otherwise."""

    def __init__(self, home: Path) -> None:
        self._path = home / "address"

    def write(self, address: str) -> None:
        """Say where; a reader sees all of it or nothing."""
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        fresh.write_text(address + "\n")
        fresh.replace(self._path)

    def remove(self) -> None:
        """Nobody answers here."""
        with suppress(FileNotFoundError):
            self._path.unlink()
