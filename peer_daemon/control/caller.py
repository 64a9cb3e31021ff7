"""The command line's side of the control socket: ask the daemon with this home, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec

from axonp2p.errors import AxonError, NoDaemon, Refused, Unreachable, VersionMismatch, error_classes
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, plain_words
from axonp2p.wire.json_form import decode_json
from peer_daemon.control.socket_file import SOCKET_NAME, short_name
from peer_daemon.control.status import HistoryTold, LimitsAsked, PauseAsked, Status

PATIENCE_S = 20.0
"""How long the daemon may take: it hands running work back, which is one round trip to each client."""

T = TypeVar("T")


async def ask_status(home: Path) -> Status:
    """How the daemon is. This and the others raise `NoDaemon`, `Refused`, `Unreachable`, and what the daemon raises."""
    return await _ask(home, "GET", "/status", Status)


async def ask_history(home: Path, since: float) -> HistoryTold:
    """The history since then, Unix seconds, as far as it was kept."""
    return await _ask(home, "GET", f"/history?since={since:.3f}", HistoryTold)


async def pause(home: Path, seconds: float | None) -> Status:
    """Stop working for so long, or until `resume`."""
    return await _ask(home, "POST", "/pause", Status, PauseAsked(seconds=seconds))


async def finish(home: Path) -> Status:
    """End the running rounds, then pause."""
    return await _ask(home, "POST", "/finish", Status)


async def resume(home: Path) -> Status:
    """Work again."""
    return await _ask(home, "POST", "/resume", Status)


async def change_limits(home: Path, asked: LimitsAsked) -> Status:
    """Hold to these from now on."""
    return await _ask(home, "POST", "/limits", Status, asked)


async def _ask(home: Path, method: str, address: str, kind: type[T], message: msgspec.Struct | None = None) -> T:
    body = msgspec.json.encode(message) if message is not None else None
    path = home / SOCKET_NAME
    try:
        # The folder is looked at first: without its name, a missing socket and a missing daemon are one.
        with short_name(path) as name:
            async with (
                asyncio.timeout(PATIENCE_S),
                aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=name)) as session,
                # The host is a name for HTTP's sake; the line is the socket.
                session.request(method, f"http://axon-peer{address}", data=body) as answer,
            ):
                content, status = await answer.read(), answer.status
    except (*NETWORK_ERRORS, OSError) as error:
        raise _translated(error, home) from error
    if status != 200:
        raise _error_of(content, status)
    try:
        return decode_json(content, kind)
    except msgspec.DecodeError as error:
        raise VersionMismatch(
            "the running peer is of another version than this command",
            cause=str(error),
            fix="stop it and start it again: axon-peer run",
        ) from error


def _translated(error: BaseException, home: Path) -> AxonError:
    reason = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(reason, FileNotFoundError | NotADirectoryError | ConnectionRefusedError):
        return NoDaemon(
            "no peer is running on this computer",
            cause=f"nobody answers at {home / SOCKET_NAME}",
            fix="axon-peer run      (or at login: axon-peer service install)",
        )
    if isinstance(reason, PermissionError):
        owner = _owner(home)
        return Refused(
            f"the peer with {home} is {owner}'s, who alone may see and steer it",
            fix=f"sudo -u {owner} axon-peer status    or name another peer's folder with --home DIR",
        )
    return Unreachable(
        "the peer on this computer does not answer",
        cause=plain_words(error),
        fix="axon-peer logs    shows what it does; start it again if it hangs",
    )


def _owner(folder: Path) -> str:
    import pwd

    for one in (folder, *folder.parents):
        try:
            return pwd.getpwuid(one.stat().st_uid).pw_name
        except (OSError, KeyError):
            continue  # it lies in a folder that we may not look into: that folder's owner is theirs, too
    return "somebody else"


def _error_of(content: bytes, status: int) -> AxonError:
    """The error that the daemon told, as its own class."""
    try:
        told: Mapping[str, Any] = json.loads(content)["error"]
        kind = error_classes().get(told["code"], AxonError)
        return kind(str(told["message"]), cause=str(told["cause"]), fix=str(told["fix"]))
    except (ValueError, KeyError, TypeError):
        return Unreachable("the peer on this computer answers strangely", cause=f"HTTP status {status}")
