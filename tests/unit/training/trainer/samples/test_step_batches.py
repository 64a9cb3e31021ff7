"""Which samples a step reads: the same for everybody who takes it, whatever was read before."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from axonp2p.errors import TaskMistake
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.samples.shards import Shards
from axonp2p.training.trainer.samples.step_batches import Batches, OwnChance
from axonp2p.training.trainer.task import CheckedTask


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
    return CheckedTask(tmp_path, "task.py")


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


HEAD = """
import itertools, random, torch
from torch.utils.data import IterableDataset

class Numbers(IterableDataset):
    def __init__(self, first, count):
        self.first, self.count = first, count
    def __iter__(self):
        numbers = itertools.count(self.first) if self.count is None else range(self.first, self.first + self.count)
        for number in numbers:
            yield (number, random.random())

class Task:
    def model(self): ...
    def loss(self, model, batch): ...
    def collate(self, samples): return samples
"""


def shards(folder, methods, count=2, batch=4, **options):
    lines = "".join(f"    {line}\n" for line in methods.splitlines())
    (folder / "task.py").write_text(HEAD + lines)
    return Shards(CheckedTask(folder, "task.py"), count, 7, batch, StepOptions(**options))


STREAM = "def data(self, split, shard, shards): return Numbers(100 * shard, None)"


def numbers_at(batches, step):
    return [sample[0] for part in batches.at(step) for sample in part.batch]


def test_a_stream_is_read_step_after_step(tmp_path):
    read = shards(tmp_path, STREAM).train([0])
    assert [numbers_at(read, step) for step in (0, 1, 2)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert read.samples is None


def test_a_step_reads_the_same_whether_its_reader_was_there_before_or_not(tmp_path):
    one, late = shards(tmp_path, STREAM).train([1]), shards(tmp_path, STREAM).train([1])
    first = [one.at(step) for step in range(4)]
    random.seed(3)
    assert late.at(2) == first[2]
    random.random()  # the steps draw by chance too, between two samples
    assert late.at(3) == first[3]
    assert one.at(1) == first[1], "a round that is done again reads from the beginning"


def test_streams_of_several_shards_take_turns(tmp_path):
    read = shards(tmp_path, STREAM).train([0, 1])
    assert numbers_at(read, 0) == [0, 100, 1, 101]


def test_a_stream_that_ends_begins_anew(tmp_path):
    read = shards(tmp_path, "def data(self, split, shard, shards): return Numbers(0, 3)").train([0])
    assert numbers_at(read, 0) + numbers_at(read, 1) == [0, 1, 2, 0, 1, 2, 0, 1]


def test_reading_leaves_other_chance_as_it_is(tmp_path):
    read = shards(tmp_path, STREAM).train([0])
    random.seed(1)
    expected = random.random()
    random.seed(1)
    read.at(0)
    assert random.random() == expected


def test_an_empty_stream_is_a_mistake(tmp_path):
    read = shards(tmp_path, "def data(self, split, shard, shards): return Numbers(0, 0)").train([0])
    with pytest.raises(TaskMistake, match='data\\("train", 0, 2\\)') as caught:
        read.at(0)
    assert "there are no samples in it" in caught.value.cause


def test_streams_and_datasets_are_not_mixed(tmp_path):
    made = shards(tmp_path, "def data(self, split, shard, shards): return Numbers(0, 3) if shard else [1, 2]")
    with pytest.raises(TaskMistake) as caught:
        made.train([0, 1])
    assert "some shards are an IterableDataset, and others are not" in caught.value.cause


def test_held_out_streams_are_read_to_their_end(tmp_path):
    made = shards(tmp_path, "def data(self, split, shard, shards): return Numbers(0, 3)")
    (test,) = made.test([0])
    assert [number for number, _ in test] == [0, 1, 2]


def test_a_held_out_stream_without_an_end_is_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr("axonp2p.training.trainer.task.MOST_TEST_SAMPLES", 10)
    with pytest.raises(TaskMistake) as caught:
        shards(tmp_path, STREAM).test([0])
    assert "more than 10 samples, or no end" in caught.value.cause


def test_what_can_be_read_only_once_is_refused(tmp_path):
    made = shards(tmp_path, "def data(self, split, shard, shards): return iter([1, 2])")
    with pytest.raises(TaskMistake) as caught:
        made.train([0])
    assert "a class of IterableDataset begins again" in caught.value.cause


def test_a_batch_comes_in_parts(tmp_path):
    for methods in (STREAM, "def data(self, split, shard, shards): return [(n,) for n in range(10)]"):
        parts = shards(tmp_path, methods, micro_batch=3).train([0]).at(0)
        assert [part.samples for part in parts] == [3, 1]
        assert [len(part.batch) for part in parts] == [3, 1]


SAMPLED = """def data(self, split, shard, shards): return [(number,) for number in range(10)]
def sampler(self, dataset, epoch): return torch.utils.data.WeightedRandomSampler([1, 1, 0, 0, 0, 0, 0, 0, 0, 8], 6)"""


def test_a_task_may_say_which_samples_an_epoch_reads(tmp_path):
    one, late = shards(tmp_path, SAMPLED).train([0]), shards(tmp_path, SAMPLED).train([0])
    read = [numbers_at(one, step) for step in range(6)]
    drawn = [number for step in read for number in step]
    assert set(drawn) <= {0, 1, 9}
    assert drawn.count(9) > 12
    assert drawn[:6] != drawn[6:12], "each epoch draws anew"
    torch.manual_seed(5)
    assert numbers_at(late, 4) == read[4]
    assert numbers_at(one, 1) == read[1]


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        ("[]", "from 0 to 9, at least one"),
        ("[10]", "from 0 to 9"),
        ("[-1]", "from 0 to 9"),
        ("[0] * (epoch + 1)", "it gave 5 numbers for epoch 4, and 1 for epoch 0"),
        ("['first']", "invalid literal"),
    ],
)
def test_a_sampler_that_gives_no_order_is_the_tasks_mistake(tmp_path, gives, said):
    methods = SAMPLED.replace("torch.utils.data.WeightedRandomSampler([1, 1, 0, 0, 0, 0, 0, 0, 0, 8], 6)", gives)
    with pytest.raises(TaskMistake, match=r"sampler\(\)") as caught:
        shards(tmp_path, methods).train([0]).at(1)
    assert said in caught.value.cause


def test_chance_of_its_own_goes_on_where_it_ended():
    def drawn():
        return random.random(), torch.rand(1).item()

    chance, other = OwnChance(5), OwnChance(5)
    with chance:
        first = [drawn(), drawn()]
    with other:
        assert drawn() == first[0]
    drawn()
    with other:
        assert drawn() == first[1]


NOISY = """def data(self, split, shard, shards):
    class Noisy(torch.utils.data.Dataset):
        def __len__(self): return 10
        def __getitem__(self, number): return number, random.random(), torch.rand(1).item()
    return Noisy()"""


def samples_at(batches, step):
    return [sample for part in batches.at(step) for sample in part.batch]


@pytest.mark.slow
def test_what_is_read_ahead_is_what_each_step_would_have_read(tmp_path):
    made = shards(tmp_path, NOISY, loader_workers=2)
    alone = shards(tmp_path, NOISY, loader_workers=2).train([0], ahead=False)
    ahead = made.train([0])
    random.seed(3)
    assert [samples_at(ahead, step) for step in (0, 1, 2, 7, 8, 1)] == [
        samples_at(alone, step) for step in (0, 1, 2, 7, 8, 1)
    ]
    assert samples_at(alone, 0) != samples_at(alone, 5), "each step has chance of its own"
    assert ahead.samples == 10


def test_streams_are_not_read_ahead(tmp_path):
    with pytest.raises(TaskMistake, match=r"data\(\)") as caught:
        shards(tmp_path, STREAM, loader_workers=2).train([0])
    assert "loader-workers of job.toml are for datasets with len()" in caught.value.cause
