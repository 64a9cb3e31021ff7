"""Which addresses may be dialled because somebody else named them (pure): the one place where that is decided.

Rows, rosters, contacts and tracker rows are strangers' words. A program that dialled whatever they name could be made
to scan the network that it stands in, or to knock at third parties. So an address is dialled

| address | when |
|---|---|
| global (what every machine on the internet reaches) | always |
| private (RFC 1918, RFC 6598, RFC 4193) | when this program is itself known by an address of the same network |
| loopback | when this program is known by loopback addresses alone: a swarm on one computer |
| link-local, multicast, reserved, unspecified, a name | never |

Addresses that the owner of this machine gave (a configured tracker) are not asked about here. Compare libp2p's
ConnectionGater and its rule to announce and dial private addresses in private networks only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from functools import lru_cache

NOT_REACHED = "not reached"
"""All that a stranger hears of a dial that failed: more would tell what answers on networks that are not theirs."""

NO_ADDRESS = "it names no address that may be dialled from here"

_NETWORK_BITS = {4: 16, 6: 48}
"""Of one private network: what a household or a site has, and far less than a whole private range."""
_TEREDO = ipaddress.ip_network("2001::/32")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL, _LOOPBACK = "global", "loopback"


class DialPolicy:
    """One program's, asked anew for each dial: the addresses by which it is known may change."""

    def __init__(self, known_by: Callable[[], Iterable[str]], *, tells_why: bool = True) -> None:
        """`known_by` gives the IP addresses under which others know this program.

        `tells_why`: whether whoever asked for a dial is this machine's owner, and may hear why it failed.
        """
        self._known_by = known_by
        self.tells_why = tells_why

    def allows(self, host: str) -> bool:
        """Whether that host may be dialled on a stranger's word."""
        return may_dial(host, self._known_by())

    def told(self, reason: str) -> str:
        """As much of `reason` as the asker may hear."""
        return reason if self.tells_why else NOT_REACHED


def is_address(host: str) -> bool:
    """Whether that is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def may_dial(host: str, known_by: Iterable[str]) -> bool:
    """Whether a program that is known by these IP addresses may dial `host` on a stranger's word."""
    network = _network_of(host)
    if network == _GLOBAL:
        return True
    own = [_network_of(one) for one in known_by]
    if network == _LOOPBACK:
        return bool(own) and all(one == _LOOPBACK for one in own)
    return bool(network) and network in own


@lru_cache(maxsize=16_384)
def _network_of(host: str) -> str:
    """`global`, `loopback`, the private network that the address is of, or nothing for what is never dialled."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _TEREDO or address.scope_id:
            return ""
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None:
            return _network_of(str(inner))
    if address.is_multicast or address.is_unspecified or address.is_link_local:
        return ""
    if address.is_loopback:
        return _LOOPBACK
    if address.is_reserved:
        return ""
    if address.is_global:
        return _GLOBAL
    return str(ipaddress.ip_network((address, _NETWORK_BITS[address.version]), strict=False))
