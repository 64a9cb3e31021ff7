from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.samples.batches import Batches
from axonp2p.training.trainer.samples.shards import Shards
from axonp2p.training.trainer.task import Task


class Letters(Dataset):
    """Items of several kinds, one at a time."""

    def __len__(self):
        return 10

    def __getitem__(self, number):
        return {"number": number, "square": torch.tensor(float(number) ** 2)}


PAIRS = TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10))


@pytest.mark.parametrize(
    "dataset", [PAIRS, Letters(), Subset(PAIRS, [5, 6, 7, 8, 1, 2]), [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]]
)
def test_a_batch_is_what_a_data_loader_gives(tmp_path, dataset):
    numbers = [3, 0, 5]
    (expected,) = DataLoader(dataset, batch_sampler=[numbers])
    found = Batches(task(tmp_path, "return None"), dataset).take(numbers)
    assert type(found) is type(expected)
    assert str(found) == str(expected)


def task(tmp_path, data):
    lines = "\n        ".join(data.splitlines())
    (tmp_path / "task.py").write_text(
        "import random, torch\nfrom torch import nn\nfrom torch.utils.data import *\n"
        f"class Task:\n    def model(self): ...\n    def loss(self, model, batch): ...\n"
        f"    calls = []\n    def data(self, split, shard, shards):\n"
        f"        self.calls.append((split, shard))\n        {lines}\n"
    )
    return Task(tmp_path, "task.py")


def all_of(batches):
    return [value.item() for value in batches._batches.take(list(range(batches.samples)))[0]]


def test_several_shards_are_one_dataset_and_each_is_loaded_once(tmp_path):
    made = task(tmp_path, "return TensorDataset(torch.arange(10)[shard::shards])")
    shards = Shards(made, 3, seed=0, batch=2)
    assert all_of(shards.train([2, 0])) == [0, 3, 6, 9, 2, 5, 8]
    assert all_of(shards.train([0, 1, 2])) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    assert made._user.calls == [("train", 0), ("train", 2), ("train", 1)]


def test_shards_of_other_kinds_or_shapes_are_joined_too(tmp_path):
    made = task(tmp_path, "return TensorDataset(torch.full((3, 2), shard, dtype=torch.long if shard else torch.float))")
    batches = Shards(made, 2, seed=0, batch=2).train([0, 1])
    assert batches.samples == 6
    assert batches._batches.take([5])[0].tolist() == [[1, 1]]


def test_empty_shards_among_others_do_no_harm_and_alone_are_a_mistake(tmp_path):
    made = task(tmp_path, "return TensorDataset(torch.arange(2)[shard::shards])")
    shards = Shards(made, 3, seed=0, batch=2)
    assert all_of(shards.train([1, 2])) == [1]
    with pytest.raises(TaskMistake) as caught:
        shards.train([2])
    assert caught.value.message == 'data("train", 2, 3)'
    assert "more shards than samples" in caught.value.cause


def test_test_data_comes_shard_by_shard_without_what_is_absent_or_empty(tmp_path):
    made = task(tmp_path, "if shard == 1: return None\nreturn [10, 11, 12][shard::shards] if shard < 3 else []")
    assert Shards(made, 4, seed=0, batch=2).test([3, 2, 1, 0]) == [[10], [12]]


def test_all_shards_draw_the_same_chance(tmp_path):
    made = task(
        tmp_path,
        "order = torch.randperm(6).tolist()\nrandom.shuffle(order)\n"
        "return TensorDataset(torch.tensor(order[shard::shards]))",
    )
    random.seed(99)
    shards = Shards(made, 3, seed=4, batch=2)
    assert sorted(all_of(shards.train([0, 1, 2]))) == [0, 1, 2, 3, 4, 5]


def test_a_length_that_raises_is_the_tasks_mistake(tmp_path):
    made = task(
        tmp_path, "class Broken:\n    __getitem__ = None\n    def __len__(self): return 1 // 0\nreturn Broken()"
    )
    with pytest.raises(TaskMistake) as caught:
        Shards(made, 1, seed=0, batch=2).train([0])
    assert "ZeroDivisionError" in caught.value.cause


def test_the_task_makes_its_own_batches(tmp_path):
    made = task(tmp_path, "return [torch.arange(3), torch.arange(5)]")
    made._user.collate = lambda samples: nn.utils.rnn.pad_sequence(samples, batch_first=True)
    batch = Shards(made, 1, seed=0, batch=2).train([0])._batches.take([1, 0])
    assert batch.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 0, 0]]


def test_a_tensor_dataset_is_collated_by_a_task_that_does(tmp_path):
    made = task(tmp_path, "return TensorDataset(torch.arange(4))")
    made._user.collate = lambda samples: [sample.item() for (sample,) in samples]
    assert Shards(made, 1, seed=0, batch=2).train([0])._batches.take([3, 1]) == [3, 1]


def test_of_a_data_loader_its_dataset_and_collate_fn_are_used(tmp_path, capsys):
    made = task(tmp_path, "return DataLoader([1.5, 2.5, 3.5], batch_size=2, shuffle=True, collate_fn=sorted)")
    shards = Shards(made, 2, seed=0, batch=2)
    assert shards.train([0, 1])._batches.take([2, 0, 4]) == [1.5, 2.5, 3.5]
    assert capsys.readouterr().out.count("of the DataLoader its dataset and collate_fn are used") == 1


def test_samples_that_make_no_batch_lead_to_collate(tmp_path):
    made = task(tmp_path, "return [torch.zeros(3), torch.zeros(5)]")
    with pytest.raises(TaskMistake, match="making a batch") as caught:
        Shards(made, 1, seed=0, batch=2).train([0])._batches.take([0, 1])
    assert "collate(self, samples)" in caught.value.cause


def test_a_mistake_in_collate_is_told_with_its_name(tmp_path):
    made = task(tmp_path, "return [1, 2]")
    made._user.collate = lambda samples: samples[7]
    with pytest.raises(TaskMistake, match=r"collate\(\)"):
        Shards(made, 1, seed=0, batch=2).train([0])._batches.take([0, 1])
