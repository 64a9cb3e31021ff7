"""Which leases live, on disk, so that a daemon that was killed gives none of their slots to two clients."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.wire.json_form import decode_json
from peer_daemon.lending.leases import Interrupted, LentSlot

log = get_logger(__name__)


def keep_leases(path: Path, leases: Iterable[LentSlot]) -> None:
    """Write down the living ones; blocks. A disk that is full costs this memory, not the lease."""
    living = [Interrupted(lease.reservation, lease.client, lease.kind, lease.until) for lease in leases]
    try:
        write_whole(path, msgspec.json.encode(living))
    except OSError as error:
        log.warning("leases not written down", path=str(path), reason=error.strerror)


def interrupted_leases(path: Path) -> list[Interrupted]:
    """Those that lived when the daemon was killed; none after it stopped by itself."""
    try:
        return decode_json(path.read_bytes(), list[Interrupted])
    except (OSError, msgspec.DecodeError):
        return []  # the first start, or a damaged file: then their clients are told that a slot is free, as all are
