"""One look at this machine: every sensor joined into `Readings`. A look takes well under a millisecond.

Slow facts (power, heat, disk, terminals) are looked at twice a second at most, and the list of programs, which
takes some milliseconds, only while other programs are busy or the owner named some to yield to.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from axonp2p.clock import Clock, SystemClock
from axonp2p.plain_text import mebibytes_text
from peer_daemon.idle.decision import Readings
from peer_daemon.idle.desktop import Desktop, DesktopNews
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.idle.network import OthersTraffic
from peer_daemon.idle.power import Heat, Power
from peer_daemon.idle.programs import OthersCpu, Programs, named
from peer_daemon.idle.terminals import Terminals

_SLOW_EVERY_S = 0.5
_PROGRAMS_EVERY_S = 1.0
_BUSIEST_EVERY_S = 3.0
_BUSIEST_FROM = 0.25
"""Of the limit: below it nobody asks who it was."""

Told = tuple[str, bool, str]
"""The sensor's name, whether it can be read here, and one sentence."""


class Sensors:
    """Everything that this machine tells. `settings` may be replaced at any time."""

    def __init__(
        self,
        settings: IdleSettings,
        home: Path,
        own_pids: Callable[[], Iterable[int]],
        *,
        desktop: Desktop | None = None,
        clock: Clock | None = None,
        root: Path = Path("/"),
    ) -> None:
        """`own_pids`: daemon and workers; their children count as well. `root`: where /proc, /sys and /dev are."""
        self.settings = settings
        self._home = home
        self._clock = clock or SystemClock()
        self._proc = root / "proc"
        self._desktop = desktop or Desktop(root=root)
        self._cpu = OthersCpu(self._proc)
        self._programs = Programs(self._proc, own_pids)
        self._power, self._heat = Power(root), Heat(root)
        self._traffic = OthersTraffic(root)
        self._terminals = Terminals(root)
        self._next_slow = self._next_walk = float("-inf")
        self._busiest: tuple[str, ...] = ()
        self._running: frozenset[str] = frozenset()
        self._look_slowly(self._clock.monotonic())

    def start(self) -> None:
        """Begin to ask the desktop, if there is one."""
        self._desktop.start()

    def stop(self) -> None:
        """End what `start` began."""
        self._desktop.stop()

    def read(self, workers_cpu_s: float, workers_memory_mb: int) -> Readings:
        """One look. Sums of the workers that live now: processor seconds so far, and MiB. Blocks some milliseconds."""
        now = self._clock.monotonic()
        if now >= self._next_slow:
            self._look_slowly(now)
        others_cpu = self._cpu.look(now, time.process_time(), workers_cpu_s)
        self._walk_if_wanted(now, others_cpu)
        news = self._desktop.news(now)
        return Readings(
            others_cpu=others_cpu,
            busiest=self._busiest,
            memory_free_mb=memory_free_mb(self._proc),
            memory_pressure=memory_pressure(self._proc),
            workers_memory_mb=workers_memory_mb,
            disk_free_mb=self._disk_free_mb,
            on_battery=self._supply[0],
            battery_percent=self._supply[1],
            temperature_c=self._degrees,
            metered=news.metered,
            others_mbit=self._mbit,
            input_idle_s=self._input_idle(news),
            full_screen=news.full_screen,
            programs=named(self.settings.yield_to, self._running),
        )

    def _look_slowly(self, now: float) -> None:
        self._next_slow = now + _SLOW_EVERY_S
        self._disk_free_mb = disk_free_mb(self._home)
        self._supply = self._power.read()
        self._degrees = self._heat.read()
        self._typed_s = self._terminals.look(now, self._clock.now())
        self._desktop_runs = self._terminals.desktop_runs()
        self._mbit = self._traffic.look(now) if self.settings.others_mbit else None

    def _walk_if_wanted(self, now: float, others_cpu: float) -> None:
        limit = min(self.settings.in_use.others_cpu, self.settings.not_in_use.others_cpu)
        busy = limit < 1 and others_cpu > _BUSIEST_FROM * limit
        if not busy and not self.settings.yield_to:
            self._programs.forget()
            self._next_walk = now
        elif now >= self._next_walk:
            first = not self._programs.walked
            self._busiest, self._running = self._programs.walk(now)
            every = _BUSIEST_EVERY_S if busy else _PROGRAMS_EVERY_S
            self._next_walk = now if busy and first else now + every  # only a second walk tells who it is
        if not busy:
            self._busiest = ()

    def _input_idle(self, news: DesktopNews) -> float | None:
        """Somebody who types into a terminal is there. Somebody who does not may still sit at a screen."""
        typed = self._typed_s
        if news.input_idle_s is not None:
            return news.input_idle_s if typed is None else min(typed, news.input_idle_s)
        if typed is not None and self._desktop_runs and typed >= self.settings.idle_s:
            return None
        return typed

    def what_can_be_read(self) -> list[Told]:
        """For people: what this machine tells, and what is done where it does not. Waits some seconds for a desktop."""
        self._desktop.wait_for_news(3.0)
        now = self._clock.monotonic()
        self._look_slowly(now)
        news, readings = self._desktop.news(now), self.read(0.0, 0)
        why_not = self._desktop.why_not or "no service on this machine's bus tells"
        return [
            ("other programs' CPU", True, "read from /proc/stat"),
            _told(
                "memory",
                _size_words(readings.memory_free_mb),
                "{} free",
                "the kernel does not tell; jobs' own limits hold",
            ),
            _told(
                "memory pressure", readings.memory_pressure, "{:.0f} %", "the kernel does not tell; free memory is used"
            ),
            _told("disk", _size_words(readings.disk_free_mb), "{} free", "it cannot be read; jobs' own limits hold"),
            _told("power", _power_words(readings), "{}", "this machine does not tell; it counts as on the mains"),
            _told("heat", readings.temperature_c, "the processor has {:.0f} C", "no sensor of the processor is found"),
            self._input_told(news, readings, why_not),
            _told("screen", _screen_words(news), "{}", f"{why_not}; films and games are noticed by their CPU alone"),
            _told("metered network", _metered_words(news), "{}", f"{why_not}; the network counts as free"),
        ]

    def _input_told(self, news: DesktopNews, readings: Readings, why_not: str) -> Told:
        name = "keyboard and mouse"
        if readings.input_idle_s is not None:
            source = news.input_from or "the terminals"
            return name, True, f"untouched for {readings.input_idle_s:.0f} s, says {source}"
        return name, False, f"{why_not}; the machine counts as in use, and CPU load tells the rest"


