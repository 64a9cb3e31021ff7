"""How the lanes of one program are opened: those it dials, and those it has offered and awaits on its port (a door).

A caller costs nothing here before it was offered a lane: the preamble is looked for only while the caller's household
has an offer that nobody has taken, and there are never more such connections than offers. TLS is spoken on a thread,
which is bounded with those of all lanes.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from axonp2p.errors import Busy
from axonp2p.identity.certificate import Certificate
from axonp2p.logs import get_logger
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.lanes.lane import BulkLane
from axonp2p.transport.lanes.wire import Wire, tune
from axonp2p.transport.messages import LANE_TOKEN_BYTES
from axonp2p.transport.sessions.before_tls import PREAMBLE
from axonp2p.transport.tls import client_context

log = get_logger(__name__)

MOST_LANES = 64
"""Of one program, both directions: a thread and some 150 kB each. More links than that use their sessions."""
OFFER_S = 10.0
"""How long an offer is good for."""
HANDSHAKE_S = 5.0
"""How long each step of the way to a lane may take: to connect, TLS, the token, the answer."""
ACCEPTED = b"\x01"


@dataclass
class _Offer:
    lane: BulkLane
    source: str
    expires: asyncio.TimerHandle


class BulkLanes:
    """Those of one program. One loop uses it; what its threads touch is under a lock."""

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._offers: dict[bytes, _Offer] = {}
        self._calling: Counter[str] = Counter()
        """Connections that have not shown a token yet, by household."""
        self._threads = 0

    def __len__(self) -> int:
        return self._threads

    def renew(self, certificate: Certificate) -> None:
        """New lanes show this certificate."""
        self._certificate, self._tls = certificate, None

    # --- the side that is called ---

    def offer(self, lane: BulkLane, source: str) -> bytes:
        """A token, by which a caller of that household opens `lane` within `OFFER_S`. Raises `Busy`."""
        self._check_room()
        token = os.urandom(LANE_TOKEN_BYTES)
        expires = asyncio.get_running_loop().call_later(OFFER_S, self.withdraw, token)
        with self._lock:
            self._offers[token] = _Offer(lane, source, expires)
        return token

    def withdraw(self, token: bytes) -> None:
        """That offer is good no more. Harmless when it was taken."""
        if (offer := self._taken(token)) is not None:
            offer.expires.cancel()
            offer.lane.withdrawn()

    def awaits(self, source: str) -> bool:
        """Whether a caller of that household may bring a lane now."""
        with self._lock:
            offers = sum(offer.source == source for offer in self._offers.values())
            return self._threads < MOST_LANES and self._calling[source] < offers

    def take(self, line: socket.socket, source: str, over: Callable[[], None]) -> Callable[[], None]:
        """Serve a connection whose preamble has come, on a thread; gives what cuts it.

        `over` is called on the loop, once, when it has ended.
        """
        wire = Wire()
        loop = asyncio.get_running_loop()
        with self._lock:
            self._calling[source] += 1
        try:
            self._start(partial(self._serve, wire, line, source), partial(loop.call_soon_threadsafe, over))
        except Busy:
            line.close()
            self._called_no_more(source)
            loop.call_soon(over)
        return wire.cut

    def _serve(self, wire: Wire, plain: socket.socket, source: str) -> None:
        try:
            try:
                wire.hold(plain)
                line = self._shaken(wire, plain)
                offer = self._taken(_exactly(line, LANE_TOKEN_BYTES))
            finally:
                self._called_no_more(source)
            if offer is not None:
                offer.lane.carry(wire, partial(self._accepted, line))
        except OSError as error:
            log.debug("lane not opened", reason=str(error))
        finally:
            wire.close()

    def _called_no_more(self, source: str) -> None:
        with self._lock:
            self._calling[source] -= 1
            self._calling += Counter()  # without those that are 0

    def _shaken(self, wire: Wire, plain: socket.socket) -> ssl.SSLSocket:
        plain.settimeout(HANDSHAKE_S)
        tune(plain)
        line = self._context().wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        wire.hold(line)
        line.do_handshake()
        return line

    def _context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls is None:
                self._tls = self._certificate.server_context()
                self._tls.num_tickets = 0  # nobody would read them, and what is not read makes an end a loss
            return self._tls

    def _accepted(self, line: ssl.SSLSocket) -> ssl.SSLSocket:
        line.sendall(ACCEPTED)
        line.settimeout(None)
        return line

    def _taken(self, token: bytes) -> _Offer | None:
        with self._lock:
            return self._offers.pop(token, None)

    # --- the side that calls ---

    def dial(self, lane: BulkLane, at: PinnedAddress, token: bytes) -> None:
        """Open `lane` there, by the token that its listener gave. Raises `Busy`."""
        self._check_room()
        wire = Wire()
        self._start(lambda: lane.carry(wire, lambda: _called(wire, at, token)), lambda: None)

    # --- threads ---

    def _check_room(self) -> None:
        if self._threads >= MOST_LANES:
            raise Busy(f"{MOST_LANES} lanes are open")

    def _start(self, run: Callable[[], None], over: Callable[[], object]) -> None:
        def work() -> None:
            try:
                run()
            finally:
                with self._lock:
                    self._threads -= 1
                try:
                    over()
                except RuntimeError:
                    return  # the loop is closed: the program ends

        with self._lock:
            self._threads += 1
        try:
            threading.Thread(target=work, name="lane", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._threads -= 1
            raise Busy("this machine starts no more threads") from error


def _called(wire: Wire, at: PinnedAddress, token: bytes) -> ssl.SSLSocket:
    plain = socket.create_connection((at.host, at.port), timeout=HANDSHAKE_S)
    wire.hold(plain)
    tune(plain)
    plain.sendall(PREAMBLE)
    line = client_context(verified=False).wrap_socket(plain, do_handshake_on_connect=False)
    wire.hold(line)
    line.do_handshake()
    shown = line.getpeercert(binary_form=True) or b""
    if hashlib.sha256(shown).digest() != at.fingerprint:
        raise ssl.SSLError("another certificate answers than on the session")
    line.sendall(token)
    if _exactly(line, len(ACCEPTED)) != ACCEPTED:
        raise ssl.SSLError("the token was not taken")
    line.settimeout(None)
    return line


def _exactly(line: ssl.SSLSocket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = line.recv(count - len(found))
        if not more:
            raise ConnectionResetError("it hung up")
        found += more
    return found
