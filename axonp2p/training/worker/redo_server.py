"""Steps of others are taken again in a process of their own, so that nothing of it touches this member's training.

    worker --fork, before its first thread--> server: torch, and from the first order on the task's model, unused,
                                              and torch's compiler, if the task has used it
    server --fork, for each order-----------> one redo, which answers and ends

A task may keep state wherever Python lets it: in `self`, in globals, caches, closures and hooks, in libraries, in
generators of chance, in files. Copies of what we know of would miss some of it. A process forgets all of it at its end,
and a fork of one that has taken no step yet begins each redo in the same state. A process shares only
files with others: a redo works in the bundle, as the worker does, and may write only in an empty temporary folder of
its own, in which /out lies too. The job's log has what the task prints in this member's own steps, and of a redo only
what we say.

The server never has a second thread, nor lets torch use one, since neither survives a fork. Nor does what a process has
on a card: there the server holds no model, and each redo opens the card for itself.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import torch

from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import AxonError, PeerMisbehaved, TaskMistake
from axonp2p.sandbox.gpu_access import NODES
from axonp2p.sandbox.limits import MIB
from axonp2p.sandbox.walls.landlock import write_only_below
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.tensors.frozen_name import NAME_BYTES
from axonp2p.tensors.shared_pages import share_pages, write_pages
from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.trainer.device import CPU, chosen_device, open_device
from axonp2p.training.trainer.local_trainer import LocalTrainer, redone
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.training_thread import Redoing
from axonp2p.training.worker import late_compiler, warm_up
from axonp2p.training.worker.out_folder import OutFolder
from axonp2p.verification.claims import SegmentRedone
from axonp2p.wheels.import_path import use_wheels
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.frame import HEADER_LIMIT

LONGEST_S = 600.0
"""A redo that takes longer is ended, and counts as one that cannot be done: this member's own training waits for it."""
MOST_KEPT_VALUES = 4_000_000
"""While a model, frozen parameters included, is as small as this, the server holds one of its own, and what the task
imports."""
LIBRARIES_MB = 150
"""Of torch, in what this process has had at the most: the limit does not count them."""
BARE_REDO_MB = 100
STARTS_A_REDO = 3
"""A redo has so many times the bytes from which its steps begin: these, weights, gradients, the optimiser's memory."""
_POLL_S = 0.1
_LENGTH = struct.Struct(">I")


class RedoRequest(Message, frozen=True):
    """The facts that a redo needs, beside the bytes from which its steps begin."""

    bundle: Annotated[str, msgspec.Meta(max_length=4096)]
    folder: Annotated[str, msgspec.Meta(max_length=4096)]
    """Where the redo may write; removed at its end."""
    prepare: Prepare
    order: RedoSegment
    size: Annotated[int, msgspec.Meta(ge=0, le=2**34)]
    """Bytes from which its steps begin."""
    keep: bool
    """Whether the server may hold a model of its own from now on."""
    compiles: bool
    """Whether the task has used torch's compiler here: the server holds it from now on, or each redo would load it."""
    frozen: Annotated[bytes, msgspec.Meta(max_length=NAME_BYTES)]
    """The name of the frozen parameters of the job; empty where there are none."""
    frozen_file: Annotated[str, msgspec.Meta(max_length=4096)]
    """Where they lie, when `model()` makes others here."""
    pages_file: Annotated[str, msgspec.Meta(max_length=4096)]
    """Memory that its frozen parameters share with those of this member (`tensors.shared_pages`); empty: none."""
    flops: Annotated[
        dict[Annotated[str, msgspec.Meta(max_length=4096)], Annotated[int, msgspec.Meta(ge=0, le=2**62)]],
        msgspec.Meta(max_length=4096),
    ]
    """Operations of a step, by shape of batch, as far as they were counted (`FlopCounts.known`)."""


