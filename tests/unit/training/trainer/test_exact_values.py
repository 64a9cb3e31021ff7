"""Three members, their real exchange and outer step: no number is changed but by what the task does to it."""

from __future__ import annotations

import pytest
import safetensors.torch
import torch

from axonp2p.errors import TaskMistake
from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.coding import Coding
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.slice_exchange import SliceExchange
from axonp2p.training.exchange.terms import terms_of
from axonp2p.training.messages import Prepare
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.outer_optimizer import outer_step, state_from_file
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round
from tests.unit.training.written_model import written

pytestmark = pytest.mark.slow

MEMBERS = [0, 1, 2]
TASK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 300)
        self.fixed = nn.Linear(300, 300).requires_grad_(False)
        self.norm = nn.BatchNorm1d(300)
        self.two = nn.Linear(300, 1)
        BUFFERS
    def forward(self, points):
        return self.two(self.norm(self.fixed(self.one(points))))

class Task:
    def model(self):
        return Net()
    def data(self, split, shard, shards):
        chance = torch.Generator().manual_seed(shard)
        points = torch.randn(40, 4, generator=chance)
        return torch.utils.data.TensorDataset(points, points.sum(1, keepdim=True), torch.full((40,), shard))
    def loss(self, model, batch):
        points, sums, shard = batch
        if model.training:
            with torch.no_grad():
                CHANGE
        return nn.functional.mse_loss(model(points), sums)
    def optimizer(self, model):
        return torch.optim.Adam((one for one in model.parameters() if one.requires_grad), lr=0.01)
