"""A kind of job's part of job.toml: its own section, its keys above the sections, and the files that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from axonp2p.jobs.job_file_keys import Rule


@dataclass(frozen=True)
class Section:
    """One kind's."""

    name: str
    """The kind's."""
    spec: type[Any]
    """The whole of its job.toml: a `JobSpec` with a field of the section's name."""
    struct: type[msgspec.Struct]
    """The section."""
    rules: Mapping[str, Rule]
    """By the section's keys."""
    above: Mapping[str, Rule]
    """Keys above the sections that only this kind has."""
    foreign: Mapping[str, tuple[str, str]]
    """Keys that other programs have and this one has not: why, and what to write instead."""
    check_together: Callable[[Any], None]
    """Given the whole; raises `Wrong` for what is right by itself and wrong beside another key."""
    files: Callable[[Any], list[str]]
    """Names of the files that a bundle has because the section names them, given the whole."""
