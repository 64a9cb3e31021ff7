"""The worker in conversation with a daemon that the test plays; its calls are made by real processes."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.calls.packing import CallPacker
from axonp2p.errors import AxonError, MalformedMessage, TaskError, Unreachable
from axonp2p.kinds.map.call_forms import (
    OWN_MERGE,
    ChunkCalls,
    PackedCall,
    PackedPart,
    as_part,
    open_outcome,
    open_outcomes,
    pack_values,
)
from axonp2p.kinds.map.messages import (
    AtWork,
    BeginChunk,
    BlobsLacking,
    CallResults,
    ChunkBegun,
    ChunkOver,
    EndChunk,
    FromWorkerMap,
    KeepBlob,
    PrepareCalls,
    ReportCalls,
    ResultPart,
    ToWorkerMap,
    UseBlob,
)
from axonp2p.kinds.map.worker import kept_blobs
from axonp2p.kinds.map.worker.worker_main import MapWorker
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import BundleReady, Control, FromWorkerMessage, MayTell, ToWorkerMessage
from axonp2p.values.packing import pack_value
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

_LENGTH = struct.Struct(">I")
TASK = """
    import gc, os, sys, time
    LOADED = os.getpid()
    def work(item):
        print("loud", flush=True)
        return {"item": item, "loaded": LOADED, "here": os.getpid()}
    def slow(item):
        time.sleep(item)
        return item
    def sour(item):
        if item == 1: raise KeyError("one")
        if item == 2: sys.exit(3)
        if item == 3: return object()
        if item == 4: return b"x" * 2_000_000
        return item
    def crash(item):
        if item == 2: os.kill(os.getpid(), 9)
        return item
    def large(item):
        return bytes([item]) * 3_000_000
    def word(item):
        if item == 7: raise ValueError("not seven")
        return "abcdefghij"[item]
    def join(one, other):
        return one + other
    def babble(item):
        for link in gc.get_objects():
            if type(link).__name__ == "ProcessLink" and link._end.fileno() >= 0: link.send(bytes([0xC1]))
"""


class PlayedDaemon:
    """The other end of the worker's channel."""

    def __init__(self, folder: Path, task: str = TASK, cores: int = 1) -> None:
        ours, theirs = socket.socketpair()
        self.bundle, self.scratch = folder / "job", folder / "tmp"
        self.bundle.mkdir()
        self.scratch.mkdir()
        (self.bundle / "task.py").write_text(textwrap.dedent(task))
        self.ended_with: AxonError | None = None
        self._socket = ours
        ours.settimeout(60)
        self._worker = MapWorker(Inside(theirs.detach()), self.bundle, self.scratch, cores)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.say(MayTell(rank=None, bytes=2**31))
        self.say(BundleReady())

    def _run(self) -> None:
        try:
            self._worker.run()
        except AxonError as error:
            self.ended_with = error

    def say(self, message: ToWorkerMessage, payload: bytes = b"") -> None:
        frame = pack_frame(message, payload)
        self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def order(self, order: ToWorkerMap, payload: bytes = b"") -> None:
        self.say(Control(), pack_frame(order, payload))

    def prepare(self, fn: str = "", items: str = "", most_result: int = 10**6, **more: Any) -> AtWork:
        self.order(PrepareCalls(most_result=most_result, fn=f"task.py:{fn}" if fn else "", items=items, **more))
        said, _ = self.hears()
        assert isinstance(said, AtWork)
        return said

    def hears(self) -> tuple[FromWorkerMap, bytes]:
        (length,) = _LENGTH.unpack(self._exactly(4))
        frame = split_frame(self._exactly(length))
        control: FromWorkerMessage = decode(frame.header, FromWorkerMessage, HEADER_LIMIT)
        assert isinstance(control, Control)
        inner = split_frame(frame.payload)
        said: FromWorkerMap = decode(inner.header, FromWorkerMap, HEADER_LIMIT)
        assert control.bulk == (isinstance(said, ResultPart | CallResults) or (said == said and _is_bulk_end(said)))
        return said, bytes(inner.payload)

    def chunk(self, chunk: int, *items: int, payload: bytes = b"", blobs: list[str] | None = None) -> None:
        self.order(BeginChunk(chunk=chunk, items=list(items), blobs=blobs or []), payload)

    def results(self, *, most: int = 10**7) -> tuple[list[Any], ChunkOver]:
        """All values of a chunk, until it is over."""
        values: list[Any] = []
        data = b""
        while True:
            said, payload = self.hears()
            match said:
                case ResultPart(offset=offset):
                    assert offset == len(data)
                    data += payload
                case CallResults():
                    data += payload
                    assert (said.size, said.sha256) == (len(data), hashlib.sha256(data).digest())
                    values += [open_outcome(one, most) for one in open_outcomes(data, said.calls)]
                    data = b""
                case ChunkOver():
                    return values, said
                case _:
                    assert isinstance(said, ChunkBegun)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # forked processes have it, too
        self._socket.close()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            assert part, "the worker closed the channel"
            data += part
        return data


