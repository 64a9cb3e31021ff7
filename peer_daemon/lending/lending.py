"""The offer of this peer at this moment: one value that the row, the tokens and the leases read."""

from __future__ import annotations

import msgspec

from axonp2p.peers.capability import Capability
from peer_daemon.lending.offer import MOST_REFUSES


class Lending:
    """The offer. It changes when the owner is back or gone, and when the limits change."""

    def __init__(self, offer: Capability) -> None:
        self._whole = offer
        self._refuses = ""

    @property
    def offer(self) -> Capability:
        """The offer now; `refuses` says why nothing is lent."""
        if not self._refuses:
            return self._whole
        return msgspec.structs.replace(self._whole, refuses=self._refuses)

    @property
    def lasting(self) -> Capability:
        """The same without what passes by itself."""
        return self._whole

    def refuse(self, why: str) -> bool:
        """Take no new work because of `why`; "" takes work again. True when others have to hear of it.

        That the reason is another one is no news: with its figures it would be one every minute.
        """
        why = why[:MOST_REFUSES]
        news = bool(why) != bool(self._refuses)
        self._refuses = why if news or not why else self._refuses
        return news and not self._whole.refuses

    def change(self, offer: Capability) -> None:
        """The limits are others from now on; leases that live keep theirs."""
        self._whole = offer
