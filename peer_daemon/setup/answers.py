"""The answers of an owner to the three questions: understood, and put into config.toml.

Comments, order and other settings of that file stay.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from axonp2p.errors import SettingsError
from axonp2p.plain_text import mebibytes_of, mebibytes_text
from axonp2p.settings import PeerSettings
from axonp2p.settings_file import rewritten
from axonp2p.transport.address import PinnedAddress
from peer_daemon.idle.hours import Hours
from peer_daemon.lending.offer import MeasuredMachine, check_fits

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(%|[a-z]*)\s*(?:of\s+)?(?:the\s+)?([a-z]*)")
_BATTERY = re.compile(r"(?:also|even)?\s*on battery")
_ANY = ("any", "always", "any time", "at any time", "idle")


@dataclass(frozen=True)
class Amounts:
    """For each job: cores, and MiB."""

    cores: int
    memory_mb: int
    disk_mb: int

    def __str__(self) -> str:
        cores = f"{self.cores} core{'' if self.cores == 1 else 's'}"
        return f"{cores}, {mebibytes_text(self.memory_mb)} memory, {mebibytes_text(self.disk_mb)} disk"


@dataclass(frozen=True)
class Times:
    """When jobs may run; whatever is said here, they wait while other programs are busy."""

    hours: tuple[str, ...] = ()
    on_battery: bool = False

    def __str__(self) -> str:
        return f"{'; '.join(self.hours) or 'any'}; {'also' if self.on_battery else 'never'} on battery"


@dataclass(frozen=True)
class Answers:
    """All of them."""

    amounts: Amounts
    times: Times
    trackers: tuple[str, ...]
    gpu: bool | None = None
    """Whether jobs may have the GPU; None where there is none to lend, and nobody was asked."""


def usual_amounts(machine: MeasuredMachine, settings: PeerSettings) -> Amounts:
    """The settings' amounts; else half of the cores and of the memory. Never more disk than half of what is free."""
    return Amounts(
        min(settings.cores, machine.cores) or max(1, machine.cores // 2),
        min(settings.memory_mb, machine.memory_mb) or machine.memory_mb // 2,
        min(settings.disk_mb, max(1, machine.disk_mb // 2)),
    )


def amounts(text: str, machine: MeasuredMachine, usual: Amounts) -> Amounts:
    """ "1 core, 4 GiB memory, 10 GiB disk", any part of it, or "50 %"; what is not said is as `usual`.

    A size that says no more is the memory; a second one the disk.
    Raises `SettingsError` for what is not understood, and for more than the machine has.
    """
    cores, memory, disk = usual.cores, usual.memory_mb, usual.disk_mb
    unnamed = ["memory", "disk"]
    for part in filter(None, (part.strip().lower() for part in text.split(","))):
        found = _PART.fullmatch(part)
        number, unit, what = found.groups() if found else ("0", "", "")
        size = mebibytes_of(number + unit) if unit.endswith("b") else None
        if size is not None and not what and unnamed:
            what = unnamed[0]
        if what in unnamed:
            unnamed.remove(what)
        if unit == "%" and what in ("", "cores"):
            cores = max(1, round(machine.cores * float(number) / 100))
            memory = memory if what else round(machine.memory_mb * float(number) / 100)
        elif unit in ("core", "cores") and not what:
            cores = int(float(number))
        elif size is not None and what == "memory":
            memory = size
        elif size is not None and what == "disk":
            disk = size
        else:
            raise SettingsError(f"{part!r} is not understood", fix=str(usual))
    check_fits(machine, cores=cores, memory_mb=memory, disk_mb=disk, fix=str(usual))
    return Amounts(cores, memory, disk)


_HOURS = "Mon-Fri 18:00-08:00; Sat,Sun     or: weekdays evenings; weekends     or: any"


def times(text: str) -> Times:
    """ "any", or hours such as "Mon-Fri 18:00-08:00; Sat,Sun"; with "also on battery" or "never on battery" among them.

    Raises `SettingsError` for hours that are not understood.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    battery = [part for part in parts if part.lower().endswith("battery")]
    hours = tuple(part for part in parts if part not in battery and part.lower() not in _ANY)
    try:
        Hours.parse(list(hours))
    except SettingsError as error:
        raise SettingsError(error.message, cause=error.cause, fix=_HOURS) from error
    for part in battery:
        if not _BATTERY.fullmatch(part.lower()) and part.lower() not in ("never on battery", "not on battery"):
            raise SettingsError(f"{part!r} is not understood", fix="also on battery, or: never on battery")
    return Times(hours, any(_BATTERY.fullmatch(part.lower()) for part in battery))


def trackers(text: str) -> tuple[str, ...]:
    """Addresses apart by blanks; "none" is none. Raises `SettingsError` for what is no address."""
    addresses = tuple(word for word in text.split() if word.lower() != "none")
    return tuple(str(PinnedAddress.parse(address)) for address in addresses)


def yes_or_no(text: str) -> bool:
    """ "yes" or "no". Raises `SettingsError` for anything else."""
    word = text.strip().lower()
    if word not in ("yes", "y", "no", "n"):
        raise SettingsError(f"{text!r} is not understood", fix="yes, or: no")
    return word.startswith("y")


_HEAD = "Written by axon-peer setup. Everything that can be set: docs/settings.md"


def is_answered(content: str) -> bool:
    """Whether it says anything of the peer already. Raises `SettingsError` for what is no TOML."""
    try:
        return bool(tomllib.loads(content).get("peer"))
    except ValueError as error:
        raise SettingsError(f"config.toml: {error}", fix="correct it, or move it away") from error


def with_answers(content: str, given: Answers) -> str:
    """`content` with the answers in it. Raises `SettingsError` for what is no TOML."""
    rows: dict[str, object] = {
        "cores": given.amounts.cores,
        "memory-mb": given.amounts.memory_mb,
        "disk-mb": given.amounts.disk_mb,
        "hours": list(given.times.hours),
        "on-battery": given.times.on_battery,
        "trackers": list(given.trackers),
    }
    if given.gpu is not None:
        rows["gpu"] = given.gpu
    return rewritten(content, {"peer": rows}, head=_HEAD)
