"""trackers.json in a program's home: the trackers that it knows, over restarts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.wire.json_form import decode_json

log = get_logger(__name__)

LARGEST = 512 * 1024
"""Bytes; a file that is larger is not ours."""


def read_health(
    path: Path, configured: Iterable[str], now: float, chance: random.Random | None = None
) -> TrackerHealth:
    """The trackers of the settings, with those that earlier runs learnt. `now` is Unix time. Touches the disk.

    Raises `SettingsError` when one of `configured` is no address. A file that is damaged counts as none.
    """
    health = TrackerHealth(configured, chance)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) <= LARGEST:
            health.restore(decode_json(content, dict[str, Any]), now)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError) as error:
        log.warning("trackers of the last run are lost", path=str(path), reason=str(error))
    return health


def write_health(path: Path, health: TrackerHealth) -> None:
    """Keep it for the next run; what cannot be kept is said and lost. Touches the disk."""
    try:
        write_whole(path, msgspec.json.encode(health.as_plain()))
    except OSError as error:
        log.warning("trackers not kept", path=str(path), reason=error.strerror)
