"""What no program does without that encrypts what it sends and names what it has: TLS and BLAKE3 alone, in memory.

Both are measured here and now, on one core, without a socket, a process or a thread beside them.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.training.tuning.costs import dense_bytes
from axonp2p.transport.tls import client_context

_RECORD = 256 * 1024
"""Bytes handed over at a time."""
_RECORDS, _TIMES = 64, 5


@dataclass(frozen=True)
class Floor:
    """Seconds of one core."""

    tls: float
    """A byte, from one end to the other."""
    hash: float
    """A byte."""

    def exchange_s(self, values: int, members: int, cores: int) -> float:
        """What all members need at least to exchange and to name so many float32 values, on so many cores.

        They send what any all-reduce sends, and each hashes the weights that come of it.
        """
        return (dense_bytes(values, members) * self.tls + members * 4 * values * self.hash) / min(cores, members)


def measure() -> Floor:
    """The best of some tries."""
    data = os.urandom(_RECORD)
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(PrivateKey.generate(), Path(folder, "own.pem"))
        sender, receiver, under_way = _connected(certificate.server_context(), client_context(verified=False))

    def carry() -> None:
        sender.write(data)
        receiver_in, sender_out = under_way
        receiver_in.write(sender_out.read())
        left = len(data)
        while left:
            left -= len(receiver.read(left))

    return Floor(_seconds_a_byte(carry), _seconds_a_byte(lambda: blake3(data).digest()))


def _seconds_a_byte(do: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_TIMES):
        began = time.perf_counter()
        for _ in range(_RECORDS):
            do()
        best = min(best, time.perf_counter() - began)
    return best / (_RECORDS * _RECORD)


def _connected(
    server: ssl.SSLContext, client: ssl.SSLContext
) -> tuple[ssl.SSLObject, ssl.SSLObject, tuple[ssl.MemoryBIO, ssl.MemoryBIO]]:
    """A sender and a receiver whose handshake is done; the receiver's input and the sender's output."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    from_client, from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = client.wrap_bio(to_client, from_client)
    listener = server.wrap_bio(to_server, from_server, server_side=True)
    waiting = [caller, listener]
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
            to_server.write(from_client.read())
            to_client.write(from_server.read())
    return caller, listener, (to_server, from_client)
