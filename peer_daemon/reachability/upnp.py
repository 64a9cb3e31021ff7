"""Ask the router for a port, by UPnP (a door). Imported only where `axonp2p[upnp]` is installed."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from async_upnp_client.aiohttp import AiohttpRequester
from async_upnp_client.client import UpnpService
from async_upnp_client.client_factory import UpnpFactory
from async_upnp_client.exceptions import UpnpError
from async_upnp_client.profiles.igd import IgdDevice

from axonp2p.errors import Refused, Unreachable

SEARCH_S = 3
ANSWER_S = 5
NAMED = "axon"
"""The name that the router's own page shows."""
_CONNECTIONS = tuple(
    f"urn:schemas-upnp-org:service:{name}" for name in ("WANIPConnection:2", "WANIPConnection:1", "WANPPPConnection:1")
)


@dataclass(frozen=True)
class Router:
    """One that was found. `here` is this machine's address on its network."""

    service: UpnpService
    here: str

    async def forward(self, port: int, protocol: str, seconds: int) -> None:
        """Lead that port ("TCP" or "UDP") here for so long. Raises `Refused` or `Unreachable`."""
        await self._call(
            "AddPortMapping",
            NewRemoteHost="",
            NewExternalPort=port,
            NewProtocol=protocol,
            NewInternalPort=port,
            NewInternalClient=self.here,
            NewEnabled=True,
            NewPortMappingDescription=NAMED,
            NewLeaseDuration=seconds,
        )

    async def give_back(self, port: int, protocol: str) -> None:
        """Lead it here no more. Raises `Refused` or `Unreachable`."""
        await self._call("DeletePortMapping", NewRemoteHost="", NewExternalPort=port, NewProtocol=protocol)

    async def _call(self, action: str, **values: Any) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                await self.service.action(action).async_call(**values)
        except UpnpError as error:
            raise Refused("the router does not forward the port", cause=str(error) or type(error).__name__) from error
        except (OSError, TimeoutError, KeyError) as error:
            raise Unreachable("the router does not answer", cause=str(error) or type(error).__name__) from error


async def find_router() -> Router:
    """The router of this network, if it speaks UPnP. Raises `Unreachable`."""
    try:
        answers = await IgdDevice.async_search(timeout=SEARCH_S)
    except OSError as error:
        raise Unreachable("no router can be looked for", cause=str(error)) from error
    for answer in answers:
        location = str(answer.get("location", ""))
        # Anybody on the network can answer: nobody is asked at an address that is not the answerer's own.
        if _is_own_network(location, str(answer.get("_host", ""))):
            return await router_at(location)
    raise Unreachable("no router here speaks UPnP")


async def router_at(location: str) -> Router:
    """The router whose description stands at this address. Raises `Unreachable`."""
    try:
        async with asyncio.timeout(ANSWER_S):
            device = await UpnpFactory(AiohttpRequester(ANSWER_S)).async_create_device(location)
    except (UpnpError, OSError, TimeoutError) as error:
        raise Unreachable("the router does not describe itself", cause=str(error) or type(error).__name__) from error
    for kind in _CONNECTIONS:
        for service in device.all_services:
            if service.service_type == kind:
                return Router(service, _address_towards(location))
    raise Unreachable("the router forwards no ports")


def _is_own_network(location: str, answered_from: str) -> bool:
    try:
        host = urlsplit(location).hostname or ""
        return host == answered_from and ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def _address_towards(location: str) -> str:
    """This machine's address on the way to that place; nothing is sent."""
    parts = urlsplit(location)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect((parts.hostname or "", parts.port or 80))
        return str(line.getsockname()[0])
