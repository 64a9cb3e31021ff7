"""Which kinds of job run here: those that the owner allows, as far as this machine's wall holds them (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.errors import SettingsError
from axonp2p.jobs.kinds import KINDS, JobKind


def check_kinds(names: Iterable[str]) -> None:
    """Raise `SettingsError` for a word that is no kind of job."""
    if unknown := [name for name in names if name not in KINDS]:
        raise SettingsError(
            f"kinds names {', '.join(map(repr, unknown))}",
            cause=f"the kinds of job that this version of Axon knows are: {', '.join(KINDS)}",
            fix=f"kinds = {list(KINDS)}".replace("'", '"') + "   (an empty list allows all)",
        )


def allowed_kinds(names: Iterable[str]) -> list[JobKind]:
    """Those that the owner's settings allow; no name allows all. Each name was checked."""
    chosen = set(names)
    return [kind for kind in KINDS.values() if kind.name in chosen or not chosen]


def why_not_held(kind: JobKind, landlock: int) -> str:
    """Why the wall of a machine with this version of Landlock cannot hold such a job; empty where it can."""
    if landlock or not kind.executes:
        return ""
    return "this kernel has no Landlock, which alone keeps a job from executing what it wrote itself"


def lent_kinds(names: Iterable[str], landlock: int) -> list[str]:
    """The names for the row."""
    return [kind.name for kind in allowed_kinds(names) if not why_not_held(kind, landlock)]
