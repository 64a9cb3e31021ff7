"""What a client may owe before this tracker reserves no more peers for it (pure).

What a reservation may cost is not known before its work is done: at most what its peers can compute in its time. So a
client is refused when it could end up owing more than it may, and is told all the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axonp2p.errors import Refused, SettingsError
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.receipt import Balance
from axonp2p.peers.capability import Capability

OPEN, LIMITED, EARNED = "open", "limited", "earned"


@dataclass(frozen=True)
class Owing:
    """The operator's rule."""

    rule: str = OPEN
    """`open`: anybody may owe any amount; `limited`: so many credits; `earned`: only what it earned itself."""
    most: float = 0.0
    """Credits, for `limited`."""

    def __post_init__(self) -> None:
        if self.rule not in (OPEN, LIMITED, EARNED) or self.most < 0:
            raise SettingsError(
                f'owing is "{self.rule}", owing-credits {self.most}',
                fix='[tracker] owing: "open", "limited" (with owing-credits) or "earned"',
            )

    def check(self, balance: Balance, offers: Iterable[Capability], seconds: float) -> None:
        """Raise `Refused` when work of these peers for so long could make a client with this balance owe too much."""
        if self.rule == OPEN:
            return
        cost = credits_of(round(sum(offer.gflops for offer in offers) * 1e9 * seconds))
        owed, earned = credits_of(balance.owed_flops), credits_of(balance.earned_flops)
        most = self.most if self.rule == LIMITED else 0.0
        if owed - earned + cost <= most:
            return
        allowed = f"{most:,.2f} credits more than it earned" if self.rule == LIMITED else "what it earned"
        raise Refused(
            f"this reservation may cost up to {cost:,.2f} credits; with {owed:,.2f} owed and {earned:,.2f} earned its"
            f" client would owe {owed - earned + cost:,.2f}, and this tracker lets it owe no more than {allowed}",
            fix="lend a machine with the same key to earn credits, reserve less, or ask another tracker",
        )


ANY_AMOUNT = Owing()
