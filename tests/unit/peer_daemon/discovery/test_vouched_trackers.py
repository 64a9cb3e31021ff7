"""A peer whose settings name one tracker, and clients that reserve at another one: real trackers, in this process."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from axonp2p.errors import TokenRefused
from axonp2p.identity.keys import PrivateKey
from axonp2p.reservation.token import Token, TokenHolder, check_token
from axonp2p.table.tracker_file import read_health
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.wire.envelope import Signed
from peer_daemon.discovery.tracker_news import TrackerNews
from tests.fakes import HERE, NOW, ManualClock, key_of
from tests.unit.tracker.conftest import Running, start_tracker, until

PEER, CLIENT = key_of("peer"), key_of("client")


class Swarm:
    """One tracker that the peer's settings name, one that its operator vouches for, and one that introduced itself."""

    def __init__(self, home: Path, clock: ManualClock, own: Running, friend: Running, stranger: Running) -> None:
        self.home, self.clock = home, clock
        self.own, self.friend, self.stranger = own, friend, stranger
        self.lines = TrackerLines(self.health(), clock, random.Random(1))

    def health(self) -> TrackerHealth:
        return read_health(self.home / "trackers.json", [str(self.own.address)], self.clock.now())

    async def hear(self) -> None:
        """The peer has announced itself to its tracker, and asks for the others."""
        news = TrackerNews(self.lines, self.home / "trackers.json", self.clock, None, HERE)
        await news.hear(self.lines.in_order()[0], None)

    async def token(self, issuer: Running) -> Signed[Token]:
        await issuer.announce(PEER)
        return await issuer.reserve(CLIENT, PEER)

    def takes(self, token: Signed[Token], health: TrackerHealth) -> bool:
        try:
            check_token(
                token,
                TokenHolder(CLIENT.peer_id, "127.0.0.1"),
                peer=PEER.peer_id,
                trusted_issuers=health.trusted(self.clock.now()),
                kind="train",
                now=self.clock.now(),
            )
        except TokenRefused:
            return False
        return True


def id_of(running: Running) -> str:
    key: PrivateKey = running.tracker.key
    return key.peer_id


@pytest.fixture
async def swarm(tmp_path: Path) -> AsyncIterator[Swarm]:
    async with AsyncExitStack() as stack:

        async def begin(name: str, **settings: object) -> Running:
            running = await start_tracker(tmp_path / name, clock, **settings)
            stack.push_async_callback(running.stop)
            return running

        clock = ManualClock()
        friend = await begin("friend")
        own = await begin("own", vouches_for=[str(friend.address)])
        stranger = await begin("stranger", trackers=[str(own.address)])
        book = own.tracker._joined().book
        await until(lambda: book.living_one(id_of(friend)) and book.living_one(id_of(stranger)))
        yield Swarm(tmp_path, clock, own, friend, stranger)


async def test_tokens_of_its_tracker_and_of_its_friend_open_the_door_and_a_strangers_do_not(swarm: Swarm):
    await swarm.hear()
    tokens = [await swarm.token(issuer) for issuer in (swarm.own, swarm.friend, swarm.stranger)]
    health = swarm.lines.health
    assert set(health.addresses) == {str(one.address) for one in (swarm.own, swarm.friend, swarm.stranger)}
    assert [swarm.takes(token, health) for token in tokens] == [True, True, False]
    assert [str(line.address) for line in swarm.lines.trusted()].count(str(swarm.stranger.address)) == 0
    after_a_restart = swarm.health()
    assert [swarm.takes(token, after_a_restart) for token in tokens] == [True, True, False]
    assert health.trusted(NOW) == {id_of(swarm.own), id_of(swarm.friend)}
    # The operator strikes the friend out.
    swarm.own.tracker._joined().vouches_for = []
    swarm.clock.time += 1
    await swarm.hear()
    assert [swarm.takes(token, health) for token in tokens] == [True, False, False]
    await swarm.lines.close()
