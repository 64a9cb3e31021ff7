"""Members whose `model()` makes other frozen parameters than the job has: they get those once, and train as all others.

Real workers; the test is their daemons and coordinator.
"""

from __future__ import annotations

import hashlib

import pytest
import safetensors.torch

from axonp2p.blobs.pieces import PIECE_BYTES, PieceBook, book_of, piece_count
from axonp2p.errors import AxonError, PeerMisbehaved
from axonp2p.sandbox.messages import BundleReady
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.messages import AdoptState, AskPieces, Piece, PieceList, Prepare, Prepared, StateAdopted
from axonp2p.training.state_transfer.file_parts import cut
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.worker.frozen_transfer import MOST_TIMES, FrozenTransfer
from axonp2p.verification.claims import RoundDone
from axonp2p.wire.schema import SCHEMAS
from tests.unit.training.worker.test_worker import Peer, Swarm
from tests.unit.training.written_model import written

TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        model = nn.Sequential(nn.Linear(3, 300), nn.Linear(300, 300).requires_grad_(False), nn.Linear(300, 1))
        for parameter in model.parameters():
            nn.init.constant_(parameter, 0.02)
        nn.init.constant_(model[1].weight, FROZEN)
        return model
    def data(self, split, shard, shards):
        points = torch.arange(36.0).view(12, 3).sin()[shard::shards]
        return TensorDataset(points, points.sum(1, keepdim=True))
    def loss(self, model, batch):
        points, sums = batch
        return nn.functional.mse_loss(model(points), sums)
    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=1e-4)