class RedoServer:
    """The worker's end. To be made before the worker has a second thread; `cores`: threads of a redo.

    While a redo runs, what is written into `out` is its own, where there is one. A redo that would need more than
    `memory_mb` with this process is not begun: it would end the job. 0: there is no limit.
    """

    def __init__(self, cores: int, out: OutFolder | None = None, *, memory_mb: int = 0) -> None:
        self._out = out
        self._memory_mb = memory_mb
        ours, theirs = socket.socketpair()
        gc.freeze()  # a collection in either process would copy the pages that both share
        self._pid = os.fork()
        if not self._pid:
            _end_with(lambda: _serve(_alone_with(theirs), cores))
        theirs.close()
        self._server = ours
        self._frozen_file = self._pages_file = ""

    def for_job(self, bundle: Path, prepare: Prepare) -> Redoing:
        """The process that takes steps of this job again."""

        def redo(
            order: RedoSegment, start: memoryview, trainer: LocalTrainer, wanted: Callable[[], bool]
        ) -> SegmentRedone | None:
            if trainer.device == CPU and (needed_mb := self._lacks_room(len(start))):
                needed = f'memory = "{needed_mb} MiB" in job.toml, which has "{self._memory_mb} MiB"'
                print(f"steps of member {order.of} again: they need {needed}", file=sys.stderr)
                return redone(order, failed="cannot be done")
            folder = Path(tempfile.mkdtemp(prefix="redo-"))
            for name in ("work", "out"):
                (folder / name).mkdir()
            values = trainer.layout.values + trainer.layout.frozen_bytes // BYTES_A_VALUE
            keep = values <= MOST_KEPT_VALUES and trainer.device == CPU
            again = RedoRequest(
                bundle=str(bundle),
                folder=str(folder),
                prepare=prepare,
                order=order,
                size=len(start),
                keep=keep,
                compiles=late_compiler.is_loaded(),
                frozen=trainer.layout.frozen_name,
                frozen_file=self._file_of(trainer),
                pages_file="" if keep else self._pages_of(trainer),
                flops=trainer.flops,
            )
            with self._out.elsewhere(folder / "out") if self._out else contextlib.nullcontext():
                return self._redo(again, start, wanted)

        return redo

    def _lacks_room(self, start_bytes: int) -> int:
        """How many MiB the job would have to ask for; 0: there is room for a redo that begins from so many bytes."""
        needed_mb = worker_peak_mb() + BARE_REDO_MB + STARTS_A_REDO * start_bytes // MIB
        return needed_mb if 0 < self._memory_mb < needed_mb else 0

    def _file_of(self, trainer: LocalTrainer) -> str:
        """Where a redo finds the frozen parameters that its own `model()` does not make; written once."""
        if trainer.made_other_frozen and not self._frozen_file:
            try:
                with tempfile.NamedTemporaryFile(prefix="frozen-", delete=False) as file:
                    for begin in range(0, len(trainer.frozen), PIECE_BYTES):
                        file.write(trainer.frozen[begin : begin + PIECE_BYTES])
                self._frozen_file = file.name
            except OSError as error:
                print(f"no room for the frozen parameters of redone steps: {error}", file=sys.stderr)
        return self._frozen_file

    def _pages_of(self, trainer: LocalTrainer) -> str:
        """The file under this member's frozen parameters, written before the first redo."""
        if trainer.layout.frozen_bytes and not self._pages_file:
            with tempfile.NamedTemporaryFile(prefix="pages-", delete=False) as file:
                self._pages_file = file.name
                try:
                    write_pages(file.fileno(), trainer.frozen.tensors)
                except OSError as error:
                    print(f"redone steps have their own copy of the frozen parameters: {error}", file=sys.stderr)
        return self._pages_file

    def _redo(self, again: RedoRequest, start: memoryview, wanted: Callable[[], bool]) -> SegmentRedone | None:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                head = encode(again)
                if len(head) > HEADER_LIMIT:
                    head = encode(msgspec.structs.replace(again, flops={}))
                with contextlib.suppress(OSError):  # a server that died shows as an end of the answer
                    socket.send_fds(self._server, [_LENGTH.pack(len(head)) + head], [theirs.fileno()])
            answer = _Patient(ours, wanted)
            try:
                answer.send(start)
                (length,) = _LENGTH.unpack(answer.take(_LENGTH.size))
                return decode_as(answer.take(min(length, HEADER_LIMIT)), SegmentRedone, HEADER_LIMIT)
            except (OSError, EOFError, PeerMisbehaved):
                print(f"steps of member {again.order.of} again: their process came to nothing", file=sys.stderr)
                return redone(again.order, failed="cannot be done")
            except _NotWanted:
                return None

    def close(self) -> None:
        """End the server, and what it does."""
        self._server.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def worker_peak_mb() -> int:
    """MiB that this process had at the most until now, of those that its limit counts."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 - LIBRARIES_MB


class _NotWanted(Exception):
    pass


class _Patient:
    """One redo's socket, given up when nobody wants its answer any more."""

    def __init__(self, connection: socket.socket, wanted: Callable[[], bool]) -> None:
        connection.settimeout(_POLL_S)
        self._connection, self._wanted = connection, wanted
        self._until = time.monotonic() + LONGEST_S

    def send(self, data: memoryview) -> None:
        while len(data):
            with contextlib.suppress(TimeoutError):
                data = data[self._connection.send(data) :]
                continue
            self._go_on()

    def take(self, count: int) -> bytes:
        taken = bytearray()
        while len(taken) < count:
            with contextlib.suppress(TimeoutError):
                part = self._connection.recv(count - len(taken))
                if not part:
                    raise EOFError
                taken += part
                continue
            self._go_on()
        return bytes(taken)

    def _go_on(self) -> None:
        if not self._wanted():
            raise _NotWanted
        if time.monotonic() > self._until:
            raise EOFError


