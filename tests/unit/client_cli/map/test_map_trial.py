"""The first calls of a job, tried by `axon check`: made by real processes, without a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import Unreachable
from axonp2p.kinds.map.section import MapJob, MapSection
from axonp2p.kinds.map.worker.worker_main import MapWorker
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import BundleReady
from client_cli.map.trial import CallTrial, trial_text, try_at

TASK = """
def word(item):
    if item == FAILS: raise ValueError("not this one")
    return "abc"[item % 3] * LONG
def join(one, other):
    return one + other
def less(one, other):
    return f"({one}-{other})"
def share(item):
    return 0.1 * item
def add(one, other):
    return one + other
"""


class Silent:
    def begin(self, what: str) -> None:
        pass


class WorkerWithoutWalls:
    def __init__(self, folder: Path) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.channel = WorkerChannel(ours)
        self.end = ours
        (folder / "tmp").mkdir()
        self._worker = MapWorker(Inside(theirs.detach()), folder, folder / "tmp", 1)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(Unreachable):
            self._worker.run()

    def log(self) -> bytes:
        return b""


def tried(folder: Path, fn: str, reduce: str = "", items: int = 10, fails: int = -1, long: int = 1) -> CallTrial:
    (folder / "task.py").write_text(TASK.replace("FAILS", str(fails)).replace("LONG", str(long)))
    section = MapSection(fn=f"task.py:{fn}", reduce=f"task.py:{reduce}" if reduce else "", items=items)

    async def work() -> CallTrial:
        worker: Any = WorkerWithoutWalls(folder)
        await worker.channel.send(BundleReady())
        try:
            return await try_at(worker, MapJob(name="bag", kind="map", map=section), items, Silent())  # type: ignore[arg-type]
        finally:
            worker.end.shutdown(socket.SHUT_RDWR)

    return asyncio.run(work())


def test_the_first_call_is_made(tmp_path: Path) -> None:
    trial = tried(tmp_path, "word")
    assert (trial.failure, trial.merged, trial.wrong_merge) == ("", "", "")
    assert trial.seconds
    assert trial.result_bytes
    assert trial_text(trial).startswith("call 0 took ")


def test_a_call_that_raises_says_so(tmp_path: Path) -> None:
    assert tried(tmp_path, "word", fails=0).failure.startswith("ValueError: not this one")


@pytest.mark.parametrize(("fn", "reduce"), [("word", "join"), ("share", "add")])
def test_results_are_merged_in_both_ways(tmp_path: Path, fn: str, reduce: str) -> None:
    trial = tried(tmp_path, fn, reduce)
    assert trial.wrong_merge == ""
    assert trial_text(trial).endswith("the first 3 results merge to the same, whichever two are merged first")


def test_what_is_not_associative_cannot_merge(tmp_path: Path) -> None:
    assert "is not equal to merge(a, merge(b, c))" in tried(tmp_path, "word", "less").wrong_merge


def test_a_later_item_that_fails_is_named(tmp_path: Path) -> None:
    trial = tried(tmp_path, "word", "join", fails=2)
    assert trial.failure == ""
    assert trial.wrong_merge.startswith("call 1 or 2 failed: ValueError: not this one")


def test_two_results_have_one_way_alone(tmp_path: Path) -> None:
    assert tried(tmp_path, "word", "join", items=2).merged == ""


def test_large_results_are_not_merged_here(tmp_path: Path) -> None:
    trial = tried(tmp_path, "word", "join", long=300_000)
    assert trial_text(trial).endswith("are too large to be merged here")
