"""How large the database is, and how much room its disk has."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Disk:
    """Bytes."""

    database: int = 0
    free: int = 0


def look_at_disk(folder: Path, before: Disk) -> Disk:
    """Of the database in `folder`, its write-ahead log included; `before` where the disk does not answer."""
    try:
        size = sum(file.stat().st_size for file in folder.glob("tracker.db*"))
        return Disk(size, shutil.disk_usage(folder).free)
    except OSError:
        return replace(before, free=0)
