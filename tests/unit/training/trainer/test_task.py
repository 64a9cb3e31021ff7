from __future__ import annotations

import pytest
import torch
from torch import nn

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.task_file import MOST_CHARACTERS

GOOD = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Linear(2, 1)
    def data(self, split, shard, shards):
        return TensorDataset(torch.ones(6, 2)[shard::shards])
    def loss(self, model, batch):
        return model(batch[0]).mean()
"""


def write(folder, text):
    (folder / "task.py").write_text(text)
    return folder


def task(folder, *changes):
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return CheckedTask(write(folder, text), "task.py")


def mistake(run):
    with pytest.raises(TaskMistake) as caught:
        run()
    assert "axonp2p" not in caught.value.cause, "only the user's own frames are shown"
    return caught.value


@pytest.mark.slow
def test_a_task_is_plain_pytorch(tmp_path):
    made = task(tmp_path)
    model = made.model()
    assert isinstance(made.optimizers(model)[0], torch.optim.AdamW)
    assert len(made.data("train", 1, 4)) == 2
    assert made.loss(model, [torch.ones(3, 2)]).requires_grad
    assert not made.evaluates
    assert not (tmp_path / "__pycache__").exists()


def test_files_beside_it_can_be_imported(tmp_path):
    (tmp_path / "beside_the_task.py").write_text("WIDTH = 7")
    made = task(
        tmp_path, ("import torch\n", "import torch\nfrom beside_the_task import WIDTH\n"), ("(2, 1)", "(2, WIDTH)")
    )
    assert made.model().out_features == 7


def test_a_mistake_is_told_with_the_lines_of_the_users_file(tmp_path):
    made = task(
        tmp_path, ("model(batch[0]).mean()", "self.helper(batch)\n    def helper(self, batch):\n        return 1 / 0")
    )
    told = mistake(lambda: made.loss(nn.Linear(2, 1), []))
    assert told.message == "loss()"
    assert 'File "task.py", line 12, in loss' in told.cause
    assert 'File "task.py", line 14, in helper' in told.cause
    assert "return 1 / 0" in told.cause
    assert told.cause.endswith("ZeroDivisionError: division by zero")
    assert str(tmp_path) not in told.cause


def test_a_mistake_inside_torch_is_told_at_the_users_line(tmp_path):
    made = task(tmp_path)
    told = mistake(lambda: made.loss(made.model(), [torch.ones(3, 5)]))
    assert 'File "task.py", line 12, in loss' in told.cause
    assert "mat1 and mat2 shapes cannot be multiplied" in told.cause
    assert "site-packages" not in told.cause


def test_causes_are_told_too(tmp_path):
    body = (
        'self.missing\n        except AttributeError as error:\n            raise ValueError("my own words") from error'
    )
    made = task(tmp_path, ("return model(batch[0]).mean()", f"try:\n            {body}"))
    told = mistake(lambda: made.loss(made.model(), []))
    assert "has no attribute 'missing'" in told.cause
    assert "direct cause" in told.cause
    assert told.cause.endswith("ValueError: my own words")


def test_a_syntax_error_shows_its_line(tmp_path):
    told = mistake(lambda: CheckedTask(write(tmp_path, "class Task:\n    def model(self:\n"), "task.py"))
    assert told.message == "loading task.py"
    assert 'File "task.py", line 2' in told.cause


@pytest.mark.parametrize("ending", ["raise SystemExit(3)", "import sys; sys.exit()", "raise KeyboardInterrupt"])
def test_a_task_that_ends_the_program_made_a_mistake(tmp_path, ending):
    made = task(tmp_path, ("return nn.Linear(2, 1)", ending))
    told = mistake(made.model)
    assert "line 8, in model" in told.cause
    assert told.cause.endswith("A task must not end the program that runs it.")


def test_a_long_traceback_is_cut_in_the_middle(tmp_path):
    made = task(tmp_path, ("return nn.Linear(2, 1)", "raise ValueError('begin' + 'x' * 100000 + 'end')"))
    told = mistake(made.model)
    assert len(told.cause) < MOST_CHARACTERS
    assert "begin" in told.cause
    assert told.cause.endswith("end")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no class Task"),
        ("class Task: pass", "no method model(self)"),
        (GOOD.replace("def loss", "def los"), r"no method loss(self, model, batch)"),
        ("Task = 3", "has no class Task"),
    ],
)
def test_what_is_missing_is_named(tmp_path, text, sentence):
    told = mistake(lambda: CheckedTask(write(tmp_path, text), "task.py"))
    assert told.message == "loading task.py"
    assert sentence in told.cause


def test_a_file_that_is_missing_is_named(tmp_path):
    assert "No such file" in mistake(lambda: CheckedTask(tmp_path, "other.py")).cause


@pytest.mark.parametrize(
    ("change", "run", "sentence"),
    [
        (("return nn.Linear(2, 1)", "pass"), lambda made: made.model(), "model(): it returned nothing (None)"),
        (("nn.Linear(2, 1)", "nn.ReLU()"), lambda made: made.model(), "no parameters to train"),
        (("return TensorDataset", "TensorDataset"), lambda made: made.data("train", 0, 1), "must return a Dataset"),
        (
            ("return TensorDataset(torch.ones(6, 2)[shard::shards])", "yield 1"),
            lambda made: made.data("test", 0, 1),
            "a value of type generator",
        ),
        ((".mean()", ""), lambda made: made.loss(made.model(), [torch.ones(3, 2)]), "a tensor of shape (3, 1)"),
        (
            (".mean()", ".mean().item()"),
            lambda made: made.loss(made.model(), [torch.ones(3, 2)]),
            "a value of type float",
        ),
        ((".mean()", ".mean().detach()"), lambda made: made.loss(made.model(), [torch.ones(3, 2)]), "does not depend"),
    ],
)
def test_answers_of_the_wrong_kind_are_explained(tmp_path, change, run, sentence):
    assert sentence in mistake(lambda: run(task(tmp_path, change))).cause


def test_test_data_may_be_absent_and_training_data_may_not(tmp_path):
    made = task(tmp_path, ("return TensorDataset(torch.ones(6, 2)[shard::shards])", "return None"))
    assert made.data("test", 0, 1) is None
    assert mistake(lambda: made.data("train", 0, 1)).message == 'data("train", 0, 1)'


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("3.0", "it must return a dict of numbers by name"),
        ("{'accuracy': 'good'}", "could not convert string to float"),
        ("{str(n): 1.0 for n in range(33)}", "at most 32 metrics"),
        ("{'x' * 41: 1.0}", "names of 40 characters"),
    ],
)
def test_metrics_are_checked(tmp_path, returned, sentence):
    made = task(
        tmp_path, ("class Task:", f"class Task:\n    def evaluate(self, model, dataset):\n        return {returned}")
    )
    assert sentence in mistake(lambda: made.evaluate(nn.Linear(1, 1), None)).cause


def test_metrics_may_be_tensors(tmp_path):
    evaluate = "class Task:\n    def evaluate(self, model, dataset):\n        return {'accuracy': torch.tensor(0.5)}"
    assert task(tmp_path, ("class Task:", evaluate)).evaluate(nn.Linear(1, 1), None) == {"accuracy": 0.5}