def _told(name: str, value: object, words: str, otherwise: str) -> Told:
    return (name, False, otherwise) if value is None else (name, True, words.format(value))


def _size_words(amount: int | None) -> str | None:
    return None if amount is None else mebibytes_text(amount)


def _power_words(readings: Readings) -> str | None:
    if readings.on_battery is None:
        return None
    source = "on battery" if readings.on_battery else "on the mains"
    return source if readings.battery_percent is None else f"{source}, battery {readings.battery_percent:.0f} %"


def _screen_words(news: DesktopNews) -> str | None:
    words = {True: "a program keeps it for itself", False: "no program keeps it for itself"}
    return None if news.full_screen is None else words[news.full_screen]


def _metered_words(news: DesktopNews) -> str | None:
    words = {True: "this network costs by the byte", False: "this network does not cost by the byte"}
    return None if news.metered is None else words[news.metered]


def memory_free_mb(proc: Path) -> int | None:
    """The memory that programs could still get without swapping, in MiB; None where the kernel does not tell."""
    try:
        with (proc / "meminfo").open() as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return None


def memory_pressure(proc: Path) -> float | None:
    """Percent of the last ten seconds in which some program waited for memory; None where the kernel does not tell."""
    try:
        first = (proc / "pressure/memory").read_text().splitlines()[0]
        return float(first.split("avg10=")[1].split()[0])
    except (OSError, IndexError, ValueError):  # the kernel refuses the read when pressure is switched off at boot
        return None


def disk_free_mb(folder: Path) -> int | None:
    """The space that this user may still fill beside `folder`, in MiB; None when it cannot be read."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize // 1024**2