def _is_bulk_end(said: FromWorkerMap) -> bool:
    return isinstance(said, ChunkOver) and said.why != "given back"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[PlayedDaemon]:
    played = PlayedDaemon(tmp_path)
    yield played
    played.close()


def packed(*calls: tuple[Any, ...]) -> bytes:
    """Calls of a program: functions with their arguments."""
    packer = CallPacker()
    functions: dict[PackedPart, int] = {}
    found = []
    for function, *args in calls:
        part = PackedPart(packer.pack(function).data)
        number = functions.setdefault(part, len(functions))
        found.append(PackedCall(number, PackedPart(packer.pack_call(tuple(args), {}).data)))
    return msgspec.msgpack.encode(ChunkCalls(list(functions), found))


def test_the_function_is_loaded_once_and_calls_are_made_in_a_process_of_their_own(daemon: PlayedDaemon) -> None:
    assert daemon.prepare("work") == AtWork(cores=1)
    daemon.chunk(1, 0, 1)
    daemon.chunk(2, 2)
    first, over = daemon.results()
    assert (over.chunk, over.why) == (1, "done")
    second, _ = daemon.results()
    values = first + second
    assert [value["item"] for value in values] == [0, 1, 2]
    assert len({value["loaded"] for value in values}) == len({value["here"] for value in values}) == 1
    assert values[0]["loaded"] not in (values[0]["here"], os.getpid())


def test_items_come_from_a_file_of_the_bundle(daemon: PlayedDaemon) -> None:
    (daemon.bundle / "items.jsonl").write_text('{"a": 1}\n\n[2, 3]\n"four"\n')
    daemon.prepare("sour", "items.jsonl")
    daemon.chunk(1, 0, 2, 1)
    assert daemon.results()[0] == [{"a": 1}, "four", [2, 3]]


def test_what_goes_wrong_in_a_call_is_its_result(daemon: PlayedDaemon) -> None:
    daemon.prepare("sour")
    daemon.chunk(1, 0, 1, 2, 3, 4, 5)
    values, over = daemon.results()
    assert over.why == "done"
    assert (values[0], values[5]) == (0, 5)
    errors = values[1:5]
    assert all(isinstance(error, TaskError) for error in errors)
    assert [error.kind for error in errors[:2]] == ["KeyError", "SystemExit"]
    assert "sour" in errors[0].traceback
    assert errors[3].kind == "NotPlain"
    assert "larger than" in errors[3].reason
    assert "most-result" in errors[3].message


def test_a_function_that_is_not_there_is_an_error_of_each_call(daemon: PlayedDaemon) -> None:
    daemon.prepare("nowhere")
    daemon.chunk(1, 0, 1)
    values, _ = daemon.results()
    assert [value.kind for value in values] == ["AttributeError"] * 2


