"""When members are asked for the files that the task has written, and which of these need not be sent. Pure.

Files come while the job goes on, so that those of a member that is lost are here as far as they came; but they share
its line with the exchange, so they may take a tenth of the time at the most.
"""

from __future__ import annotations

from collections.abc import Collection

from axonp2p.jobs.output_messages import file_name_hash
from axonp2p.training.messages import MOST_HAVE, AskFiles

EVERY_S = 30.0
"""Between the end of an answer and the next question, at least ..."""
TIMES = 10.0
"""... and so many times as long as the answer took."""
GIVEN_UP_S = 600.0
"""After so long another question takes the place of one that has no answer: its member may have stood still."""


class FileRequests:
    """Of one life of a job, by rank; seconds are monotonic. `first` is above all numbers of an earlier life."""

    def __init__(self, first: int) -> None:
        self._number = first
        self._asked: dict[int, float] = {}
        """When those were asked that have not answered."""
        self._due: dict[int, float] = {}
        self._have: dict[int, dict[str, bytes]] = {}
        """The files of each member that came, by path, in the order in which it came."""

    def due(self, ranks: Collection[int], now: float) -> list[int]:
        """Those that are to be asked now. A member is asked for the first time `EVERY_S` after it was first seen."""
        found = []
        for rank in ranks:
            if rank in self._asked:
                if now >= self._asked[rank] + GIVEN_UP_S:
                    found.append(rank)
            elif now >= self._due.setdefault(rank, now + EVERY_S):
                found.append(rank)
        return found

    def ask(self, rank: int, now: float) -> AskFiles:
        """The question, which takes the place of an earlier one."""
        self._number += 1
        self._asked[rank] = now
        have = [file_name_hash(path, sha256) for path, sha256 in self._have.get(rank, {}).items()]
        return AskFiles(request=self._number, have=have[-MOST_HAVE:])

    def came(self, rank: int, path: str, sha256: bytes) -> None:
        """This file need not be sent again."""
        known = self._have.setdefault(rank, {})
        known.pop(path, None)
        known[path] = sha256
        while len(known) > MOST_HAVE:
            del known[next(iter(known))]

    def answered(self, rank: int, now: float) -> None:
        """All of them have come."""
        asked = self._asked.pop(rank, now)
        self._due[rank] = now + max(EVERY_S, TIMES * (now - asked))

    @property
    def open(self) -> set[int]:
        """Those that have not answered."""
        return set(self._asked)
