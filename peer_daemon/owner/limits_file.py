"""Change limits in config.toml, keeping the person's comments and order; wrong ones never get there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings
from axonp2p.settings_file import change_settings
from peer_daemon.control.status import LimitsAsked
from peer_daemon.idle.read_idle_settings import idle_settings_of
from peer_daemon.lending.lend_settings import limits_to_lend
from peer_daemon.lending.offer import MeasuredMachine, check_fits

_OF_USES = {
    "others_cpu": ("others_cpu", ("in_use", "not_in_use")),
    "in_use_run": ("run", ("in_use",)),
    "in_use_cores": ("cores", ("in_use",)),
}
"""Which key of which section a limit is that `[peer]` itself does not have."""
_MOST = 2**24
"""Of cores, MiB and slots: beyond this no machine is meant."""


def with_limits(settings: PeerSettings, asked: LimitsAsked, machine: MeasuredMachine | None = None) -> PeerSettings:
    """`settings` with what is asked for; `others_cpu` holds whether somebody uses the machine or not.

    Raises `SettingsError` for what cannot be meant, or is more than the machine has.
    """
    given = _given(asked)
    for name, value in given.items():
        if isinstance(value, int) and value > _MOST:
            raise SettingsError(f"{name.replace('_', '-')} = {value} cannot be meant", fix="axon-peer limits --help")
    plain = {name: value for name, value in given.items() if name not in _OF_USES}
    if machine is not None:
        check_fits(machine, cores=asked.cores, memory_mb=asked.memory_mb, disk_mb=asked.disk_mb)
        check_fits(machine, cores=asked.in_use_cores or None)
    uses = {use: replace(getattr(settings, use), **fields) for use, fields in _by_use(given).items()}
    changed = replace(settings, **plain, **uses)
    limits_to_lend(changed)
    idle_settings_of(changed)
    return changed


def change_limits(
    home: Path, settings: PeerSettings, asked: LimitsAsked, machine: MeasuredMachine | None = None
) -> PeerSettings:
    """Write what is asked for to `home/config.toml`, whole or not at all; `settings` with it.

    Blocks on the disk. Raises `SettingsError` for what cannot be meant, a file that is wrong already, and a disk that
    takes nothing; nothing is changed then.
    """
    changed = with_limits(settings, asked, machine)
    given = _given(asked)
    changes = {"peer": {_kebab(name): value for name, value in given.items() if name not in _OF_USES}}
    for use, fields in _by_use(given).items():
        changes[f"peer.{_kebab(use)}"] = {_kebab(name): value for name, value in fields.items()}
    change_settings(home, changes, called="the limits")
    return changed


def _given(asked: LimitsAsked) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(asked).items() if value is not None}


def _by_use(given: dict[str, object]) -> dict[str, dict[str, Any]]:
    """The limits for the sections of `[peer]`, by the sections' names."""
    found: dict[str, dict[str, Any]] = {}
    for name, (field, uses) in _OF_USES.items():
        for use in uses if name in given else ():
            found.setdefault(use, {})[field] = given[name]
    return found


def _kebab(name: str) -> str:
    return name.replace("_", "-")
