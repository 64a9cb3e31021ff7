"""The keys of job.toml that every kind of job has, and the rules by which values are read. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from axonp2p.blobs.manifest import MOST_FILES
from axonp2p.jobs.file_names import why_bad_name
from axonp2p.jobs.kinds import KINDS
from axonp2p.plain_text import AmountUnit, amount_of, rounded
from axonp2p.wire.quantities import MOST_CLAUSES
from axonp2p.wire.ranks import MOST_MEMBERS

Rule = Callable[[Any], Any]
"""Takes what stands in the file, returns the value in our unit, raises `Wrong`."""
Sections = Mapping[str, Mapping[str, Rule]]
"""By section and key; the section "" is what stands above all others."""


class Wrong(Exception):
    """A value that a rule does not take: why, and a value that it would take. `jobs.spec` adds the line."""

    def __init__(self, section: str, key: str, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.section = section
        self.key = key
        self.problem = problem
        self.fix = fix


def wrong_value(problem: str, fix: str) -> Wrong:
    """The error of a rule: why, and a value that it would take. The reader adds section and key."""

    return Wrong("", "", problem, fix)


def shown(value: Any) -> str:
    """A value with its type, as a person would look for it in the file."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value[:60]}"'
    else:
        text = repr(value)[:60]
    return f"got {type(value).__name__} ({text})"


