"""The registered peer's side: a session with one relay, and a fresh connection for each stream that it announces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from axonp2p.errors import AxonError, MalformedMessage, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import in_background
from axonp2p.transport.address import PinnedAddress, plain_address
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, plain_words
from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import OpenStream, RegisterAtRelay, RelayTerms, StreamReady, StreamRefused
from axonp2p.transport.tunnel.tunnel import pick_up
from axonp2p.transport.ways import BareWhereabouts

log = get_logger(__name__)

TERMS_S = 10.0
"""How long a relay may take to say yes."""
MOST_OPENING = 32
"""Streams that are being opened at once: a relay that announces more is not waited for."""
ORDERS_A_SECOND, ORDERS_AT_ONCE = 20.0, 300.0
"""Streams that a relay announces: for each this side dials the relay, which may be anybody's."""


class Registration:
    """This peer at one relay: `hold` returns, or raises, when it is there no more."""

    def __init__(
        self, key: PrivateKey, relay: PinnedAddress, relay_id: PeerId, listener: Listener, *, called: str
    ) -> None:
        self.relay = relay
        """Once registered, by its IP address: rows name no relay whose name somebody else resolves."""
        self._key = key
        self._relay_id = relay_id
        self._listener = listener
        self._called = called
        self._opening: set[asyncio.Task[None]] = set()
        self._orders = RateLimit(ORDERS_A_SECOND, ORDERS_AT_ONCE)

    async def hold(self, registered: Callable[[RelayTerms], None]) -> None:
        """Register, say so, and take in callers until cancelled.

        Raises `Unreachable`, what the relay refused with, or `PeerMisbehaved`.
        """
        if self.relay.fingerprint is None:
            raise Unreachable(f"{self._called} names no fingerprint", cause="a relay is found by its certificate")
        where = BareWhereabouts(self._relay_id, [self.relay.host_port], self.relay.fingerprint)
        session = await dial(self._key, where, called=self._called)
        self.relay = replace(self.relay, host=plain_address(session.address))
        try:
            await session.send(RegisterAtRelay())
            registered(await self._terms(session))
            while True:
                order, payload = await session.receive(OpenStream)
                if payload:
                    raise MalformedMessage("an order to open a stream has no payload")
                await in_time(self._orders)
                await self._start(session, order)
        finally:
            for task in self._opening:
                task.cancel()
            await session.close()

    async def _terms(self, session: Session) -> RelayTerms:
        try:
            async with asyncio.timeout(TERMS_S):
                terms, _ = await session.receive(RelayTerms)
        except TimeoutError as error:
            raise Unreachable(f"{self._called} does not answer", cause="no answer in time") from error
        assert isinstance(terms, RelayTerms)
        return terms

    async def _start(self, session: Session, order: OpenStream) -> None:
        if len(self._opening) >= MOST_OPENING:
            await session.send(StreamRefused(ticket=order.ticket, reason="too many streams are being opened"))
            return
        in_background(self._opening, self._open(session, order), "relayed stream")

    async def _open(self, session: Session, order: OpenStream) -> None:
        """One caller. An error is this caller's business alone."""

        async def ready() -> None:
            await session.send(StreamReady(ticket=order.ticket))

        try:
            outer = await pick_up(self.relay, order.ticket)
            await self._listener.take_in(outer, order.caller, self._relay_id, ready)
        except (*NETWORK_ERRORS, AxonError) as error:
            reason = error.in_a_line if isinstance(error, AxonError) else plain_words(error)
            log.info("relayed caller lost", relay=self._called, reason=reason)
            with suppress(AxonError):
                await session.send(StreamRefused(ticket=order.ticket, reason=reason[:LONGEST_TEXT]))
