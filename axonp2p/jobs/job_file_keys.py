"""Every key of job.toml with the rule that reads its value. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from axonp2p.blobs.manifest import MOST_FILES
from axonp2p.jobs.aggregation import AGGREGATIONS
from axonp2p.jobs.file_names import why_bad_name
from axonp2p.wire.ranks import MOST_MEMBERS

Rule = Callable[[Any], Any]
"""Takes what stands in the file, returns the value in our unit, raises `Wrong`."""


class Wrong(Exception):
    """A value that a rule does not take: why, and a value that it would take. Never leaves this room."""

    def __init__(self, section: str, key: str, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.section = section
        self.key = key
        self.problem = problem
        self.fix = fix


def _wrong(problem: str, fix: str) -> Wrong:
    return Wrong("", "", problem, fix)


def _shown(value: Any) -> str:
    """A value with its type, as a person would look for it in the file."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value[:60]}"'
    else:
        text = repr(value)[:60]
    return f"got {type(value).__name__} ({text})"


def _whole(least: int, most: int, example: int) -> Rule:
    def rule(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            meant = re.fullmatch(r"\s*(\d{1,18})\s*", value) if isinstance(value, str) else None
            fits = meant is not None and least <= int(meant[1]) <= most
            raise _wrong(f"expected int, {_shown(value)}", str(int(meant[1]) if meant and fits else example))
        if not least <= value <= most:
            raise _wrong(f"expected {least} to {most}, got {value}", str(min(max(value, least), most)))
        return value

    return rule


def _number(most: float, example: str, *, above_0: bool = False, below_most: bool = False) -> Rule:
    def rule(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(f"expected a number, {_shown(value)}", example)
        if not 0 <= value <= most or (above_0 and value == 0) or (below_most and value == most):
            range_ = f"{'above 0' if above_0 else '0'} to {'below ' if below_most else ''}{most:g}"
            raise _wrong(f"expected {range_}, got {value}", example)
        return float(value)

    return rule


def _or_auto(rule: Rule) -> Rule:
    """`"auto"` is None: it is chosen while the job runs."""

    def either(value: Any) -> Any:
        return None if value == "auto" else rule(value)

    return either


def _every_round_or(rule: Rule) -> Rule:
    """`"every-round"` is 1."""

    def either(value: Any) -> Any:
        return 1 if value == "every-round" else rule(value)

    return either


def _share_of_checks(value: Any) -> float:
    """`"auto"` is a twentieth, `"off"` nothing."""
    if value in ("auto", "off"):
        return 0.05 if value == "auto" else 0.0
    if isinstance(value, str):
        raise _wrong(f'expected "auto", "off" or a share, {_shown(value)}', '"auto"')
    share: float = _number(0.5, "0.05", above_0=True)(value)
    return share


def _one_of(*names: str) -> Rule:
    def rule(value: Any) -> str:
        if value not in names:
            close = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.3)
            expected = ", ".join(f'"{name}"' for name in names)
            raise _wrong(f"expected one of {expected}, {_shown(value)}", f'"{(close or names)[0]}"')
        return str(value)

    return rule


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(f"expected true or false, {_shown(value)}", "true")
    return value


def _measured(units: dict[str, int], least: int, most: int, example: str) -> Rule:
    """A number of the first unit, or text with a unit; `units` says how many of the first unit each one is."""
    base = next(iter(units))

    def rule(value: Any) -> int:
        if isinstance(value, str):
            parts = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]+)\s*", value)
            factor = {unit.lower(): factor for unit, factor in units.items()}.get(parts[2].lower()) if parts else None
            if parts is None or factor is None:
                raise _wrong(f"expected a number with {' or '.join(units)}, {_shown(value)}", example)
            value = round(float(parts[1]) * factor)
        elif not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(f"expected int or text with a unit, {_shown(value)}", example)
        if not least <= value <= most:
            raise _wrong(f"expected {least} to {most} {base}, got {value}", example)
        return int(value)

    return rule


def _text(pattern: str, allowed: str, example: str) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong(f"expected str, {_shown(value)}", f'"{example}"')
        if not re.fullmatch(pattern, value):
            raise _wrong(f'expected {allowed}, got "{value[:60]}"', f'"{example}"')
        return value

    return rule


