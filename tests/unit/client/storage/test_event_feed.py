"""Events for any number of readers."""

from __future__ import annotations

import asyncio
import threading

import pytest

from axonp2p.client.events.events import Event, JobCancelled, PeerLost
from axonp2p.client.storage.event_feed import WAITING_PROGRESS, EventFeed, JobEvents
from axonp2p.errors import AxonError, TaskMistake
from axonp2p.kinds.train.events import RoundProgress

LOST = PeerLost(peer="otter", round=1, reason="gone", left=2)
LAST = JobCancelled(job="digits-1111")


def progress(step: float) -> RoundProgress:
    return RoundProgress(round=0, rounds=1, fraction=step, loss=1.0, samples_per_second={}, eta_s=None)


def test_a_late_reader_hears_all_but_what_has_passed() -> None:
    feed = EventFeed()
    feed.put(LOST)
    feed.put(progress(0.5))
    feed.put(LAST)
    assert feed.wait(0.0) is None
    feed.end(None)
    assert list(feed.read()) == [LOST, LAST]
    assert list(feed.read()) == [LOST, LAST]
    assert feed.wait() == LAST


def test_readers_wait_for_what_is_to_come() -> None:
    feed = EventFeed()
    heard: list[list[Event]] = [[], []]
    begun = threading.Barrier(3)

    def read(into: list[Event]) -> None:
        events = feed.read()
        into.append(next(events))
        begun.wait()
        into.extend(events)

    readers = [threading.Thread(target=read, args=[into]) for into in heard]
    for reader in readers:
        reader.start()
    feed.put(LOST)
    begun.wait()
    feed.put(progress(0.5))
    feed.put(LAST)
    feed.end(None)
    for reader in readers:
        reader.join()
    assert heard == [[LOST, progress(0.5), LAST]] * 2


def test_every_reader_is_told_the_error() -> None:
    feed = EventFeed()
    feed.put(LOST)
    feed.end(TaskMistake("otter: loss()", cause="Traceback", fix="mend it"))
    for _ in range(2):
        with pytest.raises(TaskMistake) as caught:
            list(feed.read())
        assert (caught.value.cause, caught.value.fix) == ("Traceback", "mend it")
    with pytest.raises(TaskMistake):
        feed.wait()
    assert feed.wait_quietly(0.0)


def test_a_mistake_of_ours_comes_as_an_error_of_the_family() -> None:
    feed = EventFeed()
    feed.end(KeyError("oops"))
    with pytest.raises(AxonError, match="a mistake in axon itself"):
        feed.wait()


def test_a_reader_that_sleeps_is_not_drowned_in_progress() -> None:
    feed = EventFeed()
    events = feed.read()
    feed.put(LOST)
    assert next(events) == LOST
    for step in range(10 * WAITING_PROGRESS):
        feed.put(progress(step))
    feed.put(LAST)
    feed.end(None)
    rest = list(events)
    assert len(rest) == WAITING_PROGRESS + 1
    assert rest[-1] == LAST


async def test_a_running_loop_goes_on_between_two_events() -> None:
    feed = EventFeed()
    feed.put(LOST)
    heard: list[Event] = []
    begun = asyncio.Event()

    async def read() -> None:
        async for event in JobEvents(feed):
            heard.append(event)
            begun.set()

    reading = asyncio.create_task(read())
    await begun.wait()
    writer = threading.Thread(target=lambda: (feed.put(progress(0.5)), feed.put(LAST), feed.end(None)))
    writer.start()
    await reading
    writer.join()
    assert heard == [LOST, progress(0.5), LAST]
    assert list(JobEvents(feed)) == [event async for event in JobEvents(feed)] == [LOST, LAST]


async def test_a_loop_is_told_the_error_too() -> None:
    feed = EventFeed()
    feed.end(TaskMistake("otter: loss()", cause="Traceback", fix="mend it"))
    with pytest.raises(TaskMistake, match="otter"):
        await anext(aiter(JobEvents(feed)))


def test_a_reader_whose_loop_is_closed_holds_nobody_up() -> None:
    feed = EventFeed()
    feed.put(LOST)
    events = feed.read_in_loop()
    assert asyncio.run(anext(events)) == LOST  # type: ignore[arg-type]
    feed.put(LAST)
    feed.end(None)
    assert feed.wait() == LAST
