"""The UDP port of a tracker: announces in, short answers out. The answers are `datagram_desk`'s."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress

from aiohttp import web

from axonp2p.errors import PortTaken, SettingsError
from axonp2p.table.announce_datagrams import DATAGRAMS_PATH, AnnounceQuestion
from axonp2p.table.dht.rpc.rpc import LARGEST_DATAGRAM
from axonp2p.transport.address import join_host_port, plain_address
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.http.http_replies import reply
from axonp2p.transport.sessions.proxy_header import Networks, is_within
from tracker.api.datagram_desk import DatagramDesk

READ_TOGETHER = 32
"""Datagrams that are read before others in the program have their turn."""
UNPROVEN_A_SECOND = 8_000.0
UNPROVEN_BURST = 256.0
"""Datagrams that prove nothing: over so many the door rests, so a flood, however fast it comes, takes some 30 % of a
core from callers by HTTPS. A million peers, who ask for 833 tokens a second, never notice."""
REST_S = 0.005
"""Meanwhile the kernel keeps what comes, and drops what it has no room for. A shorter rest costs more wakes."""
RECEIVE_BUFFER = 4 * 2**20
"""Bytes that the kernel keeps for us, as far as it allows that."""
_TRIES = 20
"""To find a number that is free for TCP and UDP alike."""

_Address = tuple[str, int]


class DatagramDoor:
    """Answers at a port; and GET /v1/datagrams, which says that it does."""

    def __init__(self, desk: DatagramDesk, proxies: Networks) -> None:
        """Datagrams from `proxies` are dropped: nobody says whom those pass on."""
        self._desk = desk
        self._proxies = proxies
        self._unproven = RateLimit(UNPROVEN_A_SECOND, UNPROVEN_BURST)
        self._socket: socket.socket | None = None

    def add_routes(self, app: web.Application) -> None:
        """GET /v1/datagrams."""
        app.router.add_get(DATAGRAMS_PATH, self._tickets)

    async def open(self, host: str, port: int) -> int:
        """Take the UDP port; for port 0 one whose number is free for TCP as well. Returns it.

        Raises `PortTaken` or `SettingsError`.
        """
        try:
            family, _, _, _, address = (
                await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            )[0]
            self._socket = _bound(family, address) if port else _free_for_both(family, address)
        except OSError as error:
            raise _cannot_open(host, port, error) from error
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        return int(self._socket.getsockname()[1])

    async def close(self) -> None:
        """Answer nobody any more. Harmless when it is not open."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    async def _tickets(self, request: web.Request) -> web.Response:
        return reply(self._desk.ticket())

    def _read(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(READ_TOGETHER):
            if self._socket is None:
                return
            try:
                datagram, sender = self._socket.recvfrom(LARGEST_DATAGRAM + 1)
            except BlockingIOError:
                return
            except OSError:
                continue  # word of an answer that did not arrive: the asker's business
            if not self._heard(datagram, sender) and not self._unproven.allows("all", loop.time()):
                loop.remove_reader(self._socket)
                loop.call_later(REST_S, self._read_again)
                return

    def _read_again(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _heard(self, datagram: bytes, sender: _Address) -> bool:
        """Whether it is an announce that is taken in now."""
        address = plain_address(sender[0])
        if self._proxies and is_within(address, self._proxies):
            return False
        found = self._desk.hear(datagram, address)
        if isinstance(found, AnnounceQuestion):
            self._desk.take(found, address, lambda answer: self._send(answer, sender))
            return True
        if found:
            self._send(found, sender)
        return False

    def _send(self, answer: bytes, sender: _Address) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the kernel takes no more now, or there is no way there: it is lost, as any may be
                self._socket.sendto(answer, sender)


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    found = socket.socket(family, socket.SOCK_DGRAM)
    try:
        found.setblocking(False)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind(address)
    except BaseException:
        found.close()
        raise
    return found


def _free_for_both(family: int, address: tuple[object, ...]) -> socket.socket:
    for left in reversed(range(_TRIES)):
        found = _bound(family, address)
        try:
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(found.getsockname())
            return found
        except OSError:
            found.close()
            if not left:
                raise
    raise AssertionError("unreachable")


def _cannot_open(host: str, port: int, error: OSError) -> SettingsError:
    where = f"{join_host_port(host, port)} (UDP)"
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"something else already listens at {where}",
            fix="stop it, choose another port with --listen HOST:PORT, or take announces by HTTPS alone: "
            "[tracker] datagrams = false",
        )
    return SettingsError(
        f"cannot listen at {where}",
        cause=error.strerror or str(error),
        fix="choose another address with --listen HOST:PORT",
    )
