"""Which leases a job holds, on disk, so that the next life of the job finds its peers where the last one left them.

And which jobs of this home hold any. A token is of use only to who has the client's key, which is not here. The folder
is the client's own all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from axonp2p.client.leasing.hiring import GRACE_S
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.leasing.slot_holders import SlotHolder
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import AxonError
from axonp2p.files import write_whole
from axonp2p.jobs.lifecycle import is_over
from axonp2p.logs import get_logger
from axonp2p.reservation.token import Token
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from axonp2p.wire.json_form import decode_json, ready_to_decode
from axonp2p.wire.quantities import Count
from axonp2p.wire.ranks import MOST_RANKS

log = get_logger(__name__)


class KeptLease(msgspec.Struct, frozen=True, kw_only=True):
    """All that it takes to find a peer again, and to show it its promise."""

    rank: Count
    name: str
    row: bytes
    token: bytes
    uuid: str
    issued_by: str
    tracker: str

    def opened(self) -> tuple[Row, Reservation]:
        """The row and the promise. Raises `MalformedMessage`."""
        token: Signed[Token] = decode_as(self.token, Signed[Token], Token.LIMIT + ENVELOPE_OVERHEAD)
        return decode_as(self.row, Row, Row.LIMIT), Reservation(self.uuid, token, self.issued_by, self.tracker)


ready_to_decode(list[KeptLease])


def kept_of(leases: Mapping[int, Lease]) -> list[KeptLease]:
    """The facts needed of the leases of these ranks."""
    return [
        KeptLease(
            rank=rank,
            name=lease.name,
            row=encode(lease.row),
            token=encode(lease.promise.token),
            uuid=lease.promise.uuid,
            issued_by=lease.promise.issued_by,
            tracker=lease.promise.tracker,
        )
        for rank, lease in leases.items()
    ]


def keep_leases(path: Path, leases: Mapping[int, Lease]) -> None:
    """Write down those of these ranks. A disk that is full costs this memory, not the job."""
    try:
        write_whole(path, msgspec.json.encode(kept_of(leases)))
    except OSError as error:
        log.warning("leases not written down", path=str(path), reason=error.strerror)


def kept_leases(path: Path) -> list[KeptLease]:
    """Those that the last life of the job held when it was killed; none when it ended by itself."""
    try:
        kept = decode_json(path.read_bytes(), list[KeptLease])
    except (OSError, msgspec.DecodeError):
        return []
    ranks = {one.rank for one in kept if 0 <= one.rank < MOST_RANKS}
    return kept if len(ranks) == len(kept) else []


def slot_holders(store: JobStore, now: float, without: str) -> list[SlotHolder]:
    """All but the job `without`. `now` is in Unix seconds. Blocks.

    A job whose program is dead is left out once it has given no sign of life for longer than its peers wait.
    """
    found = []
    for folder in store.with_leases():
        with suppress(AxonError, OSError):
            runs = folder.is_held()
            waits = not is_over(folder.read().state) and now - _last_sign(folder) <= GRACE_S
            if folder.path.name != without and (runs or waits):
                peers = frozenset(one.opened()[0].peer for one in kept_leases(folder.leases))
                found.append(SlotHolder(folder.path.name, peers, runs))
    return found


def _last_sign(folder: JobFolder) -> float:
    files = (folder.record_file, folder.events, folder.leases, *folder.logs.glob("*.log"))
    return max(file.stat().st_mtime for file in files if file.exists())
