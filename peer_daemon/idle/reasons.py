"""Everything that keeps a machine from working for others now, each as one true sentence with its figures (pure).

The order is that of the sentences that an owner should read first: what they said, what they do, then what the machine
suffers. `waiting` makes each limit somewhat stricter, so that jobs do not go on and stop again at its edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from peer_daemon.idle.decision import RESUME_BELOW, Readings, Why
from peer_daemon.idle.hours import when
from peer_daemon.idle.idle_settings import IdleSettings, UseRules

_MUCH_PRESSURE = 20.0
_RESUME_PRESSURE = 10.0
_RESUME_MEMORY = 1.5
_RESUME_COOLER_C = 5
_DISK_ALMOST_FULL = 4
"""Jobs that run may use of what is kept free, but not more than to a quarter of it."""


@dataclass(frozen=True)
class Reason:
    """One thing that is in the way."""

    why: Why
    sentence: str
    hands_back: bool = False
    """Freezing does not help: what jobs hold is wanted."""
    lingers: bool = False
    """It is under the limit again, but not yet so far that jobs go on."""


def in_use(readings: Readings, settings: IdleSettings) -> bool | None:
    """Whether somebody uses the machine; None: it does not tell."""
    if readings.full_screen:
        return True
    return None if readings.input_idle_s is None else readings.input_idle_s < settings.idle_s


def set_of(readings: Readings, settings: IdleSettings) -> UseRules:
    """The rules that hold now. A machine that does not tell counts as used: that harms nobody."""
    return settings.not_in_use if in_use(readings, settings) is False else settings.in_use


def reasons(
    readings: Readings, settings: IdleSettings, local: datetime, *, busy: Reason | None, working: bool, waiting: bool
) -> Iterator[Reason]:
    """The reasons against working, the first to be told first. `busy`: what other programs do, judged by the caller."""
    yield from _what_the_owner_said(readings, settings, local)
    yield from _where_the_power_comes_from(readings, settings)
    if busy is not None:
        yield busy
    yield from _heat(readings, settings, waiting)
    yield from _memory(readings, settings, waiting)
    yield from _network(readings, settings, waiting)
    yield from _disk(readings, settings, working)


def _what_the_owner_said(readings: Readings, settings: IdleSettings, local: datetime) -> Iterator[Reason]:
    if not settings.hours.allow(local):
        change = settings.hours.next_change(local)
        following = "" if change is None else f", next {when(change, local)}"
        yield Reason(Why.HOURS, f"outside your hours ({settings.hours.text}){following}")
    if not set_of(readings, settings).run:
        yield Reason(Why.IN_USE, _IN_USE[in_use(readings, settings)])
    if readings.programs:
        names = sorted(readings.programs)
        yield Reason(Why.PROGRAM, f"{' and '.join(names)} {'runs' if len(names) == 1 else 'run'}")
    if readings.full_screen:
        yield Reason(Why.FULL_SCREEN, "a program keeps the screen for itself")


_IN_USE = {
    True: "somebody uses this machine, and it is lent only when nobody does",
    None: "somebody may use this machine (it does not tell), and it is lent only when nobody does",
    False: "nobody uses this machine, and it is lent only while somebody does",
}


def _where_the_power_comes_from(readings: Readings, settings: IdleSettings) -> Iterator[Reason]:
    if readings.on_battery and not settings.on_battery:
        percent = "" if readings.battery_percent is None else f" ({readings.battery_percent:.0f} %)"
        yield Reason(Why.BATTERY, f"on battery{percent}")
    if readings.metered and not settings.metered:
        yield Reason(Why.METERED, "the network costs by the byte")


def _heat(readings: Readings, settings: IdleSettings, waiting: bool) -> Iterator[Reason]:
    if not settings.hottest_c or readings.temperature_c is None:
        return
    degrees = readings.temperature_c
    if degrees > settings.hottest_c:
        yield Reason(Why.HOT, f"too hot: {degrees:.0f} C (limit {settings.hottest_c})")
    elif waiting and degrees > settings.hottest_c - _RESUME_COOLER_C:
        limit = settings.hottest_c - _RESUME_COOLER_C
        yield Reason(Why.HOT, f"still hot: {degrees:.0f} C (jobs continue at {limit})", lingers=True)


def _memory(readings: Readings, settings: IdleSettings, waiting: bool) -> Iterator[Reason]:
    free, keep = readings.memory_free_mb, settings.keep_memory_free_mb
    if free is not None and free < keep:
        yield Reason(Why.MEMORY, f"only {free} MiB of memory free ({keep} are kept for you)", hands_back=True)
    elif free is not None and waiting and free < _RESUME_MEMORY * keep:
        go_on = int(_RESUME_MEMORY * keep)
        sentence = f"only {free} MiB of memory free ({keep} are kept for you, jobs continue at {go_on})"
        yield Reason(Why.MEMORY, sentence, lingers=True)
    limit = _RESUME_PRESSURE if waiting else _MUCH_PRESSURE
    pressure = readings.memory_pressure
    if pressure is not None and pressure > limit:
        sentence = f"programs wait for memory {pressure:.0f} % of the time (limit {limit:.0f} %)"
        much = pressure > _MUCH_PRESSURE
        yield Reason(Why.MEMORY, sentence, hands_back=much, lingers=not much)
    lent, used = set_of(readings, settings).memory_mb, readings.workers_memory_mb
    if lent and used > lent:
        unused = in_use(readings, settings) is False
        state = "while nobody uses this machine" if unused else "while somebody uses this machine"
        yield Reason(Why.MEMORY, f"jobs use {used} MiB of memory, and {lent} are lent {state}", hands_back=True)


def _network(readings: Readings, settings: IdleSettings, waiting: bool) -> Iterator[Reason]:
    used, limit = readings.others_mbit, settings.others_mbit
    if limit and used is not None and used > limit * (RESUME_BELOW if waiting else 1):
        sentence = f"other programs use {used:.0f} Mbit/s of the network (limit {limit})"
        if used <= limit:
            sentence += f", jobs continue at {RESUME_BELOW * limit:.0f}"
        yield Reason(Why.NETWORK, sentence, lingers=used <= limit)


def _disk(readings: Readings, settings: IdleSettings, working: bool) -> Iterator[Reason]:
    """A frozen job frees no disk: those that run go on, or are handed back when the disk is almost full."""
    free, keep = readings.disk_free_mb, settings.keep_disk_free_mb
    if free is not None and free < (keep / _DISK_ALMOST_FULL if working else keep):
        yield Reason(Why.DISK, f"only {free} MiB of disk free ({keep} are kept for you)", hands_back=True)
