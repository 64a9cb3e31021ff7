"""When somebody last typed into a terminal: the time of the last read from it, as `who -u` shows.

The kernel rounds that time to eight seconds, so that nobody can listen to the rhythm of the keys.
"""

from __future__ import annotations

import os
from pathlib import Path


class Terminals:
    """The terminals of this machine: consoles, windows of a desktop, logins over the network."""

    def __init__(self, root: Path) -> None:
        self._devices = root / "dev"
        self._sessions = root / "run/systemd/sessions"
        self._x_sockets = root / "tmp/.X11-unix"
        self._runtime = root / "run/user"
        self._last_read = 0.0
        self._typed_at: float | None = None

    def look(self, now: float, wall: float) -> float | None:
        """Seconds since somebody typed; None where there is no terminal. `now`: monotonic; `wall`: Unix time.

        The wall clock counts only once: after that a time that changes is what tells, so that nobody has to set the
        clock right for it.
        """
        last_read = max((self._time(device) for device in self._all()), default=0.0)
        if not last_read:
            return None
        if self._typed_at is None:
            self._typed_at = now - max(0.0, wall - last_read)
        elif last_read > self._last_read:
            self._typed_at = now
        self._last_read = last_read
        return now - self._typed_at

    def desktop_runs(self) -> bool:
        """Whether somebody may sit at a screen, whose keyboard no terminal hears."""
        if self._sessions.is_dir():
            return any(self._is_graphical(file) for file in self._sessions.iterdir())
        return any(self._x_sockets.glob("X*")) or any(self._runtime.glob("*/wayland-*"))

    def _all(self) -> list[Path]:
        windows = [device for device in self._devices.glob("pts/*") if device.name.isdecimal()]
        return windows + list(self._devices.glob("tty[0-9]*"))

    @staticmethod
    def _time(device: Path) -> float:
        try:
            return os.stat(device).st_atime
        except OSError:
            return 0.0

    @staticmethod
    def _is_graphical(session: Path) -> bool:
        try:
            if not session.is_file():
                return False  # the pipe beside a session's file, which would keep a reader for ever
            lines = session.read_text(errors="replace").splitlines()
        except OSError:
            return False
        return "CLASS=user" in lines and ("TYPE=x11" in lines or "TYPE=wayland" in lines)
