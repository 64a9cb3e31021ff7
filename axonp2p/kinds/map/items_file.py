"""The file of the bundle with a line of JSON for each item. Blank lines are none. Blocks."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

from axonp2p.errors import JobFileWrong
from axonp2p.kinds.map.messages import MOST_ITEMS

LONGEST_LINE = 16 * 2**20


class ItemsFile:
    """Opened once in the process that others are forked from: the places of lines are theirs too."""

    def __init__(self, path: Path) -> None:
        """Raises `JobFileWrong` for a file with no items, too many, or a line that is too long."""
        self._path = path
        self._places = array("Q")
        try:
            with path.open("rb") as file:
                place = 0
                while line := file.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        raise JobFileWrong(f"{path.name}: a line of more than 16 MiB", fix="put large items into files")
                    if line.strip():
                        self._places.append(place)
                    place += len(line)
        except OSError as error:
            raise JobFileWrong(f"{path} cannot be read: {error.strerror}") from error
        if not self._places or len(self._places) > MOST_ITEMS:
            problem = f"{len(self._places):,} items; expected 1 to {MOST_ITEMS:,}"
            raise JobFileWrong(f"{path.name}: {problem}", fix="write a line of JSON for each item")

    def __len__(self) -> int:
        return len(self._places)

    def read(self, item: int) -> Any:
        """The item. Raises `ValueError` for a line that is no JSON."""
        with self._path.open("rb") as file:
            file.seek(self._places[item])
            line = file.readline(LONGEST_LINE)
        try:
            return json.loads(line)
        except ValueError as error:
            raise ValueError(f"item {item} in {self._path.name} is no JSON: {error}") from None
