"""The door for the command line: HTTP on a Unix socket in the daemon's home."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from peer_daemon.control.api import Steering, add_api
from peer_daemon.control.json_door import errors_as_json
from peer_daemon.control.socket_file import bound_socket, remove_socket

_CLOSE_S = 1.0


class ControlDoor:
    """Serves `steering` on the socket at `path`. `start` and `stop` may be called once each, in that order."""

    def __init__(self, steering: Steering, path: Path) -> None:
        self._path = path
        app = web.Application(middlewares=[errors_as_json])
        add_api(app, steering)
        # auto_decompress would let a small body unfold past the cap it was held to.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_S, auto_decompress=False)

    async def start(self) -> None:
        """Listen. Raises `SettingsError` when the socket cannot be made."""
        line = bound_socket(self._path)
        await self._runner.setup()
        await web.SockSite(self._runner, line).start()

    async def stop(self) -> None:
        """Answer what is asked already, take no more, and remove the socket. Harmless when it does not listen."""
        await self._runner.cleanup()
        remove_socket(self._path)
