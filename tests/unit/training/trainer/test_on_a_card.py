"""A member whose model is on a card takes the steps of one without, and its vectors are where all others have them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch
from torch import nn

from axonp2p.errors import SettingsError
from axonp2p.tensors import flat
from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.device import CPU, chosen_device, label_of, meeting_on, on_device, placed
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.samples.step_batches import OwnChance
from axonp2p.training.trainer.task import CheckedTask, seed_all
from tests.laboratory.played_card import NAME, played_card
from tests.laboratory.written_jobs import HEAD, WRITTEN_JOBS
from tests.unit.training.member_swarm import start_round

STEPS, BATCH = 4, 8
ELSEWHERE = {
    *("compiled", "sparse-adam", "checkpointed-activations"),
    *("autocast-in-loss", "autocast-bf16", "autocast-fp16", "own-scaler"),
}
"""These need a compiler or gradients that the played one does not have, or ask torch for more of its kind of device."""
APART = 0.01
"""As a share of the way: attention takes other steps there, and Adam makes much of the last digits."""
WORKING = [job for job in WRITTEN_JOBS if not job.refused]


@pytest.fixture
def card():
    with played_card() as device:
        yield device


def write(folder, job):
    (folder / "task.py").write_text(HEAD + job.text)
    for name, content in job.files:
        (folder / name).write_text(content)


def make(folder, job, device):
    options = StepOptions(**dict(job.train))
    order = Prepare(rank=0, job="j", task="task.py", shards=2, batch=BATCH, seed=1, steps=STEPS, step_options=options)
    return LocalTrainer(CheckedTask(folder, "task.py"), order, device)


def trained(folder, job, device, *, round=0):
    """One leg, with what came of it."""
    member = make(folder, job, device)
    weights = member.first_state().weights
    start = start_round(round, bytes(32), [0], rank=0, steps=STEPS, exchange_every=STEPS, mark_every=2)
    member.begin(start)
    leg = member.leg(weights, lambda *_: LegVerdict.GO_ON)
    member.accept()
    member.put_back()
    metrics, _ = member.evaluate(weights, [0])
    return member, weights, leg, metrics


def redone(folder, job, device, leg):
    begin, end = leg.places[:2]
    order = RedoSegment(
        of=0, round=0, attempt=0, start=begin.mark, shards=[0], round_steps=STEPS, steps=end.step - begin.step
    )
    return make(folder, job, device).redo(order, begin.file, {})


def same_as_without(folder, job, device):
    write(folder, job)
    _, first, here, plainly = trained(folder, job, CPU)
    member, weights, there, metrics = trained(folder, job, device)
    assert member._model is not None
    assert {one.device.type for one in member._model.parameters()} == {device.type}
    assert torch.equal(first, weights)
    assert weights.device == there.difference.device == CPU
    assert (here.difference - there.difference).norm() <= APART * here.difference.norm()
    assert metrics == pytest.approx(plainly, rel=1e-3, abs=1e-3)
    assert [len(place.data) for place in here.places] == [len(place.data) for place in there.places]
    assert here.flops == there.flops
    return there


QUICK = {
    *("cnn-batchnorm-augmented", "dict-batches-with-strings", "diffusion", "distillation-frozen-teacher"),
    *("gan-with-step", "clipped", "float64-parameters", "tied-and-whole-numbers", "lora", "complex-parameters"),
}


@pytest.mark.slow
@pytest.mark.parametrize("job", [job for job in WORKING if job.name in QUICK], ids=lambda job: job.name)
def test_a_member_takes_the_same_steps_on_a_card(tmp_path, card, job):
    leg = same_as_without(tmp_path, job, card)
    message = redone(tmp_path, job, card, leg)
    assert message.end
    assert message.end.name == leg.places[1].mark.name


@pytest.mark.slow
@pytest.mark.parametrize("job", [job for job in WORKING if job.name not in QUICK | ELSEWHERE], ids=lambda job: job.name)
def test_so_it_does_with_all_other_kinds_of_job(tmp_path, card, job):
    same_as_without(tmp_path, job, card)


def test_a_member_on_a_card_goes_on_from_a_mark_of_one_on_a_processor(tmp_path, card):
    job = next(job for job in WORKING if job.name == "cnn-batchnorm-augmented")
    write(tmp_path, job)
    _, _, leg, _ = trained(tmp_path, job, CPU)
    message = redone(tmp_path, job, card, leg)
    assert message.end
    assert message.end.memory == pytest.approx(leg.places[1].memory, rel=1e-4)


def test_step_lengths_come_to_where_the_parameters_are(tmp_path, card):
    write(tmp_path, WORKING[0])
    legs = []
    for device in (CPU, card):
        member = make(tmp_path, WORKING[0], device)
        weights = member.first_state().weights
        member.begin(start_round(0, bytes(32), [0], rank=0, steps=STEPS, exchange_every=STEPS))
        legs.append(member.leg(weights, lambda *_: LegVerdict.GO_ON, torch.full_like(weights, 1.5)))
    assert torch.allclose(legs[0].difference, legs[1].difference, rtol=1e-5, atol=1e-5)


class Holder(nn.Module):
    """One buffer under two names, one parameter in two layers, and a buffer that its file does not hold."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.other.weight = self.one.weight
        shared = torch.arange(4)
        self.one.register_buffer("count", shared)
        self.register_buffer("count", shared)
        self.register_buffer("mask", torch.ones(2), persistent=False)

    def get_extra_state(self):
        return torch.tensor([7.0, 8.0])

    def set_extra_state(self, state):
        pass


