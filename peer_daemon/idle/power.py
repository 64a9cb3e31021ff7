"""Mains or battery, and how hot the processor is: small files under /sys."""

from __future__ import annotations

from pathlib import Path

_PROCESSOR_CHIPS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"})
_PROCESSOR_ZONES = frozenset({"x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal", "soc_thermal"})
_BELIEVED_C = range(1, 151)


class Power:
    """Where the machine's current comes from."""

    def __init__(self, root: Path) -> None:
        self._supplies = root / "sys/class/power_supply"

    def read(self) -> tuple[bool | None, float | None]:
        """Whether it runs on battery (None: this machine does not tell), and how full the batteries are in percent."""
        if not self._supplies.is_dir():
            return None, None
        batteries, mains = [], []
        for supply in self._supplies.iterdir():
            # A mouse or a headset has a battery, too; it calls itself a device.
            if _text(supply / "type") == "Battery" and _text(supply / "scope") != "Device":
                batteries.append(supply)
            elif (online := _text(supply / "online")) is not None:
                mains.append(online != "0")
        if not batteries:
            return False, None
        filled = [percent for supply in batteries if (percent := _number(supply / "capacity")) is not None]
        percent = sum(filled) / len(filled) if filled else None
        discharging = any(_text(supply / "status") == "Discharging" for supply in batteries)
        # With the mains on, a battery may still be drained for its health.
        return (not any(mains) if mains else discharging), percent


class Heat:
    """The sensors of the processor, looked for once; None of the others tells what the processor suffers."""

    def __init__(self, root: Path) -> None:
        chips = (chip for chip in root.glob("sys/class/hwmon/hwmon*") if _text(chip / "name") in _PROCESSOR_CHIPS)
        self._sensors = [sensor for chip in chips for sensor in sorted(chip.glob("temp*_input"))]
        for zone in root.glob("sys/class/thermal/thermal_zone*"):
            if _text(zone / "type") in _PROCESSOR_ZONES:
                self._sensors.append(zone / "temp")

    def read(self) -> float | None:
        """The hottest of them, in degrees Celsius."""
        degrees = [thousandths / 1000 for sensor in self._sensors if (thousandths := _number(sensor)) is not None]
        return max((value for value in degrees if int(value) in _BELIEVED_C), default=None)


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _number(file: Path) -> float | None:
    try:
        return float(_text(file) or "")
    except ValueError:
        return None
