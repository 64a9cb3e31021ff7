"""Runs one of our programs as it finds another operating system: without the modules that Python has on Unix alone.

    python -m tests.laboratory.other_system win32 client_cli.main jobs

Nothing here is Windows or macOS: it shows that our code asks for nothing that Python does not have there, and no more.
What other packages import is loaded before, for these have their own code for each system.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import os
import runpy
import signal
import sys
import types
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

_LOADED_BEFORE = (
    *("aiohttp", "aiohttp_sse", "click", "installer", "jinja2", "kademlia", "msgpack", "msgspec", "nacl.signing"),
    *("numpy", "packaging.requirements", "platformdirs", "psutil", "rich.console", "rich.progress", "structlog"),
    *("tomlkit", "zeroconf.asyncio", "getpass", "logging.handlers", "multiprocessing", "subprocess", "tempfile"),
)
_OF_UNIX = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty")
_NOT_THERE = {
    "darwin": (),
    "win32": (
        *("O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "getuid", "geteuid", "getgid", "killpg"),
        "nice",
        "setsid",
    ),
}
_LINUX_ALONE = (
    "posix_fallocate",
    "posix_fadvise",
    "sched_getaffinity",
    "sched_setaffinity",
    "pidfd_open",
    "memfd_create",
)


class Missing(MetaPathFinder):
    """Finds that modules are not there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As `import` asks."""
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def become(system: str) -> None:
    """From now on this process finds that system, as far as our own code asks."""
    for name in _LOADED_BEFORE:
        importlib.import_module(name)
    asyncio.new_event_loop().close()
    if hasattr(os, "process_cpu_count"):
        os.process_cpu_count = os.cpu_count  # of Python itself, made for Linux when it was built
    for name in (*_LINUX_ALONE, *_NOT_THERE[system]):
        with contextlib.suppress(AttributeError):
            delattr(os, name)
    if system == "win32":
        for name in ("SIGHUP", "SIGKILL"):
            delattr(signal, name)
        for name in _OF_UNIX:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, Missing(_OF_UNIX))
        locks = types.ModuleType("msvcrt")
        locks.LK_NBLCK = 2  # type: ignore[attr-defined]
        locks.locking = lambda descriptor, mode, size: None  # type: ignore[attr-defined]
        sys.modules["msvcrt"] = locks
        errno.WSAEINVAL = 10022  # type: ignore[attr-defined]  # asyncio asks for it there
    sys.platform = system


if __name__ == "__main__":
    _, system, module, *arguments = sys.argv
    become(system)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__")