# --- the server, and what it forks ---


def _alone_with(connection: socket.socket) -> socket.socket:
    """Leave everything else to the worker: its channel above all, whose end must be seen when the worker ends."""
    mine = socket.socket(fileno=os.dup2(connection.detach(), 3, inheritable=False))
    os.closerange(4, 65536)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # others may lie on descriptors that are closed now
    return mine


def _serve(worker: socket.socket, cores: int) -> None:
    torch.set_num_threads(1)
    log = _without_the_tasks_prints()
    trainer: LocalTrainer | None = None
    while True:
        head, descriptors, _, _ = socket.recv_fds(worker, _LENGTH.size, 1)
        if not head:
            return
        (length,) = _LENGTH.unpack(head)
        again = decode_as(worker.recv(length, socket.MSG_WAITALL), RedoRequest, HEADER_LIMIT)
        if again.compiles and not late_compiler.is_loaded():
            late_compiler.load_now()
        if again.keep and trainer is None:
            # An error here comes in the redo again, which tells it.
            with contextlib.suppress(AxonError):
                trainer = _trainer_for(again)
        with socket.socket(fileno=descriptors[0]) as connection:
            _watch_one(again, connection, trainer, cores, log)


def _without_the_tasks_prints() -> TextIO:
    """The task's output from now on is seen nowhere: its member prints it too. Gives the log, for our own words."""
    log = os.fdopen(os.dup(2), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return log


def _watch_one(
    again: RedoRequest, connection: socket.socket, trainer: LocalTrainer | None, cores: int, log: TextIO
) -> None:
    """Fork one redo, and end it when nobody waits for it any more."""
    lives, dies = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(lives)
        _end_with(lambda: _redo(again, connection, trainer, cores, log), log)
    os.close(dies)
    watched = select.poll()
    watched.register(lives, select.POLLHUP)
    watched.register(connection, select.POLLRDHUP | select.POLLHUP)
    watched.poll()
    os.kill(pid, signal.SIGKILL)  # until it was waited for, the number is its own
    os.waitpid(pid, 0)
    os.close(lives)
    shutil.rmtree(again.folder, ignore_errors=True)


def _redo(again: RedoRequest, connection: socket.socket, trainer: LocalTrainer | None, cores: int, log: TextIO) -> None:
    warm_up.use_threads(cores)
    os.chdir(again.bundle)
    _keep_to(again.folder)
    start = bytearray(again.size)
    view = memoryview(start)
    while len(view):
        taken = connection.recv_into(view)
        if not taken:
            return
        view = view[taken:]
    order = again.order
    try:
        made = trainer or _trainer_for(again)
        if _has_frozen(made, again):
            message = made.redo(order, memoryview(start), again.flops)
        else:
            print(f"steps of member {order.of} again: model() makes other frozen parameters here", file=sys.stderr)
            message = redone(order, failed="cannot be done")
    except PeerMisbehaved as error:
        print(f"from member {order.of}, not taken: {error.message}", file=log)
        message = redone(order, failed="other bytes")
    except TaskMistake as mistake:
        print(f"steps of member {order.of} again: {mistake.message} failed:\n{mistake.cause}", file=log)
        message = redone(order, failed="cannot be done")
    answer = encode(message)
    connection.sendall(_LENGTH.pack(len(answer)) + answer)


def _has_frozen(trainer: LocalTrainer, again: RedoRequest) -> bool:
    """Whether its model has the frozen parameters of the job now."""
    if trainer.layout.frozen_name != again.frozen and again.frozen_file:
        with open(again.frozen_file, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        if len(data) == len(trainer.frozen):
            trainer.take_frozen(data, book_of(data))
    if again.pages_file:
        with contextlib.suppress(OSError, ValueError), open(again.pages_file, "rb") as file:
            share_pages(file.fileno(), trainer.frozen.tensors)
    return trainer.layout.frozen_name == again.frozen


def _trainer_for(again: RedoRequest) -> LocalTrainer:
    use_wheels(Path(again.bundle))
    os.chdir(again.bundle)
    open_device(device := chosen_device(os.environ))
    return LocalTrainer(CheckedTask(Path(again.bundle), again.prepare.task), again.prepare, device)


def _keep_to(folder: str) -> None:
    """Write nowhere but in this folder: other files are those of this member's training."""
    os.environ["TMPDIR"] = tempfile.tempdir = f"{folder}/work"
    os.environ["AXON_OUT"] = f"{folder}/out"
    if not write_only_below(folder, NODES):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # then it writes nothing at all


def _end_with(run: Callable[[], None], log: TextIO | None = None) -> None:
    """The whole life of a process that was forked: nothing of the one that it is a fork of is gone on with."""
    code = 1
    try:
        run()
        code = 0
    except BaseException:
        traceback.print_exc(file=log)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            if log:
                log.flush()
        os._exit(code)
