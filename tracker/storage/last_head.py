"""The head of the log as it was when something was last acknowledged, in a file of its own: `home/last-head`.

The database keeps heads too, but a database that loses its end (a damaged WAL, a disk that lies about fsync) loses them
with it, and then looks whole. Two slots are written in turn, in place: one write and one sync for each commit that adds
entries, and a write that was cut off leaves the other slot. The content of a slot is signed, so half of one is no head.
"""

from __future__ import annotations

import os
from pathlib import Path

from axonp2p.errors import PeerMisbehaved
from axonp2p.files import sync_folder
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.logs import get_logger
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed

log = get_logger(__name__)

FILE = "last-head"
_SLOT = 1024
_LIMIT = TreeHead.LIMIT + ENVELOPE_OVERHEAD


class LastHead:
    """The file. Its methods block, and one thread at a time calls them."""

    def __init__(self, home: Path, tracker: PeerId) -> None:
        self._path = home / FILE
        self._tracker = tracker
        self._next = 0

    def read(self) -> TreeHead | None:
        """The last one that is whole; None when there is none. A slot that cannot be read is told in the log."""
        try:
            content = self._path.read_bytes()[: 2 * _SLOT]
        except FileNotFoundError:
            return None
        except OSError as error:
            log.error("the last head cannot be read", path=str(self._path), reason=error.strerror)
            return None
        found = [(head, slot) for slot in (0, 1) if (head := self._in_slot(content[slot * _SLOT : (slot + 1) * _SLOT]))]
        if not found:
            log.error("the last head is damaged: entries that are lacking would not be seen", path=str(self._path))
            return None
        last, slot = max(found, key=lambda one: one[0].size)
        self._next = 1 - slot
        return last

    def write(self, signed: Signed[TreeHead]) -> None:
        """Raises `OSError`; returns once the disk has it."""
        content = encode(signed)
        slot = len(content).to_bytes(2, "big") + content
        is_new = not self._path.exists()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            if is_new:  # both slots at once: later writes need no room, also on a disk that is full by then
                os.pwrite(descriptor, bytes(2 * _SLOT), 0)
            os.pwrite(descriptor, slot.ljust(_SLOT, b"\0"), self._next * _SLOT)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync_folder(self._path.parent)
        self._next = 1 - self._next

    def put_aside(self) -> None:
        """Its word holds no more: the log goes on under a new name."""
        self._path.unlink(missing_ok=True)

    def _in_slot(self, slot: bytes) -> TreeHead | None:
        length = int.from_bytes(slot[:2], "big")
        if not 0 < length <= min(_LIMIT, len(slot) - 2):
            return None
        try:
            head = open_head(decode_as(slot[2 : 2 + length], Signed[TreeHead], _LIMIT))
        except PeerMisbehaved:
            return None
        return head if head.tracker == self._tracker else None
