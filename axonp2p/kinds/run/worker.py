"""The program in the sandbox: `python -s -P -m axonp2p.kinds.run.worker FD`.

It starts one command at a time as its child, so that it outlives it. The main thread hears orders; a thread waits for
the command, another one sends its files as far as there is credit. The command's output goes to the job's log. Its
files stay in AXON_OUT until the next copy begins, so a client that comes back can ask for them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path

from axonp2p.errors import MalformedMessage, Unreachable
from axonp2p.kinds.run.command_process import CommandProcess, environment_of, not_started
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
from axonp2p.sandbox.bulk_credit import BulkCredit
from axonp2p.sandbox.inside import Inside, serve_daemon
from axonp2p.sandbox.messages import BundleReady, Control, MayTell, Start, Started, ToWorkerMessage
from axonp2p.wheels.import_path import use_wheels
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

BUNDLE = Path("/job")
SCRATCH = Path("/tmp")  # noqa: S108  the sandbox's own


def main() -> None:
    """Run until the daemon closes the channel."""
    serve_daemon(serve)


def serve(inside: Inside, start: Start) -> None:
    """Start up, then work. Raises as `RunWorker.run`."""
    inside.send(Started())
    RunWorker(inside, BUNDLE, SCRATCH).run()


class RunWorker:
    """One worker, for one job, whose bundle is in `bundle` once the daemon said so; `scratch` is emptied for a copy."""

    def __init__(self, inside: Inside, bundle: Path, scratch: Path) -> None:
        self._inside = inside
        self._bundle = bundle
        self._scratch = scratch
        self._bundle_ready = False
        self._credit = BulkCredit()
        self._reporting = threading.Lock()
        """Held while it is said, or asked, how the copy stands."""
        self._process: CommandProcess | None = None
        self._exited: CopyExited | None = None
        """How the last copy ended."""
        self._sending: OutputSender | None = None

    def run(self) -> None:
        """Serve for ever. Raises `Unreachable` when the daemon closed the channel, `MalformedMessage` for nonsense."""
        try:
            while True:
                self._hear(*self._inside.receive())
        finally:
            self._stop_sending()
            if self._process is not None:
                self._process.end("order")

    def _hear(self, message: ToWorkerMessage, payload: memoryview) -> None:
        match message:
            case MayTell(rank=None, bytes=more):
                self._credit.add(more)
            case MayTell():
                pass  # copies do not talk to each other
            case BundleReady():
                use_wheels(self._bundle)
                self._bundle_ready = True
            case Control():
                frame = split_frame(payload)
                order: ToWorkerRun = decode(frame.header, ToWorkerRun, HEADER_LIMIT)
                self._hear_order(order)
            case _:
                raise MalformedMessage(f"{type(message).__name__} after the start")

    def _hear_order(self, order: ToWorkerRun) -> None:
        match order:
            case BeginCopy():
                self._begin(order)
            case EndCopy():
                if self._process and (self._process.order.index, self._process.order.attempt) == _name(order):
                    self._process.end("order")
            case ReportCopy():
                self._report()
            case SendOutputs():
                self._send(order)

    def _begin(self, order: BeginCopy) -> None:
        if not self._bundle_ready or (self._process is not None and self._exited is None):
            raise MalformedMessage(f"BeginCopy {'while a copy runs' if self._bundle_ready else 'before the bundle'}")
        self._stop_sending()
        _empty(self._scratch)
        self._out.mkdir()
        self._process = self._exited = None
        try:
            process = CommandProcess(order, self._bundle, environment_of(order, self._out))
        except (OSError, ValueError) as error:
            self._over(not_started(order, error))
            return
        self._process = process
        self._say(CopyStarted(index=order.index, attempt=order.attempt))
        process.watch(self._over)

    def _over(self, exited: CopyExited) -> None:
        with self._reporting:
            self._exited = exited
            # A broken channel is found by the main thread.
            with contextlib.suppress(Unreachable):
                self._say(exited, sign=True)

    def _report(self) -> None:
        with self._reporting:
            if self._exited is not None:
                self._say(self._exited, sign=True)
            elif self._process is not None:
                self._say(CopyStarted(index=self._process.order.index, attempt=self._process.order.attempt))
            else:
                self._say(NoCopy())

    def _send(self, order: SendOutputs) -> None:
        if self._exited is None or _name(self._exited) != _name(order):
            raise MalformedMessage(f"SendOutputs of copy {order.index}, which is not the one that ended last")
        self._stop_sending()
        self._sending = OutputSender(self._inside, self._credit, self._out, order)

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.stop()
            self._sending = None

    def _say(self, message: FromWorkerRun, *, sign: bool = False) -> None:
        self._inside.send(Control(sign=sign), pack_frame(message))

    @property
    def _out(self) -> Path:
        return self._scratch / "out"


def _name(message: EndCopy | SendOutputs | CopyExited) -> tuple[int, int]:
    return message.index, message.attempt


def _empty(folder: Path) -> None:
    """Remove all that earlier copies left: each one finds the same, and has the same room."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


if __name__ == "__main__":
    main()
