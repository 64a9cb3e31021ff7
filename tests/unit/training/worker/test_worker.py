"""Conversations with real workers, each in a thread; the test is their daemons, links and coordinator."""

from __future__ import annotations

import hashlib
import queue
import socket
import struct
import threading
import time

import pytest
import safetensors.torch
import torch

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import AxonError, MalformedMessage, Unreachable, VersionMismatch
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import BundleReady, Control, FromMember, FromWorkerMessage, MayTell, Start, ToMember
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.coding import Coding
from axonp2p.training.messages import (
    AdoptState,
    AskPieces,
    FromWorkerTraining,
    Piece,
    Prepare,
    Prepared,
    Progress,
    SlicePart,
    StateAdopted,
    TaskFailed,
)
from axonp2p.training.state_transfer.file_parts import cut
from axonp2p.training.worker.mailbox import Mailbox
from axonp2p.training.worker.worker import Worker
from axonp2p.verification.claims import RoundDone
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import FRAME_COST, HEADER_LIMIT, pack_frame, split_frame
from axonp2p.wire.schema import SCHEMAS
from tests.unit.training.member_swarm import start_round
from tests.unit.training.written_model import written

# Weights by hand: these workers share one process and so one source of chance.
TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        model = nn.Linear(3, 1)
        for parameter in model.parameters():
            nn.init.constant_(parameter, 0.5)
        return model
    def data(self, split, shard, shards):
        points = torch.arange(36.0).view(12, 3).sin()[shard::shards]
        return TensorDataset(points, points.sum(1, keepdim=True))
    def loss(self, model, batch):
        points, sums = batch
        return nn.functional.mse_loss(model(points), sums)
"""


CREDIT = 4096


def no_redo(*_):
    raise AssertionError("nothing is checked in these jobs")


class Peer:
    """The daemon's end of one worker's channel."""

    def __init__(self, rank, folder, swarm):
        self.rank = rank
        self.ended = queue.Queue()
        self._swarm = swarm
        self._sending = threading.Lock()
        self._socket, inside = socket.socketpair()
        mailbox = Mailbox(Inside(inside.detach()))
        mailbox.open()
        worker = Worker(mailbox, folder, folder, time.monotonic, lambda *_: no_redo)
        threading.Thread(target=self._work, args=(worker, mailbox), daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()
        for other in (None, 0, 1, 2, 3):
            self.send(MayTell(rank=other, bytes=CREDIT))

    def send(self, message, payload=b""):
        frame = pack_frame(message, payload)
        with self._sending:
            self._socket.sendall(struct.pack(">I", len(frame)) + frame)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)

    def _work(self, worker, mailbox):
        try:
            worker.run()
        except AxonError as error:
            mailbox.flush()
            self.ended.put(error)

    def _listen(self):
        stream = self._socket.makefile("rb")
        while len(head := stream.read(4)) == 4:
            frame = split_frame(stream.read(struct.unpack(">I", head)[0]))
            message = decode(frame.header, FromWorkerMessage, HEADER_LIMIT)
            self._swarm.heard(self.rank, message, frame.payload)


class Swarm:
    """Workers that can reach each other, and the coordinator's side of them."""

    def __init__(self, folder, count):
        self.reports = queue.Queue()
        self.peers = [Peer(rank, folder, self) for rank in range(count)]

    def heard(self, rank, message, payload):
        if isinstance(message, ToMember):
            # As the daemon: more credit when the member has it.
            self.peers[message.rank].send(FromMember(rank=rank), payload)
            self.peers[rank].send(MayTell(rank=message.rank, bytes=len(payload) + FRAME_COST))
            return
        if message.bulk:
            self.peers[rank].send(MayTell(rank=None, bytes=len(payload) + FRAME_COST))
        frame = split_frame(payload)
        self.reports.put((rank, decode(frame.header, FromWorkerTraining, HEADER_LIMIT), bytes(frame.payload)))

    def tell(self, rank, message, payload=b""):
        self.peers[rank].send(Control(), pack_frame(message, payload))

    def hear(self, kind, ranks):
        """The next message of that kind from each of `ranks`, and no other but progress."""
        found = {}
        while set(found) != set(ranks):
            rank, message, payload = self.reports.get(timeout=20)
            if isinstance(message, kind):
                found[rank] = (message, payload)
            else:
                assert isinstance(message, Progress), message
        return found

    def prepare(self):
        for peer in self.peers:
            self.tell(
                peer.rank,
                Prepare(schema=SCHEMAS["train"], rank=peer.rank, job="job", task="task.py", shards=3, batch=4, seed=1),
            )
            peer.send(BundleReady())
        told = {(message.state, payload) for message, payload in self.hear(Prepared, range(len(self.peers))).values()}
        ((state, self.file_layout),) = told
        return state

    def start(self, round, state, members, attempt=0, ranks=None, listeners=(), **settings):
        for rank in [*members, *listeners] if ranks is None else ranks:
            usual = {"steps": 3, "exchange_every": 2}
            self.tell(rank, start_round(round, state, members, attempt, listeners, rank, **usual | settings))

    def finish(self, round, members, attempt=0):
        """All members report the same state; gives it."""
        reports = [message for message, _ in self.hear(RoundDone, members).values()]
        assert {(message.round, message.attempt) for message in reports} == {(round, attempt)}
        (state,) = {message.state for message in reports}
        return state

    def model_of(self, rank, state):
        return written(self.file_layout, self.fetch_state(rank, state), Model(4, 4))

    def fetch_state(self, rank, state):
        """Of a model so small that it is one piece."""
        self.tell(rank, AskPieces(state=state, numbers=[0]))
        ((piece, payload),) = self.hear(Piece, [rank]).values()
        assert (piece.number, book_of(payload).name) == (0, state)
        return payload


