"""The worker in conversation with a daemon that the test plays; its commands are real processes."""

from __future__ import annotations

import hashlib
import socket
import struct
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import AxonError, MalformedMessage, Unreachable
from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run.messages import (
    BeginCopy,
    CopyExited,
    CopyStarted,
    EndCopy,
    FromWorkerRun,
    NoCopy,
    ReportCopy,
    SendOutputs,
    ToWorkerRun,
)
from axonp2p.kinds.run.output_sender import OutputSender
from axonp2p.kinds.run.worker import RunWorker
from axonp2p.sandbox.bulk_credit import BulkCredit
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import BundleReady, Control, FromWorkerMessage, MayTell, ToWorkerMessage
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import FRAME_COST, HEADER_LIMIT, pack_frame, split_frame

_LENGTH = struct.Struct(">I")


class PlayedDaemon:
    """The other end of the worker's channel."""

    def __init__(self, folder: Path) -> None:
        ours, theirs = socket.socketpair()
        self.bundle, self.scratch = folder / "job", folder / "tmp"
        self.bundle.mkdir()
        self.scratch.mkdir()
        self.ended_with: AxonError | None = None
        self._socket = ours
        ours.settimeout(20)
        self._worker = RunWorker(Inside(theirs.detach()), self.bundle, self.scratch)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._worker.run()
        except AxonError as error:
            self.ended_with = error

    def say(self, message: ToWorkerMessage, payload: bytes = b"") -> None:
        frame = pack_frame(message, payload)
        self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def order(self, order: ToWorkerRun) -> None:
        self.say(Control(), pack_frame(order))

    def begin(self, code: str, *, words: list[str] | None = None, index: int = 0, **more: Any) -> None:
        command = words or ["python", "-c", textwrap.dedent(code)]
        self.order(BeginCopy(**{"job": "sweep-1", "copies": 3, "attempt": 0} | more, index=index, command=command))

    def hears(self) -> tuple[FromWorkerRun, Control, bytes]:
        (length,) = _LENGTH.unpack(self._exactly(4))
        frame = split_frame(self._exactly(length))
        control: FromWorkerMessage = decode(frame.header, FromWorkerMessage, HEADER_LIMIT)
        assert isinstance(control, Control)
        inner = split_frame(frame.payload)
        return decode(inner.header, FromWorkerRun, HEADER_LIMIT), control, bytes(inner.payload)

    def exits(self) -> CopyExited:
        message, control, _ = self.hears()
        assert isinstance(message, CopyExited)
        assert control.sign
        return message

    def runs(self, code: str, **more: Any) -> CopyExited:
        """A whole copy."""
        self.begin(code, **more)
        assert isinstance(self.hears()[0], CopyStarted)
        return self.exits()

    def files(self, *outputs: str, request: int = 1) -> tuple[dict[str, bytes], OutputsSent]:
        """What comes home, checked as its hashes say."""
        self.order(SendOutputs(index=0, attempt=0, request=request, outputs=list(outputs)))
        return self.collects(request)

    def collects(self, request: int) -> tuple[dict[str, bytes], OutputsSent]:
        found: dict[str, bytes] = {}
        data = b""
        while True:
            message, control, payload = self.hears()
            assert control.bulk
            match message:
                case OutputPart():
                    assert (message.number, message.offset, message.request) == (len(found), len(data), request)
                    data += payload
                case OutputFile():
                    assert (message.size, message.sha256) == (len(data), hashlib.sha256(data).digest())
                    found[message.path], data = data, b""
                case OutputsSent():
                    assert message.files == len(found)
                    return found, message

    def close(self) -> None:
        self._socket.close()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[PlayedDaemon]:
    played = PlayedDaemon(tmp_path)
    played.say(BundleReady())
    yield played
    played.close()


