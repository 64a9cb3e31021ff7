"""From settings to what the owner wants: every number within its bounds, and words for those that are not."""

from __future__ import annotations

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings, UseSettings
from peer_daemon.idle.hours import Hours
from peer_daemon.idle.idle_settings import IdleSettings, UseRules

_MAX_MB = 16 * 1024**2
_MAX_PROGRAMS = 50
_MAX_CORES = 4096


def idle_settings_of(settings: PeerSettings) -> IdleSettings:
    """In the units of the policy. Raises `SettingsError` for what cannot be meant, with what could be."""
    if not settings.in_use.run and not settings.not_in_use.run:
        raise SettingsError(
            "no job would ever run: run = false is in both [peer.in-use] and [peer.not-in-use]",
            fix="take it out of one of them; or, to lend nothing for a while: axon-peer pause",
        )
    if len(settings.yield_to) > _MAX_PROGRAMS or any(not name.strip() or "/" in name for name in settings.yield_to):
        raise SettingsError(
            f"yield-to names programs, at most {_MAX_PROGRAMS}, without their folder",
            fix='yield-to = ["blender"]   (as the first column of `ps -A -o comm` shows them)',
        )
    return IdleSettings(
        hours=Hours.parse(settings.hours),
        on_battery=settings.on_battery,
        idle_s=60 * _bounded("idle-minutes", settings.idle_minutes, 0.1, 24 * 60),
        yield_to=frozenset(name.strip().lower() for name in settings.yield_to),
        others_mbit=int(_bounded("others-mbit", settings.others_mbit, 0, 1_000_000)),
        metered=settings.metered,
        hottest_c=_hottest(settings.hottest_c),
        gpu_power_percent=_power(settings.gpu_power_percent),
        keep_memory_free_mb=int(_bounded("keep-memory-free-mb", settings.keep_memory_free_mb, 0, _MAX_MB)),
        keep_disk_free_mb=int(_bounded("keep-disk-free-mb", settings.keep_disk_free_mb, 0, 1024 * _MAX_MB)),
        hand_back_s=60 * _bounded("hand-back-minutes", settings.hand_back_minutes, 0, 24 * 60),
        standby=settings.standby,
        in_use=_use("in-use", settings.in_use),
        not_in_use=_use("not-in-use", settings.not_in_use),
    )


def _use(name: str, use: UseSettings) -> UseRules:
    return UseRules(
        run=use.run,
        cores=int(_bounded(f"{name}.cores", use.cores, 0, _MAX_CORES)),
        memory_mb=int(_bounded(f"{name}.memory-mb", use.memory_mb, 0, _MAX_MB)),
        others_cpu=_bounded(f"{name}.others-cpu", use.others_cpu, 1, 100, "100: never wait for other programs") / 100,
    )


def _hottest(degrees: int) -> int:
    """A limit below that of a warm room would be a pause for ever, and none above 120 protects anything."""
    return degrees and int(_bounded("hottest-c", degrees, 40, 120, "0: do not look"))


def _power(percent: int) -> int:
    return percent and int(_bounded("gpu-power-percent", percent, 10, 100, "0: as it is"))


def _bounded(key: str, value: float, least: float, most: float, hint: str = "") -> float:
    if not least <= value <= most:  # nan is not between, either
        beside = f"   ({hint})" if hint else ""
        near = least if value < least else most
        raise SettingsError(
            f"{key} = {value:g} cannot be meant: it is from {least:g} to {most:g}",
            fix=f"{key.rpartition('.')[2]} = {near:g}{beside}",
        )
    return value
