"""The owner is back while a package of the job is unpacked: both sandboxes stand still, and go on together."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from peer_daemon.execution.suspension import Suspension
from peer_daemon.links.client_sender import ClientLine


class Heard:
    """A client's line."""

    def __init__(self) -> None:
        self.words: list[object] = []

    async def send(self, message: object) -> None:
        self.words.append(message)


class Stands:
    """A sandbox."""

    def __init__(self) -> None:
        self.still = False

    async def freeze(self) -> None:
        self.still = True

    async def thaw(self) -> None:
        self.still = False


async def test_what_unpacks_a_package_stands_still_with_the_worker() -> None:
    suspension = Suspension(cast(ClientLine, Heard()))
    worker, beside = Stands(), Stands()
    await suspension.started(worker)
    async with suspension.also(beside):
        await suspension.begin("the owner types")
        assert (worker.still, beside.still) == (True, True)
        await suspension.end()
        assert (worker.still, beside.still) == (False, False)
    await suspension.begin("the owner types")
    later = Stands()
    async with suspension.also(later):
        assert later.still
    assert not beside.still
    await suspension.close()


class CannotGoOn(Stands):
    """A sandbox whose control group was taken away."""

    async def thaw(self) -> None:
        raise FileNotFoundError


async def test_what_waits_for_the_worker_goes_on_though_it_could_not_be_let_go() -> None:
    suspension = Suspension(cast(ClientLine, Heard()))
    await suspension.started(CannotGoOn())
    await suspension.begin("the owner types")
    with pytest.raises(FileNotFoundError):
        await suspension.end()
    done = []

    async def do() -> None:
        done.append(True)

    async with asyncio.timeout(5):
        await suspension.within(60, do)
    assert done
    await suspension.close()