@pytest.fixture
def swarm(tmp_path):
    made = []

    def make(count, task=TASK):
        (tmp_path / "task.py").write_text(task)
        made.append(Swarm(tmp_path, count))
        return made[-1]

    yield make
    for one in made:
        for peer in one.peers:
            peer.close()
            assert isinstance(peer.ended.get(timeout=20), AxonError)


def test_members_train_rounds_and_all_hold_the_same_weights(swarm):
    three = swarm(3)
    first = state = three.prepare()
    for round in range(3):
        three.start(round, state, [0, 1, 2])
        state = three.finish(round, [0, 1, 2])
    assert state != first
    files = [three.model_of(rank, state) for rank in range(3)]
    assert files[0] == files[1] == files[2]
    assert safetensors.torch.load(files[0])["weight"].shape == (1, 3)


def test_a_report_tells_what_was_done(swarm):
    two = swarm(2)
    two.start(0, two.prepare(), [0, 1])
    report, _ = two.hear(RoundDone, [0, 1])[0]
    assert report.samples == 12
    assert report.flops == 3 * 4 * (2 * 3) * 2
    assert report.exchanges == 2
    assert report.test_samples == 4
    assert set(report.metrics) == {"loss"}
    assert report.sent_bytes > 2 * 2 * 4
    assert report.received_bytes > 2 * 2 * 4


def test_a_round_is_redone_without_a_lost_member(swarm):
    three, two = swarm(3), swarm(2)
    state = three.prepare()
    three.start(0, state, [0, 1, 2])
    three.finish(0, [0, 1, 2])
    three.start(0, state, [0, 1], attempt=1)
    redone = three.finish(0, [0, 1], attempt=1)
    # As if the third had never been there, what the inner optimisers remember included.
    two.start(0, two.prepare(), [0, 1])
    straight = two.finish(0, [0, 1])
    assert redone == straight
    three.start(1, redone, [0, 1])
    two.start(1, straight, [0, 1])
    assert three.finish(1, [0, 1]) == two.finish(1, [0, 1])


def test_another_order_ends_the_wait_for_a_silent_member(swarm):
    two = swarm(2)
    state = two.prepare()
    two.start(0, state, [0, 1], ranks=[0], exchange_every=3)
    progress = two.reports.get(timeout=20)[1]
    while progress.step < 3:
        progress = two.reports.get(timeout=20)[1]
    two.start(0, state, [0], attempt=1)
    two.finish(0, [0], attempt=1)


def test_another_order_ends_local_steps(swarm):
    one = swarm(1)
    state = one.prepare()
    one.start(0, state, [0], steps=2**31, exchange_every=2**31)
    one.start(0, state, [0], attempt=1)
    one.finish(0, [0], attempt=1)


def test_a_slow_member_finds_what_the_others_have_sent_meanwhile(swarm):
    two = swarm(2)
    state = two.prepare()
    two.start(0, state, [0, 1], ranks=[0], exchange_every=3)
    while two.reports.get(timeout=20)[1].step < 3:
        pass
    two.start(0, state, [0, 1], ranks=[1], exchange_every=3)
    two.finish(0, [0, 1])


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("coding", [Coding(bits=2), Coding(bits=4, density=0.3)], ids=str)
def test_members_and_a_listener_hold_the_same_weights_with_fewer_bits(swarm, coding, overlap):
    three = swarm(3)
    state = three.prepare()
    for round in range(2):
        three.start(
            round, state, [0, 1], listeners=[2], steps=6, overlap=overlap, seconds=5.0, gather=coding, result=coding
        )
        reports, adopted = [], None
        while len(reports) < 2 or adopted != reports[0].state:
            _, message, _ = three.reports.get(timeout=20)
            if isinstance(message, RoundDone):
                reports.append(message)
            elif isinstance(message, StateAdopted):
                adopted = message.state
        state = adopted
        assert [report.state for report in reports] == [state, state]
    three.start(2, state, [0, 1, 2])
    three.finish(2, [0, 1, 2])


def test_a_member_takes_over_the_state_of_another(swarm):
    two = swarm(2)
    state = two.prepare()
    two.start(0, state, [0])
    ahead = two.finish(0, [0])
    two.fetch_state(0, ahead)
    two.tell(1, AdoptState(state=ahead, senders=[0]))
    assert two.hear(StateAdopted, [1])[1][0].state == ahead
    two.start(1, ahead, [0, 1])
    two.finish(1, [0, 1])