def test_what_is_one_tensor_under_two_names_stays_one(card):
    model = placed(Holder(), card)
    assert model.one.weight is model.other.weight
    assert model.one.count is model.count
    assert {one.device.type for one in (*model.parameters(), *model.buffers())} == {NAME}
    layout = flat.layout_of(model)
    assert layout.values == flat.layout_of(Holder()).values
    vector = flat.read(model, layout)
    assert vector.device == CPU
    flat.write(vector, model, layout)
    assert torch.equal(flat.read(model, layout), vector)


# --- batches ---

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Graph:
    nodes: torch.Tensor
    name: str


class Moves:
    """As batches of graphs and of texts do."""

    device = CPU

    def to(self, device):
        moved = Moves()
        moved.device = device
        return moved


def test_a_batch_is_brought_to_the_model_however_it_is_nested(card):
    one = torch.ones(2)
    batch = {
        "pair": Pair(one, [one, "text"]),
        "ordered": OrderedDict(a=one),
        "graph": Graph(one, "g"),
        "own": Moves(),
        "number": 3,
        "nothing": None,
        "several": (one, (one,)),
    }
    found = on_device(batch, card)
    assert type(found["pair"]) is Pair
    assert found["pair"].right[1] == "text"
    assert type(found["ordered"]) is OrderedDict
    assert found["graph"].name == "g"
    there = [found["pair"].left, found["pair"].right[0], found["ordered"]["a"], found["graph"].nodes]
    there += [found["several"][0], found["several"][1][0], found["own"]]
    assert {str(part.device) for part in there} == {f"{NAME}:0"}
    assert (found["number"], found["nothing"]) == (3, None)


def test_without_a_card_a_batch_stays_what_it_is():
    batch = {"a": torch.ones(2)}
    assert on_device(batch, CPU) is batch


# --- what a task makes itself ---


def test_what_a_task_makes_itself_comes_to_the_card_where_it_meets_it(card):
    there, here = torch.ones(3).to(card), torch.arange(3.0)
    with pytest.raises(RuntimeError, match="two devices"):
        there + here
    with meeting_on(card):
        assert (there + here).device == (here + there).device == there.device
        assert torch.cat([here, there]).device == there.device
        assert (there == here).float().numpy().tolist() == [0.0, 1.0, 0.0]


def test_what_is_changed_in_place_stays_where_it_is(card):
    there, total = torch.ones(3).to(card), torch.zeros(3)
    kept = total
    with meeting_on(card):
        total += there
        total.add_(there)
        total[0] = there[0]
    assert kept is total
    assert kept.tolist() == [1.0, 2.0, 2.0]


PACKED = """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.RNN(2, 8, batch_first=True)
        self.head = nn.Linear(8, 4)
    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.rows(packed)[1][-1])
class Task(Points):
    def model(self): return Reader()
    def loss(self, model, batch):
        lengths = torch.arange(len(batch[1])) % 4 + 1
        return F.cross_entropy(model(batch[0].view(-1, 4, 2), lengths), batch[1])
"""


def test_lengths_of_packed_sequences_stay_where_torch_counts_with_them(tmp_path, card):
    same_as_without(tmp_path, dataclasses.replace(WORKING[0], text=PACKED, metric="loss"), card)


# --- which device ---


def test_without_a_word_of_the_daemon_the_processor_computes():
    assert chosen_device({}) == CPU
    assert label_of(CPU) == "cpu"


def test_an_unknown_device_is_refused_by_name():
    with pytest.raises(SettingsError) as caught:
        chosen_device({"AXON_DEVICE": "tpu"})
    assert "tpu" in caught.value.message
    assert "cuda" in caught.value.fix


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is built with CUDA")
def test_a_card_is_refused_by_name_where_torch_is_built_without_cuda():
    with pytest.raises(SettingsError) as caught:
        chosen_device({"AXON_DEVICE": "cuda"})
    assert torch.__version__ in caught.value.message
    assert "scripts/install" in caught.value.fix


def test_nothing_of_cuda_is_started_where_the_processor_computes(tmp_path):
    write(tmp_path, WORKING[0])
    trained(tmp_path, WORKING[0], CPU)
    assert not torch.cuda.is_initialized()


def test_chance_on_a_card_is_seeded_for_steps_and_reading_samples_leaves_it(monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    seed_all(7)
    with OwnChance(3):
        torch.rand(2)
    assert seeded == [7]


# --- on a real one ---


@pytest.fixture(scope="module")
def real_card() -> torch.device:
    from axonp2p.training.trainer.device import open_device

    open_device(device := chosen_device({"AXON_DEVICE": "cuda"}))
    return device


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card here")
@pytest.mark.parametrize("job", WORKING, ids=lambda job: job.name)
def test_each_kind_of_job_takes_steps_on_a_real_card(tmp_path, real_card: Any, job):
    write(tmp_path, job)
    _, first, here, plainly = trained(tmp_path, job, CPU)
    _, weights, there, metrics = trained(tmp_path, job, real_card)
    assert torch.equal(first, weights)
    assert there.moved == here.moved
    assert metrics.keys() == plainly.keys()
    assert there.flops == here.flops
    if not job.unchecked:
        message = redone(tmp_path, job, real_card, there)
        assert message.end
        assert message.end.name == there.places[1].mark.name
