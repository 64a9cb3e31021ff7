"""The keys that are one client's: its own, and of each job the one that a host signs with when it carries the job on.

Whether a host ever did is not asked of the folders here, which may be older than the host's work, or taken back since:
the ledger knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axonp2p.hosting.host import job_key
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import balances
from axonp2p.ledger.receipt import MOST_BALANCES
from axonp2p.transport.http.http_caller import HttpCaller

YOU = "you"


def own_keys(key: PrivateKey, jobs: Iterable[str]) -> dict[PeerId, str]:
    """The client's own key first, then that of each of these jobs; each with what it is called."""
    return {key.peer_id: YOU} | {job_key(key, job).peer_id: job for job in jobs}


async def keys_with_receipts(caller: HttpCaller, keys: Sequence[PeerId]) -> list[PeerId]:
    """The first of `keys`, and those of the others that a tracker has receipts of."""
    first, others = list(keys[:1]), keys[1:]
    for start in range(0, len(others), MOST_BALANCES):
        told = await balances(caller, others[start : start + MOST_BALANCES])
        having = {balance.key for balance in told.balances if balance.receipts}
        first += [key for key in others[start : start + MOST_BALANCES] if key in having]
    return first
