"""At which IP addresses others see this peer: whose word on it goes into the row (pure).

What stands in the row is dialled by everybody who wants this peer, so no stranger decides it alone. A trusted tracker's
word counts, and that of a learnt one when the address is one of this machine's own. Of other addresses two learnt
trackers of different networks must say the same, and they count only while no trusted one says anything.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.errors import SettingsError
from axonp2p.table.tracker_standing import network_of

MOST_TRACKERS_HEARD = 64
AGREEING = 2


@dataclass(frozen=True)
class _Word:
    host: str
    counts: bool
    """Whether it needs nobody else's."""


class SeenAddresses:
    """What trackers say, by their addresses."""

    def __init__(self) -> None:
        self._words: dict[str, _Word] = {}

    def heard(self, tracker: str, host: str, *, trusted: bool, own_hosts: Collection[str] = ()) -> None:
        """That tracker saw this peer at the IP address `host`; `own_hosts` are those of the machine's interfaces."""
        self._words[tracker] = _Word(host, trusted or host in own_hosts)
        if len(self._words) > MOST_TRACKERS_HEARD:
            del self._words[next(iter(self._words))]

    def forget(self, tracker: str) -> None:
        """Its word counts no more."""
        self._words.pop(tracker, None)

    def says_something_without(self, tracker: str) -> bool:
        """Whether another tracker has a word on it."""
        return bool(set(self._words) - {tracker})

    @property
    def hosts(self) -> list[str]:
        """Those that go into the row."""
        sure = [word.host for word in self._words.values() if word.counts]
        if sure:
            return list(dict.fromkeys(sure))
        voices: dict[str, set[str]] = {}
        for tracker, word in self._words.items():
            voices.setdefault(word.host, set()).add(_network(tracker))
        return [host for host, networks in voices.items() if len(networks) >= AGREEING]


def _network(tracker: str) -> str:
    try:
        return network_of(tracker)
    except SettingsError:
        return ""
