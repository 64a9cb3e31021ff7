"""Words of several sources on the same peers, made one: the newest row of each wins, and who had it is kept (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Row

DHT = "dht"
"""The name of the DHT among the sources; a tracker is named as its line is: `tracker HOST:PORT`."""


@dataclass(frozen=True)
class SourceAnswer:
    """The answer of one source, or why it gave none."""

    source: str
    """`tracker HOST:PORT` or `dht`."""
    seconds: float
    """Until it answered, failed, or was not waited for any longer."""
    rows: tuple[Row, ...] = ()
    """Checked: signed by their peers, not expired, none withdrawn."""
    fitting: int = 0
    """Peers that meet the need, by its word."""
    alive: int = 0
    """Peers that it knows, by its word; for the DHT as many as it showed."""
    dropped: int = 0
    """Rows that it showed although they are forged, expired or malformed."""
    trouble: str = ""
    """Why it said nothing; empty when it answered."""


@dataclass(frozen=True)
class SeenRow:
    """A peer's newest row, and which sources had that very one."""

    row: Row
    sources: tuple[str, ...]
    stale: tuple[str, ...] = ()
    """Sources that had only an older one."""


@dataclass(frozen=True)
class Sight:
    """The table, as far as its sources showed it."""

    rows: list[SeenRow]
    """One a peer, in the order in which sources gave them."""
    answers: list[SourceAnswer]
    """One a source that was asked, the first to answer first."""
    silent: dict[PeerId, str]
    """Peers that the DHT named but that did not give their row, with the reason."""
    complete: bool
    """Whether every source has answered or failed; no when there was enough before, or some took too long."""

    @property
    def heard(self) -> list[SourceAnswer]:
        """The sources that answered."""
        return [answer for answer in self.answers if not answer.trouble]

    @property
    def fitting(self) -> int:
        """Peers that meet the need, by the source that knows most."""
        return max([len(self.rows), *(answer.fitting for answer in self.answers)])

    @property
    def alive(self) -> int:
        """Living peers, by the source that knows most."""
        return max([len(self.rows), *(answer.alive for answer in self.answers)])


def merged(answers: Iterable[SourceAnswer]) -> list[SeenRow]:
    """The newest row of every peer, in the order in which peers were first shown."""
    newest: dict[PeerId, Row] = {}
    had: dict[PeerId, dict[str, int]] = {}
    for answer in answers:
        for row in answer.rows:
            had.setdefault(row.peer, {})[answer.source] = row.sequence
            known = newest.get(row.peer)
            if known is None or row.sequence > known.sequence:
                newest[row.peer] = row
    return [
        SeenRow(
            row=row,
            sources=tuple(source for source, number in had[peer].items() if number == row.sequence),
            stale=tuple(source for source, number in had[peer].items() if number < row.sequence),
        )
        for peer, row in newest.items()
    ]
