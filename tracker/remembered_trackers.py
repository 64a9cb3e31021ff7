"""The trackers that this one has learnt of, kept over a restart in `home/trackers.json`: a list of addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.table.records import MOST_TRACKERS, TrackerAddress
from axonp2p.wire.json_form import decode_json

log = get_logger(__name__)

_MOST_BYTES = 16 * 1024


class RememberedTrackers:
    """The file. What cannot be read or written is told in the log: the trackers of the settings are still there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: list[str] = []

    def read(self) -> list[str]:
        """The addresses; none when there is no file or it is damaged. Blocks."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MOST_BYTES)
            kind = Annotated[list[TrackerAddress], msgspec.Meta(max_length=MOST_TRACKERS)]
            self._written = decode_json(text, kind)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            log.warning("trackers not remembered", path=str(self._path), reason=str(error))
        return list(self._written)

    def write(self, addresses: list[str]) -> None:
        """Keep these if they are others than before. Blocks."""
        if addresses == self._written:
            return
        try:
            write_whole(self._path, msgspec.json.encode(addresses))
            self._written = addresses
        except OSError as error:
            log.warning("trackers not kept", path=str(self._path), reason=error.strerror)