def test_calls_of_a_program_come_with_their_functions(daemon: PlayedDaemon) -> None:
    daemon.prepare()
    base = 10

    def add(a: int, b: int = 0) -> int:
        return base + a + b

    daemon.chunk(1, 7, 8, 9, payload=packed((add, 1), (add, 1, 2), (len, "four")))
    assert daemon.results()[0] == [11, 13, 4]


def test_a_crash_costs_its_call_and_the_next_chunk_has_a_new_process(daemon: PlayedDaemon) -> None:
    daemon.prepare("crash")
    daemon.chunk(1, 0, 1, 2, 3)
    values, over = daemon.results()
    assert (over.why, over.reason) == ("crashed", "signal 9")
    assert values in ([], [0, 1])
    daemon.chunk(2, 4)
    assert daemon.results()[0] == [4]


def test_a_module_that_ends_its_process_is_a_crash_of_each_chunk(tmp_path: Path) -> None:
    played = PlayedDaemon(tmp_path, "import os\nos._exit(5)\n")
    played.prepare("work")
    played.chunk(1, 0)
    _, over = played.results()
    assert (over.why, over.reason) == ("crashed", "the process that loads the function ended")
    played.close()


def test_a_running_chunk_is_killed_and_a_waiting_one_given_back(daemon: PlayedDaemon) -> None:
    daemon.prepare("slow")
    daemon.chunk(1, 1000)
    assert isinstance(daemon.hears()[0], ChunkBegun)
    daemon.chunk(2, 0)
    daemon.order(ReportCalls())
    said, _ = daemon.hears()
    assert isinstance(said, AtWork)
    assert [(one.chunk, one.items, one.begun) for one in said.chunks] == [(1, [1000], True), (2, [0], False)]
    daemon.order(EndChunk(chunk=1, only_waiting=True))
    daemon.order(EndChunk(chunk=2, only_waiting=True))
    assert daemon.hears()[0] == ChunkOver(chunk=2, why="given back")
    daemon.order(EndChunk(chunk=1))
    assert daemon.results()[1].why == "ended"
    daemon.chunk(3, 0)
    assert daemon.results()[0] == [0]


def test_cores_run_chunks_at_once(tmp_path: Path) -> None:
    played = PlayedDaemon(tmp_path, cores=2)
    assert played.prepare("slow").cores == 2
    played.chunk(1, 1000)
    played.chunk(2, 0)
    values, over = played.results()
    assert (values, over.chunk) == ([0], 2)
    played.close()


def test_large_results_come_in_parts(daemon: PlayedDaemon) -> None:
    daemon.prepare("large", most_result=4 * 10**6)
    daemon.chunk(1, 1, 2)
    values, _ = daemon.results()
    assert values == [bytes([1]) * 3_000_000, bytes([2]) * 3_000_000]


