"""The files of a copy on their way out of the sandbox, as far as the daemon gives credit for them."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from axonp2p.errors import Unreachable
from axonp2p.jobs.output_files import words_of_files
from axonp2p.jobs.output_messages import OutputBounds, OutputMessage
from axonp2p.kinds.run.messages import SendOutputs
from axonp2p.sandbox.bulk_credit import BulkCredit
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import Control
from axonp2p.wire.frame import FRAME_COST, pack_frame


class OutputSender:
    """The files of one copy on their way, on a thread of their own."""

    def __init__(self, inside: Inside, credit: BulkCredit, folder: Path, order: SendOutputs) -> None:
        self._inside = inside
        self._credit = credit
        self._folder = folder
        self._order = order
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outputs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Break off; returns when nothing more is read or sent."""
        self._stopped.set()
        self._credit.wake()
        self._thread.join()

    def _run(self) -> None:
        order = self._order
        with contextlib.suppress(Unreachable, _Stopped):  # a broken channel is found by the main thread
            for message, payload in words_of_files(self._folder, order.request, order.outputs, OutputBounds()):
                self._say(message, payload)

    def _say(self, message: OutputMessage, payload: bytes) -> None:
        packed = pack_frame(message, payload)
        if not self._credit.take(len(packed) + FRAME_COST, self._stopped):
            raise _Stopped
        self._inside.send(Control(bulk=True), packed)


class _Stopped(Exception):
    pass
