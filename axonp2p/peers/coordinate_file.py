"""Where this machine stands in the network, kept over restarts: HOME/coordinate."""

from __future__ import annotations

import random
from pathlib import Path

from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.peers.coordinates import Position, steady

log = get_logger(__name__)


class CoordinateFile:
    """A `Position` and its file."""

    def __init__(self, file: Path, chance: random.Random) -> None:
        """Touches the disk."""
        self._file = file
        try:
            last = bytes.fromhex(file.read_text())
        except (OSError, ValueError):
            last = b""  # the first run, or damaged: a few round trips tell again
        self.position = Position(chance, last)
        self._published = last

    @property
    def told(self) -> bytes:
        """The coordinate, as others are told it; empty while it is unknown."""
        return self.position.told

    @property
    def published(self) -> bytes:
        """The same for rows, which do not follow every tremble."""
        self._published = steady(self._published, self.told)
        return self._published

    def heard(self, seconds: float, coordinate: bytes, who: str) -> None:
        """A round trip to the node at `who`, which told that it stands at `coordinate`."""
        self.position.heard(who, seconds, coordinate)

    def keep(self) -> None:
        """Write it down. Touches the disk."""
        if not self.told:
            return
        try:
            write_whole(self._file, self.told.hex().encode())
        except OSError as error:
            log.warning("coordinate not kept", path=str(self._file), reason=error.strerror)
