"""The router's port for this peer: asked for at the start, again before it ends, and given back when the peer stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from axonp2p.errors import AxonError
from axonp2p.logs import get_logger

if TYPE_CHECKING:
    from peer_daemon.reachability.upnp import Router  # of an extra that may not be installed

log = get_logger(__name__)

LEASE_S = 3600
"""For how long the router is asked each time."""
AGAIN_S = 1500.0
"""How often it is asked, also when it said no: a router may have been changed."""
PROTOCOLS = ("TCP", "UDP")

NOT_INSTALLED = "not asked for a port: axonp2p[upnp] is not installed"
OFF = "not asked for a port: map-port is off"
ONE_ADDRESS = "not asked for a port: the peer listens on one address only"


class PortMapping:
    """One supervised task, `run`, after `open`."""

    def __init__(self, find: Callable[[], Awaitable[Router]] | None, why_not: str = "") -> None:
        """`find` is None when the router is not to be asked, for the reason `why_not`."""
        self.state = why_not
        """The state of the router, as the owner is told it."""
        self._find = find
        self._port = 0
        self._router: Router | None = None

    async def open(self, port: int) -> None:
        """Ask for that port. Raises nothing of the family; `state` says what came of it."""
        self._port = port
        if self._find is None:
            return
        try:
            router = await self._find()
            for protocol in PROTOCOLS:
                await router.forward(port, protocol, LEASE_S)
        except AxonError as error:
            self.state = error.in_a_line
            log.info("the router gives no port", reason=error.in_a_line)
            return
        if self._router is None:
            log.info("the router forwards the port", port=port)
        self._router = router
        self.state = f"forwards port {port} (UPnP)"

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        while True:
            await asyncio.sleep(AGAIN_S)
            await self.open(self._port)

    async def close(self) -> None:
        """Give the port back. Raises nothing of the family."""
        router, self._router = self._router, None
        if router is None:
            return
        for protocol in PROTOCOLS:
            try:
                await router.give_back(self._port, protocol)
            except AxonError as error:
                log.info("port not given back", reason=error.in_a_line)


def port_mapping(*, wanted: bool, everywhere: bool) -> PortMapping:
    """By UPnP where its package is installed and the owner does not mind; else one that only says why not.

    `everywhere`: the peer listens on all addresses of this machine.
    """
    if not (wanted and everywhere):
        return PortMapping(None, ONE_ADDRESS if wanted else OFF)
    if find_spec("async_upnp_client") is None:
        return PortMapping(None, NOT_INSTALLED)
    from peer_daemon.reachability.upnp import find_router

    return PortMapping(find_router)
