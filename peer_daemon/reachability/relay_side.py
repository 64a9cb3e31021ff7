"""The way in for a peer that nobody can dial: it holds registrations with relays, and its row names them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.keys import PrivateKey
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.relay.choice import RelayCandidate, RelayChoice
from axonp2p.transport.relay.registration import Registration
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.tunnel.messages import RelayTerms
from peer_daemon.announcing.own_row import OwnRow

log = get_logger(__name__)

FIRST_LOOK_AGAIN_S, LAST_LOOK_AGAIN_S = 5.0, 300.0
"""How soon volunteers are looked for again while there are too few relays: doubled each time."""


class RelaySide:
    """One supervised task, `run`."""

    def __init__(
        self,
        key: PrivateKey,
        listener: Listener,
        own: OwnRow,
        choice: RelayChoice,
        clock: Clock,
        changed: Callable[[], None],
        find_relays: Callable[[], Awaitable[list[RelayCandidate]]],
    ) -> None:
        """`changed` is called when the row names other relays; `find_relays` finds peers that are relays."""
        self._key = key
        self._listener = listener
        self._own = own
        self._choice = choice
        self._clock = clock
        self._changed = changed
        self._find_relays = find_relays
        self._trackers: list[RelayCandidate] = []
        self._found: list[RelayCandidate] = []
        self._rows_name: dict[str, str] = {}
        """Relays that are held, by the address under which they were asked, as rows name them."""
        self._next_look = float("-inf")
        self._look_again = FIRST_LOOK_AGAIN_S
        self._holding: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    def say(self, trackers: Iterable[RelayCandidate], *, needed: bool) -> None:
        """Whether others cannot dial this peer, and the trackers that may be its relays."""
        self._trackers = list(trackers)
        self._choice.offer([*self._trackers, *self._found])
        self._choice.need(needed, self._clock.monotonic())
        self._news.set()

    async def run(self) -> None:
        """Hold as many as are wanted until cancelled."""
        try:
            while True:
                self._news.clear()
                await self._look_for_volunteers()
                self._change()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._news.wait()
        finally:
            await cancel_and_wait(*self._holding.values())

    def _change(self) -> None:
        now = self._clock.monotonic()
        for candidate in self._choice.to_open(now):
            task = asyncio.create_task(self._hold(candidate), name="relay registration")
            self._holding[candidate.address] = task
        for address in self._choice.to_close(now):
            self._holding[address].cancel()
        held = [self._rows_name[one] for one in self._choice.held]
        if held != self._own.relays:
            self._own.relays = held
            self._changed()

    def _pause(self) -> float:
        now = self._clock.monotonic()
        wait = self._choice.wait(now)
        return min(wait, max(0.0, self._next_look - now)) if self._choice.too_few else wait

    async def _look_for_volunteers(self) -> None:
        now = self._clock.monotonic()
        if not self._choice.too_few:
            self._look_again = FIRST_LOOK_AGAIN_S
        if not self._choice.too_few or now < self._next_look:
            return
        self._next_look = now + self._look_again
        self._look_again = min(LAST_LOOK_AGAIN_S, 2 * self._look_again)
        self._found = await self._find_relays()
        self._choice.offer([*self._trackers, *self._found])

    async def _hold(self, candidate: RelayCandidate) -> None:
        """One registration, from its beginning to its end."""

        def registered(terms: RelayTerms) -> None:
            log.info("reached through a relay", relay=candidate.called, streams=terms.streams)
            self._rows_name[candidate.address] = str(registration.relay)
            self._choice.registered(candidate.address, self._clock.monotonic())
            self._news.set()

        try:
            with one_look("a registration with a relay"):
                relay = PinnedAddress.parse(candidate.address)
                registration = Registration(self._key, relay, candidate.peer, self._listener, called=candidate.called)
                await registration.hold(registered)
        except (AxonError, OSError) as error:
            log.info(
                "no relay",
                relay=candidate.called,
                reason=error.in_a_line if isinstance(error, AxonError) else error.strerror,
            )
        finally:
            self._choice.ended(candidate.address, self._clock.monotonic())
            del self._holding[candidate.address]
            self._rows_name.pop(candidate.address, None)
            self._news.set()