"""
TWO_BITS = Coding(2)


def task(folder, buffers="", change="pass"):
    lines = "\n        ".join(buffers.splitlines() or ["pass"])
    folder.joinpath("task.py").write_text(TASK.replace("BUFFERS", lines).replace("CHANGE", change))
    return CheckedTask(folder, "task.py")


def members(made):
    def order(rank):
        return Prepare(rank=rank, job="j", task="task.py", shards=3, batch=8, seed=3)

    return {rank: LocalTrainer(made, order(rank)) for rank in MEMBERS}


def rounds(trainers, number=2, coding=TWO_BITS, rule=MEAN, lines=(1, 1, 1), outer=(0.7, 0.9), steps=3):
    """The state after so many, as one of them that was sent it as a file would have it."""
    state = trainers[0].first_state()
    for round in range(number):
        meeting, waiting = {}, []
        for rank, trainer in trainers.items():
            start = start_round(
                round, state.name, MEMBERS, rank=rank, steps=steps, exchange_every=steps, part=4096,
                gather=coding, result=coding, rule=rule, shares=list(lines),
            )  # fmt: skip
            trainer.begin(start)
            leg = trainer.leg(state.weights, lambda *_: LegVerdict.GO_ON)
            trainer.evaluate(state.weights, [])
            terms = terms_of(start, rank, 0, state.layout, 8)
            meeting[rank] = SliceExchange(terms, leg.difference, leg.samples, ArrivalTimes(), 0.0)
        waiting = [(rank, out) for rank, exchange in meeting.items() for out in exchange.outgoing()]
        while waiting:
            rank, out = waiting.pop()
            waiting += [(out.to, said) for said in meeting[out.to].receive(rank, out.part, out.payload, 0.0)]
        assert len({exchange.mean().numpy().tobytes() for exchange in meeting.values()}) == 1
        state = outer_step(state, meeting[0].mean(), *outer)
    assert state_from_file(bytes(state.file), state.layout).name == state.name
    return state


def saved(trainers, state):
    """The file that a client writes of it, which must be what the model of a member would be saved as."""
    one = trainers[1]
    model = Model(state.layout.parameters, state.layout.values, len(one.frozen))
    file = written(one.file_layout, state.file, model, bytes(one.frozen[:]))
    one._load(state.weights)
    tensors = {name: tensor.clone().contiguous() for name, tensor in one._model.state_dict().items()}
    assert file == safetensors.torch.save(tensors)
    return safetensors.torch.load(file)


STILL = """self.register_buffer("big", torch.tensor([2**40 + 1, -(2**62) - 1, 2**63 - 1]))
self.register_buffer("third", torch.tensor([1 / 3, -0.0, 1e300], dtype=torch.float64))
self.register_buffer("exact", torch.tensor([1 / 3, 1e-7], dtype=torch.float64))
self.register_buffer("freqs_cis", torch.polar(torch.ones(8), torch.arange(8.0)))
self.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))
self.register_buffer("fp16", torch.tensor([1 / 3, torch.inf]).half())
self.register_buffer("brain", torch.tensor([1 / 3, 7.0]).bfloat16())
self.register_buffer("seen", torch.tensor([True, False]))
self.frozen = nn.Parameter(torch.arange(-5, 5, dtype=torch.int8), requires_grad=False)
self.frozen64 = nn.Parameter(torch.tensor([1 / 3], dtype=torch.float64), requires_grad=False)"""
NAMES = ("big", "third", "exact", "freqs_cis", "mask", "fp16", "brain", "seen", "frozen", "frozen64", "fixed.weight")


@pytest.mark.parametrize(
    ("coding", "rule"),
    [
        *((coding, MEAN) for coding in (Coding(), Coding(16), TWO_BITS, Coding(1, 0.25))),
        *((TWO_BITS, Rule(name, 1)) for name in ("median", "trimmed-mean", "centred-clipping")),
        (Coding(1, 0.25), Rule("multi-krum", 0)),
    ],
)
def test_what_no_member_changes_is_left_alone(tmp_path, coding, rule):
    trainers = members(task(tmp_path, STILL))
    before = saved(trainers, trainers[0].first_state())
    after = saved(trainers, rounds(trainers, coding=coding, rule=rule, lines=(3, 2, 1)))
    assert not torch.equal(before["one.weight"], after["one.weight"])
    for name in NAMES:
        bits = [one[name].reshape(-1).contiguous().view(torch.uint8).tolist() for one in (before, after)]
        assert bits[0] == bits[1], name


def test_counters_count_on_with_every_digit(tmp_path):
    """Equal changes are taken over exactly; of different ones the mean is rounded."""
    buffers = (
        'self.register_buffer("all", torch.tensor(2**40 + 1))\nself.register_buffer("own", torch.tensor(2**62 + 1))'
    )
    trainers = members(task(tmp_path, buffers, "model.all += 2**33 + 1; model.own += int(shard[0])"))
    after = saved(trainers, rounds(trainers))
    assert after["all"].item() == 2**40 + 1 + 6 * (2**33 + 1)
    assert after["own"].item() == 2**62 + 1 + 6 * 1
    assert after["norm.num_batches_tracked"].item() == 6


def test_float64_keeps_its_digits_in_buffers_and_in_parameters(tmp_path):
    buffers = 'self.register_buffer("sum", torch.tensor(1 / 3, dtype=torch.float64))\nself.double()'
    made = task(tmp_path, buffers, "model.sum += 2.0**-40")
    made.loss = lambda model, batch, loss=made.loss: loss(model, [one.double() for one in batch])
    trainers = members(made)
    assert trainers[0].layout.parameters == 0
    state = trainers[0].first_state()
    start = saved(trainers, state)
    after = saved(trainers, rounds(trainers))
    assert after["sum"].item() == 1 / 3 + 6 * 2.0**-40
    moved = after["one.weight"] - start["one.weight"]
    assert bool(moved.any())
    assert not torch.equal(after["one.weight"], after["one.weight"].float().double())
    assert torch.equal(after["fixed.weight"], start["fixed.weight"])


def test_complex_parameters_train(tmp_path):
    made = task(tmp_path, "self.z = nn.Parameter(torch.ones(300, dtype=torch.complex64))")
    made.loss = lambda model, batch, loss=made.loss: loss(model, batch) + (model.z - 2j).abs().square().mean()
    trainers = members(made)
    after = saved(trainers, rounds(trainers, coding=Coding(4)))
    assert after["z"].imag.mean() > 0
    assert after["z"].dtype == torch.complex64


@pytest.mark.parametrize(
    ("buffers", "change", "says"),
    [
        ('self.register_buffer("mask", torch.tensor([-torch.inf]))', "model.mask.fill_(0)", "mask"),
        ('self.register_buffer("peak", torch.tensor([1.0]))', "model.peak.fill_(torch.inf)", "peak"),
        ('self.register_buffer("kind", torch.tensor([1]))', "model.kind = model.kind / 2", "kind"),
        ("pass", "model.fixed.weight.mul_(0.9)", "fixed.weight is frozen"),
        ("pass", "model.fixed.bias.data = model.fixed.bias.data + 1", "fixed.bias is frozen"),
        ("pass", "model.fixed.bias = nn.Parameter(torch.zeros(300), requires_grad=False)", "fixed.bias is frozen"),
    ],
)
def test_what_changes_so_that_nothing_can_be_sent_is_named(tmp_path, buffers, change, says):
    made = task(tmp_path, buffers, change)
    with pytest.raises(TaskMistake) as caught:
        rounds(members(made))
    assert f"{says} " in caught.value.cause


MADE_UP = """self.steps = 0
type(self).get_extra_state = lambda self: torch.tensor([0.5, self.steps])"""


@pytest.mark.parametrize(
    ("change", "refused"), [("pass", ""), ("model.steps += int(shard[0])", "made up by state_dict()")]
)
def test_what_the_state_dict_makes_up_must_be_the_same_at_all_members(tmp_path, change, refused):
    made = task(tmp_path, MADE_UP, change)
    trainers = members(made)
    if not refused:
        assert saved(trainers, rounds(trainers))["_extra_state"].tolist() == [0.5, 0.0]
        return
    with pytest.raises(TaskMistake) as caught:
        rounds(trainers)
    assert refused in caught.value.cause


def test_what_no_model_file_holds_is_named_before_anything_is_sent(tmp_path):
    made = task(tmp_path, 'self.register_buffer("f", torch.zeros(2, dtype=torch.complex128))')
    with pytest.raises(TaskMistake, match=r"model\(\)") as caught:
        members(made)
    assert "f holds torch.complex128" in caught.value.cause


ROWS = """
import torch
from torch import nn

