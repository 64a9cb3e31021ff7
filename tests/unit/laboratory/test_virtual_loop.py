"""What the laboratory claims of itself: time that leaps, links like those of homes, sockets that fail as real ones."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from tests.laboratory.home_links import HomeLinks
from tests.laboratory.real_loop import RealLoop
from tests.laboratory.virtual_loop import VirtualLoop

HERE, THERE = ("20.0.0.1", 1), ("20.0.1.1", 2)


class Ear(asyncio.DatagramProtocol):
    def __init__(self):
        self.heard, self.errors, self.lost = [], [], False

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.heard.append((asyncio.get_running_loop().time(), data, addr))

    def error_received(self, exc):
        self.errors.append(exc)

    def connection_lost(self, exc):
        self.lost = True


@pytest.fixture
def loop():
    loop = VirtualLoop(HomeLinks(seed=1))
    yield loop
    loop.close()


def test_an_hour_passes_at_once(loop):
    began, virtual = time.monotonic(), loop.time()
    loop.run(asyncio.sleep(3600))
    assert loop.time() - virtual == pytest.approx(3600)
    assert time.monotonic() - began < 60


def test_a_wait_that_would_never_end_is_said(loop):
    async def forever():
        await loop.create_future()

    with pytest.raises(RuntimeError, match="never end"):
        loop.run(forever())


def test_a_datagram_takes_half_a_round_trip(loop):
    async def say():
        _, ear = await loop.create_datagram_endpoint(Ear, THERE)
        transport, _ = await loop.create_datagram_endpoint(Ear, HERE)
        sent = loop.time()
        transport.sendto(b"hello", THERE)
        await asyncio.sleep(1)
        ((arrived, data, sender),) = ear.heard
        assert (data, sender) == (b"hello", HERE)
        assert arrived - sent == pytest.approx(loop.links.round_trip(HERE, THERE) / 2, rel=0.11)

    loop.run(say())


def test_nobody_hears_a_silenced_endpoint_or_is_heard_by_it(loop):
    async def say():
        _, ear = await loop.create_datagram_endpoint(Ear, THERE)
        transport, _ = await loop.create_datagram_endpoint(Ear, HERE)
        loop.silence(THERE)
        transport.sendto(b"hello", THERE)
        ear.transport.sendto(b"hello", HERE)
        await asyncio.sleep(1)
        assert ear.heard == []
        assert transport.protocol.heard == []

    loop.run(say())


def test_round_trips_are_those_of_homes():
    links = HomeLinks(seed=2)
    homes = [(f"20.0.{number}.1", 7) for number in range(250)]
    trips = sorted(links.round_trip(one, other) for one in homes for other in homes if one < other)
    assert statistics.median(trips) == pytest.approx(0.122, rel=0.1)
    assert trips[len(trips) // 20] == pytest.approx(0.040, rel=0.15)
    assert trips[-len(trips) // 20] == pytest.approx(0.218, rel=0.1)


def test_as_many_are_lost_as_should_be():
    links = HomeLinks(seed=2, loss=0.1)
    lost = sum(links.delay(HERE, THERE) is None for _ in range(5000))
    assert lost == pytest.approx(500, rel=0.2)


@pytest.mark.parametrize("kind", [VirtualLoop, RealLoop])
@pytest.mark.parametrize(
    ("port", "size", "closed", "errors"),
    [(70000, 1, True, 0), (0, 1, False, 1), (9, 65508, False, 1), (9, 1, False, 0)],
)
def test_the_virtual_socket_fails_where_the_real_one_does(kind, port, size, closed, errors):
    loop = kind(HomeLinks(seed=1))

    async def say():
        transport, ear = await loop.create_datagram_endpoint(Ear, ("127.0.0.1", 0))
        transport.sendto(b"x" * size, ("127.0.0.1", port))
        await asyncio.sleep(0.5)
        assert ear.lost == transport.is_closing() == closed
        assert len(ear.errors) == errors
        transport.close()
        await asyncio.sleep(0)

    loop.run(say())
    loop.close()
