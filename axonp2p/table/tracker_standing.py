"""The trust in other trackers, and how many strangers a book of trackers has room for (pure).

configured  the settings name it
vouched     a configured tracker's operator vouches for it in a signed list (`vouching`)
learnt      it introduced itself, or somebody named it

The first two are trusted: with tokens, receipts, relaying, what this machine's address is, how often it announces
itself. A learnt tracker serves for finding peers and nothing else: it costs nothing to run one, or a thousand.

Configured and vouched trackers always have room in a book. Learnt ones have half of it, and at most two are of one
network, an IPv4 /16 or IPv6 /32: what one hoster or one provider has, as Bitcoin Core groups its peers; a /24 is rented
by the hour. (Of names the last two labels count as a network.) One that is away, or has been of no use, gives way to a
newcomer at once; of the others one that is drawn by chance, once in ten minutes. The older half keeps its places while
it answers, so that a crowd of newcomers cannot push everybody out.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from axonp2p.table.records import MOST_TRACKERS
from axonp2p.transport.address import PinnedAddress, plain_address

MOST_LEARNT = MOST_TRACKERS // 2
MOST_OF_ONE_NETWORK = 2
LEAST_AGE_S = 600.0
"""For so long a learnt tracker that answers is safe; in seconds."""


class TrackerStanding(StrEnum):
    """Why a tracker is known."""

    CONFIGURED = "configured"
    VOUCHED = "vouched"
    LEARNT = "learnt"

    @property
    def is_trusted(self) -> bool:
        """Whether it is trusted with more than finding peers."""
        return self is not TrackerStanding.LEARNT


@dataclass(frozen=True, slots=True)
class LearntTracker:
    """One learnt tracker of a book. Times are Unix seconds."""

    address: str
    since: float
    """When it became known."""
    lives: bool
    """Whether it answered the last question, or was asked none yet."""
    useful: bool
    """Whether it ever did what a tracker is for."""


def network_of(address: str) -> str:
    """The network of a tracker's address, https://HOST:PORT#FINGERPRINT. Raises `SettingsError` when it is none."""
    host = plain_address(PinnedAddress.parse(address).host)
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return ".".join(host.lower().rstrip(".").split(".")[-2:])
    return str(ipaddress.ip_network((parsed, 16 if parsed.version == 4 else 32), strict=False))


def place_for(newcomer: str, learnt: Sequence[LearntTracker], now: float, chance: random.Random) -> str | None:
    """The address of the learnt tracker whose place one at the address `newcomer` takes.

    Empty when there is room without anybody's going; None when there is none. Raises `SettingsError` when `newcomer`
    is no address.
    """
    network = network_of(newcomer)
    rivals = [one for one in learnt if network_of(one.address) == network]
    if len(rivals) < MOST_OF_ONE_NETWORK:
        if len(learnt) < MOST_LEARNT:
            return ""
        rivals = list(learnt)
    rivals.sort(key=lambda one: one.since)
    for one in rivals:
        if not one.lives or (not one.useful and now - one.since >= LEAST_AGE_S):
            return one.address
    if max(one.since for one in learnt) > now - LEAST_AGE_S:
        return None
    return chance.choice(rivals[len(rivals) // 2 :]).address
