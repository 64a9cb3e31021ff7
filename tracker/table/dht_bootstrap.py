"""Where a newcomer finds the DHT (pure): nodes of living rows, first those from different networks.

Nodes in one network are perhaps one machine, and down together: whoever is given twenty of them joins nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from axonp2p.errors import SettingsError
from axonp2p.table.records import MOST_CONTACTS, Row
from axonp2p.transport.address import join_host_port, split_host_port

ROWS_DRAWN = 5 * MOST_CONTACTS
"""From so many rows the contacts are chosen."""


def contacts_of(rows: Iterable[Row]) -> list[str]:
    """HOST:PORT (UDP) of the nodes that these rows name, one a peer; the first of each /16 (IPv6: /32) first."""
    first: dict[str, str] = {}
    others: list[str] = []
    for row in rows:
        for address in row.addresses[:1]:
            host = _host(address)
            network = _network(host)
            if not row.dht or not network:
                continue
            contact = join_host_port(host, row.dht)
            if first.setdefault(network, contact) != contact:
                others.append(contact)
    return list(dict.fromkeys([*first.values(), *others]))[:MOST_CONTACTS]


def _host(address: str) -> str:
    try:
        return split_host_port(address)[0]
    except SettingsError:
        return ""


def _network(host: str) -> str:
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return ""  # a name: a DHT knows literal addresses only
    return str(ipaddress.ip_network((parsed, 16 if parsed.version == 4 else 32), strict=False))
