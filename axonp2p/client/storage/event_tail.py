"""The events of a job's file, as they are added to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from axonp2p.client.events.events import Event, from_line
from axonp2p.client.storage.job_store import JobFolder


class EventTail:
    """Those of one job, from the first one on."""

    def __init__(self, folder: JobFolder) -> None:
        self._file = folder.events
        self._offset = 0

    def fresh(self) -> Iterator[Event]:
        """What came since the last call. A line that is not whole yet waits for the next one."""
        try:
            with self._file.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                yield from_line(line)