def test_a_job_goes_on_from_a_file(swarm):
    one, later = swarm(1), swarm(1)
    one.start(0, one.prepare(), [0])
    state = one.finish(0, [0])
    file = one.fetch_state(0, state)
    later.prepare()
    later.tell(0, AdoptState(state=state, senders=[]))
    for part, payload in cut(file, hashlib.sha256(file).digest()):
        later.tell(0, part, payload)
    assert later.hear(StateAdopted, [0])[0][0].state == state
    assert later.model_of(0, state) == one.model_of(0, state)


def test_a_mistake_is_reported_and_the_worker_stays(swarm):
    one = swarm(1, TASK.replace("points, sums = batch", "points, sums, more = batch"))
    state = one.prepare()
    for attempt in range(2):
        one.start(0, state, [0], attempt=attempt)
        failed, _ = one.hear(TaskFailed, [0])[0]
        assert failed.doing == "loss()"
        assert 'File "task.py", line 16, in loss' in failed.traceback
        assert failed.traceback.endswith("ValueError: not enough values to unpack (expected 3, got 2)")


def test_a_task_that_cannot_be_loaded_is_reported(swarm):
    one = swarm(1, "import nonsense_that_nobody_has")
    one.tell(0, Prepare(schema=SCHEMAS["train"], rank=0, job="job", task="task.py", shards=1, batch=4, seed=1))
    one.peers[0].send(BundleReady())
    failed, _ = one.hear(TaskFailed, [0])[0]
    assert failed.doing == "loading task.py"
    assert "No module named 'nonsense_that_nobody_has'" in failed.traceback


def test_a_client_of_another_version_is_refused_before_anything_is_built(swarm):
    one = swarm(1)
    one.tell(0, Prepare(schema="0" * 16, rank=0, job="job", task="task.py", shards=1, batch=4, seed=1))
    error = one.peers[0].ended.get(timeout=20)
    one.peers[0].ended.put(error)
    assert isinstance(error, VersionMismatch)
    assert "the client runs another version of Axon" in error.message


def test_what_members_may_not_send_is_dropped_and_the_round_goes_on(swarm, capfd):
    two = swarm(2)
    state = two.prepare()
    nan = torch.full((2,), float("nan")).numpy().tobytes()
    part = SlicePart(round=0, attempt=0, exchange=0, phase="gather", slice=0, offset=0, samples=4)
    two.peers[0].send(FromMember(rank=1), pack_frame(part, nan))
    two.peers[0].send(FromMember(rank=1), b"rubbish")
    two.start(0, state, [0, 1])
    two.finish(0, [0, 1])
    said = capfd.readouterr().err
    assert "cannot be read" in said
    assert said.count("from member 1, not taken") == 2


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (start_round(0, bytes(32), [0]), "asked to continue from state 0000"),
        (
            Prepare(schema=SCHEMAS["train"], rank=0, job="other", task="task.py", shards=3, batch=4, seed=1),
            "a second Prepare",
        ),
    ],
)
def test_orders_that_make_no_sense_end_the_worker(swarm, message, reason):
    one = swarm(1)
    one.prepare()
    one.tell(0, message)
    error = one.peers[0].ended.get(timeout=20)
    one.peers[0].ended.put(error)
    assert isinstance(error, MalformedMessage)
    assert reason in error.message


def test_another_coordinator_is_told_where_the_worker_stands(swarm):
    one = swarm(1)
    first = one.prepare()
    one.start(0, first, [0])
    led_to = one.finish(0, [0])
    one.tell(
        0, Prepare(schema=SCHEMAS["train"], rank=0, job="job", task="task.py", shards=3, batch=4, seed=1, first_round=1)
    )
    ((again, _),) = one.hear(Prepared, [0]).values()
    assert (again.state, again.candidate) == (first, led_to)
    one.start(1, led_to, [0])
    one.finish(1, [0])


def test_orders_before_there_is_a_model_end_the_worker(swarm):
    one = swarm(1)
    one.tell(0, AdoptState(state=bytes(32), senders=[]))
    error = one.peers[0].ended.get(timeout=20)
    one.peers[0].ended.put(error)
    assert "AdoptState before the model was built" in error.message


def test_a_second_start_ends_the_worker(swarm):
    one = swarm(1)
    one.peers[0].send(Start(cores=1, memory_mb=1, processes=1, open_files=1, file_mb=1))
    error = one.peers[0].ended.get(timeout=20)
    one.peers[0].ended.put(error)
    assert isinstance(error, MalformedMessage)


def test_a_closed_channel_ends_the_worker(swarm):
    one = swarm(1)
    one.peers[0].close()
    error = one.peers[0].ended.get(timeout=20)
    one.peers[0].ended.put(error)
    assert isinstance(error, Unreachable)
    one.peers[0].close = lambda: None