def test_a_command_runs_in_the_bundle_and_finds_its_numbers(daemon: PlayedDaemon) -> None:
    (daemon.bundle / "work.py").write_text(
        "import os, sys, json\n"
        "names = 'AXON_JOB AXON_INDEX AXON_COPIES AXON_ATTEMPT RANK WORLD_SIZE LOCAL_RANK SEED'.split()\n"
        "out = os.path.join(os.environ['AXON_OUT'], 'found.json')\n"
        "json.dump([os.getcwd(), sys.argv[1:], [os.environ[name] for name in names]], open(out, 'w'))\n"
    )
    words = ["python", "work.py", "--seed", "2"]
    daemon.begin("", words=words, index=0, attempt=0, env={"SEED": "7", "RANK": "99"})
    assert daemon.hears()[0] == CopyStarted(index=0, attempt=0)
    exited = daemon.exits()
    assert (exited.ended, exited.code, exited.good, exited.reason) == ("itself", 0, True, "")
    assert exited.seconds > 0
    assert exited.cpu_seconds > 0
    assert exited.most_memory > 2**20
    daemon.say(MayTell(rank=None, bytes=2**20))
    files, _ = daemon.files("*.json")
    expected = f'["{daemon.bundle}", ["--seed", "2"], ["sweep-1", "0", "3", "0", "0", "3", "0", "7"]]'
    assert files == {"found.json": expected.encode()}


@pytest.mark.parametrize(("code", "found"), [("raise SystemExit(3)", 3), ("import os; os.abort()", -6)])
def test_exit_codes_and_signals_are_told(daemon: PlayedDaemon, code: str, found: int) -> None:
    exited = daemon.runs(code)
    assert (exited.ended, exited.code, exited.good) == ("itself", found, False)


def test_a_command_that_cannot_be_started_is_said_to_be_so(daemon: PlayedDaemon) -> None:
    daemon.begin("", words=["./no-such-program"])
    exited = daemon.exits()
    assert (exited.ended, exited.code) == ("not started", 127)
    assert exited.reason == "./no-such-program: No such file or directory"
    (daemon.bundle / "data.txt").write_text("hello")
    daemon.begin("", words=["data.txt"])
    assert "a script is started with python" in daemon.exits().reason


@pytest.mark.slow
def test_it_is_killed_in_time_with_its_children(daemon: PlayedDaemon) -> None:
    code = f"""
        import subprocess, sys, time
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(600)"])
        open("{daemon.scratch}/child", "w").write(str(child.pid))
        time.sleep(600)
    """
    exited = daemon.runs(code, timeout=2)
    assert (exited.ended, exited.code, exited.good) == ("timeout", -9, False)
    assert is_gone(int((daemon.scratch / "child").read_text()))


def test_what_the_command_leaves_running_ends_with_it(daemon: PlayedDaemon) -> None:
    code = f"""
        import subprocess, sys
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(600)"])
        open("{daemon.scratch}/child", "w").write(str(child.pid))
    """
    assert daemon.runs(code).good
    assert is_gone(int((daemon.scratch / "child").read_text()))


