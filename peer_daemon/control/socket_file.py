"""The control socket: a file in the daemon's home that its owner alone can open."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from axonp2p.errors import SettingsError

SOCKET_NAME = "control.sock"
_LONGEST = 107
"""Bytes in the name of a socket: what Linux has room for."""


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of `path` that fits a socket's, while the block lasts, however long the path is.

    A socket anywhere else would need a folder that nobody else may touch, and a note of where it is; the kernel's own
    name for a folder that we hold open needs neither.
    """
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = f"/proc/self/fd/{folder}"
        if not os.path.isdir(name):
            raise SettingsError(
                f"the path of {path} is too long for a socket",
                cause=f"more than {_LONGEST} bytes, and there is no /proc to shorten it with",
                fix="choose a shorter folder with --home DIR",
            )
        yield f"{name}/{path.name}"
    finally:
        os.close(folder)


def bound_socket(path: Path) -> socket.socket:
    """A listening socket at `path`, in the place of one that a dead daemon left. Raises `SettingsError`.

    The caller holds the lock of the home, so nobody listens on the one that is there.
    """
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove(path)
        with short_name(path) as name:
            line.bind(name)
        # Until it listens nobody gets in, so nobody gets in under a wider mode.
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        line.listen(64)
        line.setblocking(False)
    except OSError as error:
        line.close()
        raise SettingsError(
            f"cannot open the control socket {path}",
            cause=error.strerror or str(error),
            fix=f"see that {path.parent} can be written and is on a local disk, or choose another with --home DIR",
        ) from error
    return line


def remove_socket(path: Path) -> None:
    """Remove it; harmless when it is gone."""
    with suppress(OSError):  # a stale one is understood as one
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(errno.EEXIST, "something that is no socket has its name")
        path.unlink()
