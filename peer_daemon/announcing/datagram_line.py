"""Sends a `DatagramTalk`'s datagrams from a socket of its own, and hears what comes back (a door)."""

from __future__ import annotations

import asyncio
import socket

from axonp2p.table.announce_datagrams import LARGEST_ANSWER, No
from axonp2p.transport.dial_policy import DialPolicy
from peer_daemon.announcing.datagram_talk import DatagramTalk, TakenByDatagram


async def converse(talk: DatagramTalk, host: str, port: int) -> TakenByDatagram | No | None:
    """Hold the conversation with that IP address and port to its end; None when nobody answers. Raises nothing.

    The socket is connected: the kernel drops what others send, and tells at once when nobody listens there.
    """
    loop = asyncio.get_running_loop()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.connect((host, port))
            while (turn := talk.send()) is not None:
                datagram, wait_s = turn
                line.send(datagram)
                if await _heard(loop, line, talk, wait_s) and talk.outcome is not None:
                    break
    except OSError:
        return None
    return talk.outcome


async def _heard(loop: asyncio.AbstractEventLoop, line: socket.socket, talk: DatagramTalk, wait_s: float) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            while not talk.hear(await loop.sock_recv(line, LARGEST_ANSWER + 1)):
                pass
    except TimeoutError:
        return False
    return True


async def address_of(host: str, port: int, seen_from: str, policy: DialPolicy | None) -> str:
    """An IP address of the tracker at `host`, of the family by which it saw this peer; empty when there is none.

    With a `policy` a stranger named the tracker.
    """
    six = ":" in seen_from
    family = socket.AF_INET6 if six else socket.AF_INET
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ""
    hosts = [str(address[0]) for *_, address in found]
    return next((one for one in hosts if policy is None or policy.allows(one)), "")