def _file_name(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(f"expected str, {_shown(value)}", '"task.py"')
    if reason := why_bad_name(value):
        raise _wrong(f'"{value[:60]}": {reason}', '"task.py"')
    return value


def _requirement(value: Any) -> str:
    try:
        Requirement(value if isinstance(value, str) and len(value) <= 100 else "")
    except InvalidRequirement:
        raise _wrong(f"expected a requirement as pip writes it, {_shown(value)}", '"scikit-learn>=1.4"') from None
    return str(value)


def _list_of(rule: Rule, most: int, example: str) -> Rule:
    def all_of(value: Any) -> list[str]:
        if not isinstance(value, list):
            fix = f'["{value}"]' if isinstance(value, str) and value else f'["{example}"]'
            raise _wrong(f"expected a list, {_shown(value)}", fix)
        if len(value) > most:
            raise _wrong(f"expected at most {most} entries, got {len(value)}", f'["{example}"]')
        try:
            return [rule(entry) for entry in value]
        except Wrong as wrong:
            raise _wrong(wrong.problem, f'["{example}"]') from None

    return all_of


_MEMORY = {"MB": 1, "MiB": 1, "GB": 1024, "GiB": 1024}
"""In MiB: people who write "1 GB" of memory mean 1024 of them."""

_BANDWIDTH = {"Mbit": 1, "Gbit": 1000}
"""In Mbit/s."""

_DATASET = _text(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "names of at most 64 letters, digits, dots and dashes, a letter or digit first",
    "imagenet-64",
)

# A job's id is its name, a dash and four characters, and an id has at most 64.
_NAME = _text(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,58}", "at most 59 letters, digits, dots and dashes, a letter or digit first", "my-job"
)

LONGEST_RESERVATION_S = 24 * 3600
"""What trackers and peers allow."""

COMPRESSIONS = ("auto", "none", "bf16", "8-bit", "4-bit", "2-bit", "1-bit")
"""How values travel between peers."""

SECTIONS: dict[str, dict[str, Rule]] = {
    "": {
        "name": _NAME,
        "kind": _text("train", '"train"', "train"),
        "task": _file_name,
        "data": _list_of(_file_name, MOST_FILES, "data.csv"),
    },
    "need": {
        "peers": _whole(1, MOST_MEMBERS, 4),
        "min-peers": _whole(1, MOST_MEMBERS, 1),
        "wait": _measured({"s": 1, "min": 60, "h": 3600, "d": 86400}, 0, 366 * 86400, '"5 min"'),
        "reserve": _measured({"s": 1, "min": 60, "h": 3600}, 600, LONGEST_RESERVATION_S, '"24 h"'),
        "cores": _whole(1, 4096, 1),
        "memory": _measured(_MEMORY, 1, 2**30, '"1 GB"'),
        "gpu-memory": _measured(_MEMORY, 0, 2**30, '"8 GB"'),
        "disk": _measured(_MEMORY, 0, 2**30, '"4 GB"'),
        "gflops": _number(1e9, "20"),
        "packages": _list_of(_requirement, 16, "scikit-learn>=1.4"),
        "datasets": _list_of(_DATASET, 16, "imagenet-64"),
        "upload": _measured(_BANDWIDTH, 0, 2**20, '"10 Mbit"'),
        "download": _measured(_BANDWIDTH, 0, 2**20, '"50 Mbit"'),
        "uptime": _measured({"s": 1, "min": 60, "h": 3600, "d": 86400}, 0, 366 * 86400, '"2 h"'),
        "max-rtt": _measured({"ms": 1, "s": 1000}, 1, 60_000, '"250 ms"'),
    },
    "train": {
        "rounds": _whole(1, 1_000_000, 20),
        "steps": _whole(1, 2**31, 10),
        "batch": _whole(1, 2**20, 32),
        "seed": _whole(0, 2**53, 0),
        "compression": _one_of(*COMPRESSIONS),
        "density": _number(1, "0.02", above_0=True),
        "exchange-every": _or_auto(_whole(1, 2**31, 10)),
        "seconds": _number(1e6, "60"),
        "overlap": _yes_or_no,
        "outer-learning-rate": _or_auto(_number(10, "0.7")),
        "outer-momentum": _or_auto(_number(1, "0.9", below_most=True)),
        "error-feedback": _number(1, "1.0"),
        "momentum-correction": _number(1, "0.9", below_most=True),
        "step-scaling": _yes_or_no,
        "clip": _number(1e9, "1.0"),
        "aggregation": _one_of(*AGGREGATIONS),
        "hostile": _or_auto(_whole(0, MOST_MEMBERS, 2)),
        "warm-up-rounds": _whole(0, 1_000_000, 4),
        "checks": _share_of_checks,
        "checkpoint": _every_round_or(_whole(1, 1_000_000, 5)),
        "keep-states": _whole(1, 1000, 2),
    },
}


def nearest(section: str, key: str) -> str:
    """The key that was probably meant by `key` in `section`, with its section when that is another; or empty."""
    written = key.replace("_", "-").lower()
    if here := difflib.get_close_matches(written, SECTIONS[section], n=1, cutoff=0.6):
        return here[0]
    places = {name: place for place in SECTIONS if place != section for name in SECTIONS[place]}
    close = difflib.get_close_matches(written, places, n=1, cutoff=0.75)
    if not close:
        return ""
    place = places[close[0]]
    return f"{close[0]}, in [{place}]" if place else f"{close[0]}, above every section"


def nearest_section(name: str) -> str:
    """The section that was probably meant by `[name]`, or empty."""
    close = difflib.get_close_matches(name.lower(), [section for section in SECTIONS if section], n=1)
    return f"[{close[0]}]" if close else ""
