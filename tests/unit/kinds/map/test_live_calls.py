"""Calls of a program on their way to the driver and back, and as they are stored."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axonp2p.calls.opening import load_call
from axonp2p.calls.packing import CallPacker
from axonp2p.errors import JobFailed, TaskError
from axonp2p.kinds.map.call_forms import NewCall, as_part, new_call
from axonp2p.kinds.map.calls.calls_store import CallsStore
from axonp2p.kinds.map.calls.live_calls import ItemFuture, LiveCalls


class Program:
    """A program that calls, and the driver's half of what it calls with."""

    def __init__(self, folder: Path) -> None:
        self.live = LiveCalls()
        self.packer = CallPacker()
        self.woken = threading.Event()
        self.live.attach(self.woken.set)
        self.store = CallsStore(folder)
        self.live.open(CallsStore(folder))

    def call(self, *args: Any) -> ItemFuture:
        function, blobs = as_part(self.packer.pack(len).data, {}, 4096)
        return self.live.add(new_call(self.packer, function, blobs, args, {}))

    def wait(self, until: Callable[[], bool]) -> None:
        while not until():
            assert self.woken.wait(20)
            self.woken.clear()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    made.live.end(JobFailed("the test is over"))
    made.store.close()


def test_calls_are_stored_before_the_driver_hears_of_them(program: Program) -> None:
    for number in range(50):
        program.call(number)
    program.wait(lambda: program.live.news(0).more == 50)
    assert program.store.count() == 50
    assert list(program.store.sizes()) == list(program.live.sizes)
    given = program.live.given_out([0, 7])
    assert all(isinstance(call, NewCall) for call in given)
    assert program.live.given_out([0]) == [None], "it is read from the disk the second time"
    (name, arguments) = program.store.read([7])[0]
    assert load_call(arguments.data, lambda name: b"") == ((7,), {})
    assert program.store.function(name).data == program.packer.pack(len).data


def test_results_set_futures_and_errors_are_raised(program: Program) -> None:
    waiting = [program.call(number) for number in range(3)]
    program.wait(lambda: program.live.news(0).more == 3)
    program.live.given_out([0, 1, 2])
    program.live.settle([(0, "zero"), (2, TaskError("KeyError", "two"))])
    program.live.settle([(1, None)])
    assert len(list(as_completed(waiting, 20))) == 3
    assert (waiting[0].result(), waiting[1].result()) == ("zero", None)
    with pytest.raises(TaskError, match="KeyError: two"):
        waiting[2].result()


def test_a_future_that_cannot_be_set_holds_up_no_end_of_python(tmp_path: Path) -> None:
    """Ctrl-C inside `Future.result` can leave its lock taken for ever, by the thread that ends Python."""
    program = """
import sys, time
from pathlib import Path
from axonp2p.calls.packing import CallPacker
from axonp2p.kinds.map.call_forms import as_part, new_call
from axonp2p.kinds.map.calls.calls_store import CallsStore
from axonp2p.kinds.map.calls.live_calls import LiveCalls
live, packer = LiveCalls(), CallPacker()
live.open(CallsStore(Path(sys.argv[1])))
future = live.add(new_call(packer, *as_part(packer.pack(len).data, {}, 4096), ("a",), {}))
future._condition.acquire()
live.settle([(0, 1)])
while not live.news(0).more:
    time.sleep(0.01)
print("over")
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("over\n", "")


def test_only_a_call_that_no_peer_has_can_be_cancelled(program: Program) -> None:
    first, second = program.call(1), program.call(2)
    program.wait(lambda: program.live.news(0).more == 2)
    program.live.given_out([0])
    assert not first.cancel()
    assert second.cancel()
    assert second.cancel(), "as often as one likes"
    assert program.live.news(1).cancelled == [1]
    program.live.settle([(0, 1), (1, 2)])
    assert first.result(20) == 1
    with pytest.raises(CancelledError):
        second.result(0)


def test_after_shutdown_it_takes_no_more_and_is_complete_once_all_are_stored(program: Program) -> None:
    waiting = program.call(1)
    assert not program.live.news(0).complete
    program.live.close(cancel=True)
    assert waiting.cancelled()
    program.wait(lambda: program.live.news(0).complete)
    with pytest.raises(RuntimeError, match="after shutdown"):
        program.call(2)


def test_a_job_that_ends_ends_its_calls(program: Program) -> None:
    waiting = program.call(1)
    program.live.end(JobFailed("no peers are left"))
    with pytest.raises(JobFailed, match="no peers"):
        waiting.result(20)
    with pytest.raises(JobFailed, match="no peers"):
        program.call(2)


def test_large_arguments_are_blobs_that_are_stored_once(program: Program) -> None:
    large = b"x" * 100_000
    program.call(large)
    program.call(large)
    program.wait(lambda: program.live.news(0).more == 2)
    [(_, one), (_, two)] = program.store.read([0, 1])
    assert one == two
    assert one.data == b""
    (name,) = one.names
    assert load_call(program.store.blob(name).read_bytes(), lambda name: b"") == ((large,), {})
    assert len(list(program.store.blobs.iterdir())) == 1


def test_peers_get_calls_before_the_large_arguments_of_all_are_on_the_disk(tmp_path: Path) -> None:
    """Writing them takes long: the first calls do not wait for the last ones, and one array of all is written once."""
    live, packer, done = LiveCalls(), CallPacker(), threading.Event()
    stored: list[int] = []

    def woken() -> None:
        stored.append(live.news(0).more)
        if stored[-1] == 58:
            done.set()

    live.attach(woken)
    function, blobs = as_part(packer.pack(len).data, {}, 4096)
    shared = np.zeros(100_000)
    for number in range(8):
        live.add(new_call(packer, function, blobs, (np.full(40_000, number), shared), {}))
    for number in range(50):
        live.add(new_call(packer, function, blobs, (number, shared), {}))
    live.open(CallsStore(tmp_path))
    assert done.wait(20)
    live.end(JobFailed("the test is over"))
    assert [count for count in dict.fromkeys(stored) if count] == [1, 3, 5, 7, 58]