"""
BYTES = (300 * 300 + 300) * 4


class MixedSwarm(Swarm):
    """A worker for each number, which fills the frozen weights of its model; each has a folder of its own."""

    def __init__(self, folder, numbers):
        super().__init__(folder, 0)
        for rank, number in enumerate(numbers):
            own = folder / f"{len(list(folder.iterdir()))}"
            own.mkdir()
            (own / "task.py").write_text(TASK.replace("FROZEN", str(number)))
            self.peers.append(Peer(rank, own, self))

    def prepare(self):
        for peer in self.peers:
            said = {"job": "job", "task": "task.py", "shards": 3, "batch": 4, "seed": 1}
            self.tell(peer.rank, Prepare(schema=SCHEMAS["train"], rank=peer.rank, **said))
            peer.send(BundleReady())
        told = self.hear(Prepared, range(len(self.peers)))
        assert {(said.frozen, said.values - said.parameters) for said, _ in told.values()} == {(BYTES, 16)}
        (self.file_layout,) = {payload for _, payload in told.values()}
        return [told[rank][0].state for rank in range(len(self.peers))]

    def frozen(self, rank, name):
        """Its frozen parameters, if they have that name."""
        self.tell(rank, AskPieces(state=name, numbers=[0, 1]))
        pieces = [self.hear(Piece, [rank])[rank][1] for _ in range(2)]
        return b"".join(pieces)

    def model_of(self, rank, state, name):
        model = Model(300 * 5 + 1, 300 * 5 + 1 + 16, BYTES)
        return written(self.file_layout, self.fetch_state(rank, state), model, self.frozen(rank, name))


@pytest.fixture
def swarm(tmp_path):
    made = []

    def make(*numbers):
        made.append(MixedSwarm(tmp_path, numbers))
        return made[-1]

    yield make
    for one in made:
        for peer in one.peers:
            peer.close()
            assert isinstance(peer.ended.get(timeout=20), AxonError)


def file_of(number):
    """The frozen parameters as one of these tasks makes them."""
    import torch

    return torch.full((300, 300), number).numpy().tobytes() + torch.full((300,), 0.02).numpy().tobytes()


def test_who_has_other_ones_gets_those_of_the_job_and_trains_to_the_same_state(swarm):
    three = swarm(0.01, 0.01, 0.5)
    first, same, other = three.prepare()
    assert first == same != other
    three.tell(2, AdoptState(state=first, senders=[0, 1]))
    assert three.hear(StateAdopted, [2])[2][0].state == first
    three.start(0, first, [0, 1, 2])
    state = three.finish(0, [0, 1, 2])
    files = {three.model_of(rank, state, book_of(file_of(0.01)).name) for rank in range(3)}
    (file,) = files
    assert (safetensors.torch.load(file)["1.weight"] == 0.01).all()


def test_a_late_joiner_has_to_have_them_before_it_takes_part(swarm):
    three = swarm(0.01, 0.01, 0.5)
    state = three.prepare()[0]
    for round in range(2):
        three.start(round, state, [0, 1], listeners=[2])
        adopted, reports = None, []
        while len(reports) < 2 or adopted != reports[0].state:
            _, message, _ = three.reports.get(timeout=20)
            if isinstance(message, RoundDone):
                reports.append(message)
            elif isinstance(message, StateAdopted):
                adopted = message.state
        state = adopted
    three.start(2, state, [0, 1, 2])
    state = three.finish(2, [0, 1, 2])
    assert len({three.model_of(rank, state, book_of(file_of(0.01)).name) for rank in range(3)}) == 1


def test_where_no_member_has_them_the_coordinator_is_asked_and_the_next_one_asks_the_first(swarm):
    one, later = swarm(0.01), swarm(0.5, 0.25)
    (first,) = one.prepare()
    one.start(0, first, [0])
    state = one.finish(0, [0])
    kept, held = one.fetch_state(0, state), file_of(0.01)

    class Kept:
        pieces, file = book_of(held), memoryview(held)

    later.prepare()
    later.tell(0, AdoptState(state=state, senders=[]))
    for part, payload in cut(kept, hashlib.sha256(kept).digest()):
        later.tell(0, part, payload)
    adopted = None
    while adopted is None:
        _, message, _ = later.reports.get(timeout=20)
        if isinstance(message, StateAdopted):
            adopted = message.state
        elif isinstance(message, AskPieces):
            for answer, payload in serve_pieces([Kept()], message):
                later.tell(0, answer, payload)
    assert adopted == state
    later.tell(1, AdoptState(state=state, senders=[0]))
    assert later.hear(StateAdopted, [1])[1][0].state == state
    later.start(1, state, [0, 1])
    state = later.finish(1, [0, 1])
    assert len({later.model_of(rank, state, Kept.pieces.name) for rank in range(2)}) == 1


def test_who_has_to_go_back_to_its_own_state_fetches_its_own_ones_again(swarm):
    three = swarm(0.01, 0.5, 0.5)
    first, own, _ = three.prepare()
    three.tell(1, AdoptState(state=first, senders=[0]))
    assert three.hear(StateAdopted, [1])[1][0].state == first
    three.tell(1, AdoptState(state=own, senders=[2]))  # who held the first one is gone
    assert three.hear(StateAdopted, [1])[1][0].state == own
    three.start(0, own, [1, 2])
    state = three.finish(0, [1, 2])
    assert len({three.model_of(rank, state, book_of(file_of(0.5)).name) for rank in (1, 2)}) == 1


# --- the member's mind alone ---


class Frozen:
    """What a trainer's model holds; `changed` by the task."""

    def __init__(self, number=0.01):
        self.file = bytearray(file_of(number))
        self.pieces = book_of(self.file)

    @property
    def name(self):
        return self.pieces.name

    def __len__(self):
        return len(self.file)


def test_bytes_that_the_task_has_changed_are_not_handed_out():
    held = Frozen()
    mind = FrozenTransfer(held)
    ask = AskPieces(state=held.name, numbers=[0, 1])
    held.file[PIECE_BYTES] ^= 1
    assert [bool(payload) for _, payload in mind.serve(3, ask)] == [True, False]


def test_nobody_is_sent_them_again_and_again():
    held = Frozen()
    mind, ask = FrozenTransfer(held), AskPieces(state=held.name, numbers=[0, 1])
    for _ in range(MOST_TIMES * piece_count(BYTES) // 2):
        mind.serve(3, ask)
    with pytest.raises(PeerMisbehaved, match="sent before"):
        mind.serve(3, ask)
    assert mind.serve(4, ask)


def test_who_asks_for_something_else_is_told_by_others():
    assert FrozenTransfer(Frozen()).serve(3, AskPieces(state=bytes(32), numbers=[])) is None
    ((said, hashes),) = FrozenTransfer(Frozen()).serve(3, AskPieces(state=Frozen().name, numbers=[]))
    assert isinstance(said, PieceList)
    assert PieceBook(hashes) == Frozen().pieces
