"""The files of a job's folder: metrics as people read them, and what to say of a disk that takes no more."""

from __future__ import annotations

import csv
from pathlib import Path

from axonp2p.errors import SettingsError


def read_metrics(path: Path) -> list[dict[str, str]]:
    """The lines of a metrics.csv; none when there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def not_writable(path: Path, error: OSError) -> SettingsError:
    """What to tell of a disk that takes no more, or a folder that is not ours."""
    return SettingsError(
        f"cannot write to {error.filename or path}: {error.strerror or error}",
        fix="free some space, or choose another home with --home DIR",
    )


def in_order(columns: list[str]) -> list[str]:
    """Columns of metrics.csv as people read them: round and loss, the held-out metrics, then costs."""
    first, last = ["round", "loss"], ["samples", "seconds", "bytes"]
    between = [name for name in columns if name not in (*first, *last)]
    return [name for name in (*first, *between, *last) if name in columns]