def is_gone(pid: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_it_ends_when_it_is_told_to_and_only_the_copy_that_is_meant(daemon: PlayedDaemon) -> None:
    daemon.begin("import time; time.sleep(600)")
    assert isinstance(daemon.hears()[0], CopyStarted)
    daemon.order(EndCopy(index=0, attempt=1))
    daemon.order(ReportCopy())
    assert daemon.hears()[0] == CopyStarted(index=0, attempt=0)
    daemon.order(EndCopy(index=0, attempt=0))
    assert daemon.exits().ended == "order"
    daemon.order(EndCopy(index=0, attempt=0))  # harmless
    daemon.order(ReportCopy())
    assert daemon.exits().ended == "order"


def test_a_client_that_comes_back_hears_what_there_is(daemon: PlayedDaemon) -> None:
    daemon.order(ReportCopy())
    assert daemon.hears()[0] == NoCopy()
    exited = daemon.runs("pass", index=2, attempt=5)
    daemon.order(ReportCopy())
    assert daemon.exits() == exited


def test_files_wait_for_credit_and_are_sent_again_when_asked_again(daemon: PlayedDaemon) -> None:
    size = 600_000
    code = f"""
        import os
        os.makedirs(os.environ["AXON_OUT"] + "/deep/er")
        for name in ("a.bin", "deep/er/b.bin", "c.txt", "empty.bin"):
            content = b"" if name.startswith("empty") else name.encode()[:1] * {size}
            open(os.path.join(os.environ["AXON_OUT"], name), "wb").write(content)
        os.symlink("/etc/hostname", os.environ["AXON_OUT"] + "/link.bin")
        os.mkfifo(os.environ["AXON_OUT"] + "/pipe.bin")
    """
    assert daemon.runs(code).good
    daemon.order(SendOutputs(index=0, attempt=0, request=1, outputs=["*.bin"]))
    daemon.say(MayTell(rank=None, bytes=1))
    assert daemon.hears()[0] == OutputPart(request=1, number=0, offset=0)
    daemon.order(ReportCopy())  # nothing more comes without credit, and all else goes on
    assert daemon.exits().good
    daemon.order(SendOutputs(index=0, attempt=0, request=2, outputs=["*.bin"]))
    daemon.say(MayTell(rank=None, bytes=2**22))
    files, sent = daemon.collects(request=2)
    assert {name: len(content) for name, content in files.items()} == {
        "a.bin": size,
        "deep/er/b.bin": size,
        "empty.bin": 0,
    }
    assert sent.left_out == 0


def test_each_word_about_a_file_uses_up_its_fixed_cost_too(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.bin").write_bytes(bytes(number))
    taken, said = list[int](), list[int]()

    class Counted(BulkCredit):
        def take(self, count: int, stopped: threading.Event) -> bool:
            taken.append(count)
            return True

    class Outside:
        def send(self, message: FromWorkerMessage, payload: bytes) -> None:
            said.append(len(payload) + FRAME_COST)

    order = SendOutputs(index=0, attempt=0, request=1, outputs=["*.bin"])
    OutputSender(Outside(), Counted(), tmp_path, order)._thread.join(20)  # type: ignore[arg-type]
    assert taken == said
    assert len(said) == 8 + 9 + 1  # parts of those that are not empty, last words, and the end


def test_the_next_copy_finds_nothing_of_the_one_before(daemon: PlayedDaemon) -> None:
    code = """
        import os
        open(os.environ["AXON_OUT"] + "/one.txt", "w").write("1")
        os.makedirs(os.environ["AXON_OUT"] + "/../cache/deep")
        os.symlink("/etc", os.environ["AXON_OUT"] + "/../etc")
    """
    assert daemon.runs(code).good
    code = 'import os; raise SystemExit(len(os.listdir(os.environ["AXON_OUT"] + "/..")))'
    assert daemon.runs(code, attempt=1).code == 1  # AXON_OUT alone
    assert Path("/etc/passwd").exists()


def test_names_that_no_file_may_have_are_left_out(daemon: PlayedDaemon) -> None:
    code = r"""
        import os
        for name in (b"good.txt", b"bad\n.txt", b"bad\xff.txt", b"back\\slash.txt"):
            open(os.environb[b"AXON_OUT"] + b"/" + name, "w").write("1")
    """
    assert daemon.runs(code).good
    daemon.say(MayTell(rank=None, bytes=2**20))
    files, sent = daemon.files("*.txt")
    assert list(files) == ["good.txt"]
    assert sent.left_out == 3


@pytest.mark.parametrize(
    "order",
    [
        BeginCopy(job="sweep-1", index=1, copies=3, attempt=0, command=["python"]),
        SendOutputs(index=0, attempt=0, request=1, outputs=[]),
    ],
)
def test_orders_that_do_not_fit_a_running_copy_end_the_worker_and_the_copy(
    daemon: PlayedDaemon, order: ToWorkerRun
) -> None:
    daemon.begin(f'import os, time; open("{daemon.scratch}/me", "w").write(str(os.getpid())); time.sleep(600)')
    assert isinstance(daemon.hears()[0], CopyStarted)
    while not (daemon.scratch / "me").exists() or not (daemon.scratch / "me").read_text():
        time.sleep(0.01)
    pid = int((daemon.scratch / "me").read_text())
    daemon.order(order)
    daemon.exits()
    daemon.close()
    assert isinstance(daemon.ended_with, MalformedMessage)
    assert is_gone(pid)


def test_nothing_begins_before_the_bundle(tmp_path: Path) -> None:
    daemon = PlayedDaemon(tmp_path)
    daemon.begin("pass")
    daemon._thread.join(20)
    assert isinstance(daemon.ended_with, MalformedMessage)


def test_the_copy_ends_with_the_channel(tmp_path: Path) -> None:
    daemon = PlayedDaemon(tmp_path)
    daemon.say(BundleReady())
    daemon.begin(
        f'import os, time; print("x"); open("{daemon.scratch}/me", "w").write(str(os.getpid())); time.sleep(9e9)'
    )
    assert isinstance(daemon.hears()[0], CopyStarted)
    while not (daemon.scratch / "me").exists() or not (daemon.scratch / "me").read_text():
        time.sleep(0.01)
    daemon.close()
    assert isinstance(daemon.ended_with, Unreachable)
    assert is_gone(int((daemon.scratch / "me").read_text()))