def whole(least: int, most: int, example: int) -> Rule:
    """A whole number within both bounds."""

    def rule(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            meant = re.fullmatch(r"\s*([0-9]{1,18})\s*", value) if isinstance(value, str) else None
            fits = meant is not None and least <= int(meant[1]) <= most
            raise wrong_value(f"expected int, {shown(value)}", str(int(meant[1]) if meant and fits else example))
        if not least <= value <= most:
            raise wrong_value(f"expected {least} to {most}, got {value}", str(min(max(value, least), most)))
        return value

    return rule


def number(most: float, example: str, *, above_0: bool = False, below_most: bool = False) -> Rule:
    """A number from 0, or above it, to `most`, or below it."""

    def rule(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_value(f"expected a number, {shown(value)}", example)
        if not 0 <= value <= most or (above_0 and value == 0) or (below_most and value == most):
            range_ = f"{'above 0' if above_0 else '0'} to {'below ' if below_most else ''}{most:g}"
            raise wrong_value(f"expected {range_}, got {value}", example)
        return float(value)

    return rule


def or_auto(rule: Rule) -> Rule:
    """`"auto"` is None: it is chosen while the job runs."""

    def either(value: Any) -> Any:
        return None if value == "auto" else rule(value)

    return either


def one_of(*names: str) -> Rule:
    """One of these words."""

    def rule(value: Any) -> str:
        if value not in names:
            close = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.3)
            expected = ", ".join(f'"{name}"' for name in names)
            raise wrong_value(f"expected one of {expected}, {shown(value)}", f'"{(close or names)[0]}"')
        return str(value)

    return rule


def yes_or_no(value: Any) -> bool:
    """True or false."""

    if not isinstance(value, bool):
        raise wrong_value(f"expected true or false, {shown(value)}", "true")
    return value


_AMOUNTS: dict[AmountUnit, str] = {
    "MiB": "a size such as 512 MiB, 4 GiB or 4 GB",
    "Mbit/s": "a rate such as 10 Mbit or 1 Gbit",
    "ms": "a time such as 250 ms",
    "s": "a time such as 90 s, 5 min or 2 h",
}


def measured(unit: AmountUnit, least: int, most: int, example: str) -> Rule:
    """A number of that unit, or text with a unit."""

    def rule(value: Any) -> int:
        if isinstance(value, str):
            amount = amount_of(value, unit)
            if amount is None:
                raise wrong_value(f"expected {_AMOUNTS[unit]}, {shown(value)}", f'"{example}"')
            value = rounded(amount)
        elif not isinstance(value, int) or isinstance(value, bool):
            raise wrong_value(f"expected int or text with a unit, {shown(value)}", f'"{example}"')
        if not least <= value <= most:
            raise wrong_value(f"expected {least} to {most} {unit}, got {value}", f'"{example}"')
        return int(value)

    return rule


def text(pattern: str, allowed: str, example: str) -> Rule:
    """Text that fits the pattern; `allowed` says it for people."""

    def rule(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_value(f"expected str, {shown(value)}", f'"{example}"')
        if not re.fullmatch(pattern, value):
            raise wrong_value(f'expected {allowed}, got "{value[:60]}"', f'"{example}"')
        return value

    return rule


def file_name(value: Any) -> str:
    """The name of a file in the job's folder."""
    if not isinstance(value, str):
        raise wrong_value(f"expected str, {shown(value)}", '"task.py"')
    if reason := why_bad_name(value):
        raise wrong_value(f'"{value[:60]}": {reason}', '"task.py"')
    return value


def requirement(value: Any) -> str:
    """A requirement as pip writes it."""
    try:
        Requirement(value if isinstance(value, str) and len(value) <= 100 else "")
    except InvalidRequirement:
        raise wrong_value(f"expected a requirement as pip writes it, {shown(value)}", '"scikit-learn>=1.4"') from None
    return str(value)


def _had_by_peers(value: Any) -> str:
    """A requirement that trackers compare with what peers have."""
    if len(Requirement(requirement(value)).specifier) > MOST_CLAUSES:
        problem = f"expected a requirement of at most {MOST_CLAUSES} clauses, {shown(value)}"
        raise wrong_value(problem, '"scikit-learn>=1.4"')
    return str(value)


_MOST_TOLD = 4
"""Entries of a list of which it is said what is wrong with them."""


def list_of(rule: Rule, most: int, example: str) -> Rule:
    """A list of at most so many entries that `rule` takes."""

    def all_of(value: Any) -> list[str]:
        if not isinstance(value, list):
            fix = f'["{value}"]' if isinstance(value, str) and value else f'["{example}"]'
            raise wrong_value(f"expected a list, {shown(value)}", fix)
        if len(value) > most:
            raise wrong_value(f"expected at most {most} entries, got {len(value)}", f'["{example}"]')
        good: list[str] = []
        problems: dict[str, None] = {}
        for entry in value:
            try:
                good.append(rule(entry))
            except Wrong as wrong:
                problems[wrong.problem] = None
        if problems:
            kept = ", ".join(json.dumps(entry, ensure_ascii=False) for entry in good) or f'"{example}"'
            raise wrong_value("; ".join([*problems][:_MOST_TOLD]), f"[{kept}]")
        return good

    return all_of


_DATASET = text(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "names of at most 64 letters, digits, dots and dashes, a letter or digit first",
    "imagenet-64",
)

_GPU_CAPABILITY = text(r"[0-9]{1,3}\.[0-9]{1,2}", "a compute capability as NVIDIA counts them", "8.0")

# A job's id is its name, a dash and four characters, and an id has at most 64.
_LONGEST_NAME = 59


def _name(value: Any) -> str:
    """The fix puts a wrong name right: "my first job" could be "my-first-job"."""
    near = re.sub(r"[^A-Za-z0-9._-]+", "-", value).strip("-._")[:_LONGEST_NAME] if isinstance(value, str) else ""
    allowed = f"at most {_LONGEST_NAME} letters, digits, dots and dashes, a letter or digit first"
    name: str = text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,58}", allowed, near or "my-job")(value)
    return name


def installed(value: Any) -> str:
    """A requirement of a package that travels: from an index, by its name."""
    if Requirement(requirement(value)).url:
        raise wrong_value(f"a package comes from an index, not from an address, {shown(value)}", '"imagehash==4.3.2"')
    return str(value)


MOST_INSTALLED = 32
"""Packages that job.toml may name; what they need comes beside."""
LONGEST_RESERVATION_S = 24 * 3600
"""The values that trackers and peers allow."""

COMMON: Sections = {
    "": {
        "name": _name,
        "kind": one_of(*KINDS),
        "data": list_of(file_name, MOST_FILES, "data.csv"),
    },
    "need": {
        "peers": whole(1, MOST_MEMBERS, 4),
        "min-peers": whole(1, MOST_MEMBERS, 1),
        "wait": measured("s", 0, 366 * 86400, "5 min"),
        "reserve": measured("s", 600, LONGEST_RESERVATION_S, "24 h"),
        "cores": whole(1, 4096, 1),
        "memory": measured("MiB", 1, 2**30, "1 GiB"),
        "gpu-memory": measured("MiB", 0, 2**30, "8 GiB"),
        "gpu-capability": _GPU_CAPABILITY,
        "disk": measured("MiB", 0, 2**30, "4 GiB"),
        "gflops": number(1e9, "20"),
        "packages": list_of(_had_by_peers, 16, "scikit-learn>=1.4"),
        "datasets": list_of(_DATASET, 16, "imagenet-64"),
        "upload": measured("Mbit/s", 0, 2**20, "10 Mbit"),
        "download": measured("Mbit/s", 0, 2**20, "50 Mbit"),
        "uptime": measured("s", 0, 366 * 86400, "2 h"),
        "max-rtt": measured("ms", 1, 60_000, "250 ms"),
    },
    "packages": {
        "install": list_of(installed, MOST_INSTALLED, "imagehash==4.3.2"),
        "lock": file_name,
    },
}
