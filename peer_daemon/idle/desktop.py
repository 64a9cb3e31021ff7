"""The news of a desktop over D-Bus: when somebody last touched it, whether a program keeps the screen, whether the
network costs by the byte. Needs the extra `desktop` (dbus-fast); without it, or without a bus, nothing is known.

A thread of its own asks every five seconds, with a deadline for each answer: a desktop that hangs delays nobody. Where
the desktop can call (GNOME), the first touch after a while is heard at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from axonp2p.logs import get_logger
from peer_daemon.idle.bus import Bus, BusSilent

log = get_logger(__name__)

_ASK_EVERY_S = 5.0
_TRY_AGAIN_S = 60.0
_STALE_S = 15.0
_TOUCHED_S = 1.0
_STOP_S = 1.0
_MUTTER = ("org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor")
_SCREEN_SAVER = ("org.freedesktop.ScreenSaver", "/ScreenSaver", "org.freedesktop.ScreenSaver")
_SESSION_MANAGER = ("org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager")
_LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_NETWORK_MANAGER = (
    "org.freedesktop.NetworkManager",
    "/org/freedesktop/NetworkManager",
    "org.freedesktop.NetworkManager",
)
_IDLE_IS_INHIBITED = 8
_METERED = {1: True, 2: False, 3: True, 4: False}
"""yes, no, and two guesses; 0 is unknown."""


@dataclass(frozen=True)
class DesktopNews:
    """The last news of the desktop. None: it does not tell."""

    at: float = 0.0
    """Monotonic seconds."""
    input_idle_s: float | None = None
    input_from: str = ""
    full_screen: bool | None = None
    metered: bool | None = None


class Desktop:
    """One thread beside the daemon; `news` never waits."""

    def __init__(self, environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> None:
        self._session_address = bus_address(environment, root)
        system = root / "run/dbus/system_bus_socket"
        self._system_address = environment.get("DBUS_SYSTEM_BUS_ADDRESS") or (
            f"unix:path={system}" if system.exists() else ""
        )
        self._news = DesktopNews()
        self._heard = threading.Event()
        self._asking: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._stopped = False
        self._watches = False
        self._thread: threading.Thread | None = None

    @property
    def why_not(self) -> str:
        """Why nothing can be asked; empty when something can."""
        if not (self._session_address or self._system_address):
            return "there is no desktop session and no system bus"
        if importlib.util.find_spec("dbus_fast") is None:
            return "dbus-fast is missing: pip install 'axonp2p[desktop]'"
        return ""

    def start(self) -> None:
        """Begin to ask, if there is anybody to ask."""
        if self._thread is None and not self.why_not:
            self._thread = threading.Thread(target=self._live, name="desktop", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread; a desktop that hangs is not waited for longer than a second."""
        self._stopped = True
        if self._asking is not None and self._ended is not None and not self._asking.is_closed():
            self._asking.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            self._thread.join(timeout=_STOP_S)

    def wait_for_news(self, seconds: float) -> None:
        """Until it has told something, at most so long."""
        if self._thread is not None:
            self._heard.wait(seconds)

    def news(self, now: float) -> DesktopNews:
        """The last answers as of `now` (monotonic seconds); nothing when they are too old to be true."""
        news = self._news
        if now - news.at > _STALE_S:
            return DesktopNews()
        if news.input_idle_s is None:
            return news
        return replace(news, input_idle_s=news.input_idle_s + max(0.0, now - news.at))

    def _live(self) -> None:
        asyncio.run(self._keep_asking())

    async def _keep_asking(self) -> None:
        self._asking, self._ended = asyncio.get_running_loop(), asyncio.Event()
        while not self._stopped:
            session, system = Bus(self._session_address), Bus(self._system_address)
            try:
                # One that lets nobody in does not keep the other from being asked.
                failed = await asyncio.gather(session.connect(), system.connect(), return_exceptions=True)
                log.info("desktop asked", failures=[str(error) for error in failed if error])
                await session.listen(_MUTTER[2], "WatchFired", self._touched)
                self._watches = False
                while not self._stopped:
                    await self._ask(session, system)
                    await self._pause(_ASK_EVERY_S)
            except BusSilent as silent:
                log.info("desktop is silent", why=str(silent))
            finally:
                session.close()
                system.close()
            await self._pause(_TRY_AGAIN_S)

    async def _pause(self, seconds: float) -> None:
        assert self._ended is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    async def _ask(self, session: Bus, system: Bus) -> None:
        """One round; raises `BusSilent` when a connection is lost."""
        idle, source = await self._input_idle(session, system)
        keeps_screen = await session.call(*_SESSION_MANAGER, "IsInhibited", "u", _IDLE_IS_INHIBITED)
        metered = await system.get(*_NETWORK_MANAGER, "Metered")
        self._news = DesktopNews(
            at=time.monotonic(),
            input_idle_s=idle,
            input_from=source,
            full_screen=keeps_screen if isinstance(keeps_screen, bool) else None,
            metered=_METERED.get(metered) if isinstance(metered, int) else None,
        )
        self._heard.set()

    async def _input_idle(self, session: Bus, system: Bus) -> tuple[float | None, str]:
        milliseconds = await session.call(*_MUTTER, "GetIdletime")
        if isinstance(milliseconds, int):
            if milliseconds > 1000 * _TOUCHED_S and not self._watches:
                self._watches = await session.call(*_MUTTER, "AddUserActiveWatch") is not None
            return milliseconds / 1000, "GNOME"
        milliseconds = await session.call(*_SCREEN_SAVER, "GetSessionIdleTime")
        if isinstance(milliseconds, int):
            return milliseconds / 1000, "the screen saver"
        # logind's "no" only means that no desktop has told it otherwise; its "yes" is true.
        if await system.get(*_LOGIND, "IdleHint") is True:
            since = await system.get(*_LOGIND, "IdleSinceHintMonotonic")
            if isinstance(since, int):
                return max(0.0, time.monotonic() - since / 1e6), "logind"
        return None, ""

    def _touched(self) -> None:
        self._watches = False
        self._news = replace(self._news, at=time.monotonic(), input_idle_s=0.0)


def bus_address(environment: Mapping[str, str], root: Path) -> str:
    """Where the owner's desktop session talks; empty where there is none."""
    told = environment.get("DBUS_SESSION_BUS_ADDRESS")
    usual = root / f"run/user/{os.getuid()}/bus"
    return told or (f"unix:path={usual}" if usual.exists() else "")
