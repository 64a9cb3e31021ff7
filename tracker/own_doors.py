"""The doors for the tracker's own operator: the page and the metrics, each on a listener of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from axonp2p.errors import PortTaken
from axonp2p.logs import get_logger
from axonp2p.settings import TrackerSettings
from tracker.api.metrics import MetricsListener
from tracker.page.recorder import Recorder
from tracker.page.server import OperatorPage

log = get_logger(__name__)

_USUAL = TrackerSettings()
_FREE_PORT = "127.0.0.1:0"


class _Door(Protocol):
    async def start(self) -> str: ...
    async def stop(self) -> None: ...


class OwnDoors:
    """`page` and `metrics` are their addresses once `open` is through; empty where there is none."""

    def __init__(self, recorder: Recorder, metrics: Callable[[], tuple[bytes, str]], settings: TrackerSettings) -> None:
        """Raises `SettingsError` for a page that others could reach, and for what is not HOST:PORT."""
        self.page = self.metrics = ""
        self._settings = settings
        self._make_page: Callable[[str], _Door] = lambda listen: OperatorPage(recorder, listen)
        self._make_metrics: Callable[[str], _Door] = lambda listen: MetricsListener(metrics, listen)
        for make, listen in (
            (self._make_page, settings.page_listen),
            (self._make_metrics, settings.metrics_listen),
        ):
            if listen:
                make(listen)  # so that a wrong address is said before anything has begun
        self._opened: list[_Door] = []

    async def open(self) -> None:
        """Listen. Raises `PortTaken` or `SettingsError`."""
        settings = self._settings
        self.page = await self._open(self._make_page, settings.page_listen, _USUAL.page_listen)
        self.metrics = await self._open(self._make_metrics, settings.metrics_listen, _USUAL.metrics_listen)
        log.info("own doors", page=self.page or "none", metrics=self.metrics or "none")

    async def close(self) -> None:
        """Close what is open."""
        for door in self._opened:
            await door.stop()
        self._opened.clear()

    async def _open(self, make: Callable[[str], _Door], listen: str, usual: str) -> str:
        if not listen:
            return ""
        door = make(listen)
        try:
            address = await door.start()
        except PortTaken:
            # Another tracker of this machine has the usual port, most likely. One that was asked for is not replaced.
            if listen != usual:
                raise
            door = make(_FREE_PORT)
            address = await door.start()
        self._opened.append(door)
        return address
