"""The trackers that this one knows, kept in `home/trackers.json`: ids by address, and lists of vouchers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from axonp2p.files import write_whole
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.table.records import TrackerAddress, Vouching
from axonp2p.table.vouching import MOST_VOUCHERS
from axonp2p.wire.envelope import Signed
from axonp2p.wire.json_form import decode_json

log = get_logger(__name__)

_MOST_BYTES = 1024 * 1024


class Remembered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    trackers: Annotated[dict[TrackerAddress, PeerId], msgspec.Meta(max_length=256)] = {}
    vouchings: Annotated[list[Signed[Vouching]], msgspec.Meta(max_length=MOST_VOUCHERS)] = []


class RememberedTrackers:
    """The file. A failed read or write is told in the log: the trackers of the settings are still there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = Remembered()

    def read(self) -> Remembered:
        """The trackers and vouchings that were kept; none when there is no file or it is damaged. Blocks."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MOST_BYTES)
            self._written = decode_json(text, Remembered)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            log.warning("trackers not remembered", path=str(self._path), reason=str(error))
        return self._written

    def write(self, trackers: dict[str, PeerId], vouchings: list[Signed[Vouching]]) -> None:
        """Keep these if they are others than before. Blocks."""
        wanted = Remembered(trackers, vouchings)
        if wanted == self._written:
            return
        try:
            write_whole(self._path, msgspec.json.encode(wanted))
            self._written = wanted
        except OSError as error:
            log.warning("trackers not kept", path=str(self._path), reason=error.strerror)