class Task:
    def model(self):
        model = nn.EmbeddingBag(300, 7, sparse=True, mode="sum")
        nn.init.zeros_(model.weight)
        return model
    def data(self, split, shard, shards):
        return [(torch.tensor([9 * shard]), 1.0), (torch.tensor([200]), 1.0 + shard)] * 4
    def loss(self, model, batch):
        rows, aim = batch
        return (model(rows) - aim[:, None].float()).square().sum()
    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.0625)
"""


@pytest.mark.parametrize("coding", [Coding(), TWO_BITS, Coding(8, 0.25)])
def test_rows_that_one_member_touched_are_not_thinned_by_the_others(tmp_path, coding):
    tmp_path.joinpath("task.py").write_text(ROWS)
    trainers = members(CheckedTask(tmp_path, "task.py"))
    assert (trainers[0].layout.parameters, trainers[0].layout.rows) == (0, 2100)
    table = saved(trainers, rounds(trainers, 1, coding, lines=(1, 2, 3), steps=1))["weight"]
    # One step of 8 samples, four of them of the member's own row: 2 * 0.0625 * 4 = half of the way to 1.
    assert table[[0, 9, 18]].tolist() == [[0.5] * 7] * 3
    assert table[200].tolist() == [1.0] * 7  # all touched it: half of the way to 1, 2 and 3
    assert table.count_nonzero() == 4 * 7


def test_a_rule_that_bears_liars_counts_all_members_in_each_row(tmp_path):
    tmp_path.joinpath("task.py").write_text(ROWS)
    trainers = members(CheckedTask(tmp_path, "task.py"))
    table = saved(trainers, rounds(trainers, 1, Coding(), Rule("median", 1), steps=1))["weight"]
    assert table.count_nonzero() == 7