def test_a_chunk_waits_for_its_blobs_and_dropped_ones_are_asked_for(
    daemon: PlayedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.prepare()
    blob = CallPacker().pack_call((3,), {}).data
    name = hashlib.sha256(blob).hexdigest()
    call = PackedCall(0, PackedPart(b"", name))
    payload = msgspec.msgpack.encode(ChunkCalls([PackedPart(CallPacker().pack(lambda x: x * 2).data)], [call]))
    daemon.chunk(1, 0, payload=payload, blobs=[name])
    daemon.order(KeepBlob(name=name, size=len(blob), offset=0), blob[:5])
    daemon.order(ReportCalls())
    said, _ = daemon.hears()
    assert isinstance(said, AtWork)
    assert not said.chunks[0].begun
    monkeypatch.setattr(daemon._worker._blobs, "_most", 1)
    daemon.order(KeepBlob(name=name, size=len(blob), offset=5), blob[5:])
    assert daemon.results()[0] == [6]
    daemon.chunk(2, 0, payload=payload, blobs=[name])
    assert daemon.hears()[0] == BlobsLacking(names=[name])
    daemon.order(KeepBlob(name=name, size=len(blob), offset=0), blob)
    assert daemon.results()[0] == [6]


def test_a_large_blob_is_where_the_daemon_shows_it(
    daemon: PlayedDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.prepare()
    monkeypatch.setattr(kept_blobs, "BROUGHT", tmp_path)
    blob = CallPacker().pack_call((4,), {}).data
    name, file = hashlib.sha256(blob).hexdigest(), "f" * 64
    function = PackedPart(CallPacker().pack(lambda x: x * 2).data)
    payload = msgspec.msgpack.encode(ChunkCalls([function], [PackedCall(0, PackedPart(b"", name))]))
    arriving = tmp_path / "arriving"
    for chunk in (1, 2):
        daemon.chunk(chunk, 0, payload=payload, blobs=[name])
        arriving.write_bytes(blob)
        arriving.rename(tmp_path / file)  # whole at once, as a daemon shows it
        daemon.order(UseBlob(name=name, file=file))
        assert daemon.results()[0] == [8]
        (tmp_path / file).unlink()


@pytest.mark.parametrize(("size", "offset"), [(3, 0), (9, 6)])
def test_a_blob_that_is_not_what_it_says_ends_the_worker(tmp_path: Path, size: int, offset: int) -> None:
    played = PlayedDaemon(tmp_path)
    played.prepare("work")
    played.order(KeepBlob(name="0" * 64, size=size, offset=offset), b"abc")
    played._thread.join(20)
    assert isinstance(played.ended_with, MalformedMessage)
    played.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_core_that_fails_ends_the_worker(tmp_path: Path) -> None:
    played = PlayedDaemon(tmp_path)
    played.prepare("babble")
    played.chunk(1, 0)
    played._thread.join(20)
    assert isinstance(played.ended_with, Unreachable)
    played.close()


def test_when_the_daemon_goes_no_process_is_left(tmp_path: Path) -> None:
    played = PlayedDaemon(tmp_path)
    played.prepare("slow")
    played.chunk(1, 1000)
    assert isinstance(played.hears()[0], ChunkBegun)
    process = played._worker._running[1].process
    deadline = time.monotonic() + 20
    while process is None and time.monotonic() < deadline:
        process = played._worker._running[1].process
    assert process is not None
    played.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and Path(f"/proc/{process.pid}").exists():
        time.sleep(0.01)
    state = Path(f"/proc/{process.pid}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z", "it waits for this process to be its init"


def test_an_empty_blob_is_empty(tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"")
    assert kept_blobs.open_kept(tmp_path, "none") == b""


def test_a_call_folds_items_and_another_merges_results(daemon: PlayedDaemon) -> None:
    daemon.prepare("word", reduce="task.py:join", count=10, fold=3)
    daemon.chunk(1, 0, 1, 3)
    assert daemon.results()[0] == ["abc", "def", "j"]
    small = as_part(pack_values([pack_value("abc"), pack_value("def")]), {}, 10**6)[0]
    large, blobs = as_part(pack_values([pack_value("x"), pack_value("y"), pack_value("z")]), {}, 0)
    [(name, data)] = blobs.items()
    payload = msgspec.msgpack.encode(ChunkCalls([OWN_MERGE], [PackedCall(0, small), PackedCall(0, large)]))
    daemon.chunk(2, 4, 5, payload=payload, blobs=[name])
    daemon.order(KeepBlob(name=name, size=len(data), offset=0), bytes(data))
    assert daemon.results()[0] == ["abcdef", "xyz"]


def test_a_call_that_folds_names_the_item_that_failed(daemon: PlayedDaemon) -> None:
    daemon.prepare("word", reduce="task.py:join", count=10, fold=5)
    daemon.chunk(1, 1)
    [error] = daemon.results()[0]
    assert isinstance(error, TaskError)
    assert (error.kind, error.reason) == ("ValueError", "not seven")
    assert "(item 7)" in error.traceback


def test_a_reduce_that_cannot_be_loaded_fails_each_call(daemon: PlayedDaemon) -> None:
    daemon.prepare("word", reduce="task.py:nowhere", count=4)
    daemon.chunk(1, 0)
    [error] = daemon.results()[0]
    assert isinstance(error, TaskError)
    assert "nowhere" in error.reason
