"""Under which address others reach a tracker that listens everywhere."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import psutil


def reachable_host(host: str) -> str:
    """The address that others should use for a listener at `host`: for "everywhere", that of the usual way out."""
    wildcards = {"0.0.0.0": (socket.AF_INET, "192.0.2.1", "127.0.0.1"), "::": (socket.AF_INET6, "2001:db8::1", "::1")}  # noqa: S104
    if host not in wildcards:
        return host
    family, somewhere, here = wildcards[host]
    try:
        # Connecting a UDP socket sends nothing: it only asks the kernel which way it would go.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((somewhere, 9))
            found: str = probe.getsockname()[0]
            return found
    except OSError:  # a network without a way out, such as a laboratory's
        known = (one.address for found in psutil.net_if_addrs().values() for one in found if one.family == family)
        return elsewhere(known) or here


def elsewhere(addresses: Iterable[str]) -> str:
    """The first of a machine's own IP addresses that another machine could use, or an empty text."""
    for text in addresses:
        address = ipaddress.ip_address(text)
        if not (address.is_loopback or address.is_link_local):
            return text
    return ""
