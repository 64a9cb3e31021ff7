"""A task is tried as a peer would run it, before anything is sent: what that finds, and what it tells meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from axonp2p.errors import TaskMistake
from axonp2p.kinds.train.local.trial import try_task
from axonp2p.kinds.train.local.trial_messages import TrialFound
from axonp2p.kinds.train.section import train_job
from axonp2p.training.worker.redo_server import RedoServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[5]
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RedoServer]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    server = RedoServer(1)
    yield server
    server.close()
    torch.set_num_threads(threads)


def tried(folder: Path, server: RedoServer | None = None, told: list[str] | None = None) -> TrialFound:
    """In the folder itself: as in the sandbox, it is the working directory."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        return try_task(folder, train_job(folder), server, [].append if told is None else told.append)
    finally:
        os.chdir(before)


def changed(tmp_path: Path, *changes: tuple[str, str], toml: tuple[str, str] = ("", "")) -> Path:
    """The digits, with changes in the task and in job.toml."""
    folder = tmp_path / "job"
    shutil.copytree(DIGITS, folder)
    for file, pairs in {"task.py": changes, "job.toml": (toml,)}.items():
        text = (folder / file).read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (folder / file).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("folder", "parameters"),
    [(DIGITS, 9610), (ROOT / "examples" / "text", 1_040_768), (ROOT / "client_cli" / "templates" / "train", 4482)],
)
def test_every_job_that_we_ship_passes(server: RedoServer, folder: Path, parameters: int) -> None:
    found = tried(folder, server)
    assert found.parameters == found.coded == found.values == parameters
    assert found.train_samples > 1000
    assert found.test_samples >= 16
    assert found.flops_per_sample > 2 * parameters
    assert found.step_s > 0
    assert found.metrics
    assert (found.unchecked, found.not_loaded) == ("", "")
    assert not (folder / "__pycache__").exists()


def test_what_is_frozen_is_counted(server: RedoServer) -> None:
    found = tried(ROOT / "examples" / "lora", server)
    assert found.values < found.parameters
    assert found.frozen_bytes == 4 * (found.parameters - found.coded)


KEEPS = """
        self.calls = getattr(self, "calls", 0) + 1
        images, digits = batch
        images = images * (1 + self.calls % 3)"""


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (KEEPS, "the task keeps something between steps that changes them"),
        ('images, digits = batch; (Path(__file__).parent / "seen").write_text("yes")', "the task fails"),
    ],
)
def test_steps_that_cannot_be_done_again_are_told(server: RedoServer, tmp_path: Path, loss: str, why: str) -> None:
    assert why in tried(changed(tmp_path, ("images, digits = batch", loss)), server).unchecked


def test_a_model_too_large_for_checks_is_told_as_peers_tell_it(server: RedoServer, tmp_path: Path) -> None:
    larger = ("nn.Dropout(0.3)", "nn.Linear(128, 6_000), nn.Linear(6_000, 128)")
    folder = changed(tmp_path, larger, toml=('memory = "1 GiB"', 'memory = "200 MB"'))
    assert "needs memory = " in tried(folder, server).unchecked


def test_it_tells_what_of_the_task_runs(tmp_path: Path) -> None:
    told: list[str] = []
    tried(changed(tmp_path), told=told)
    wanted = [
        "loading task.py",
        "Task()",
        "model()",
        "optimizer()",
        'data("train", 0, 4) in step 1',
        "loss() in step 1",
    ]
    wanted += ["loss() in step 16", "evaluate()", "making the model's file and loading it", 'data("train", 0, 1)']
    places = [told.index(what) for what in wanted if what != "Task()"]
    assert places == sorted(places)


def test_a_mistake_in_a_later_step_is_found(tmp_path: Path) -> None:
    fails = "self.calls = getattr(self, 'calls', 0) + 1\n        images, digits = batch[: 3 - self.calls]"
    with pytest.raises(TaskMistake) as caught:
        tried(changed(tmp_path, ("images, digits = batch", fails)))
    assert caught.value.message == "loss()"
    assert "not enough values to unpack" in caught.value.cause


def test_a_schedule_is_asked_for_all_of_the_job(tmp_path: Path) -> None:
    late = "def schedule(self, step, steps):\n        return 1.0 if step < steps - 1 else -1.0\n\n    def loss("
    with pytest.raises(TaskMistake, match=r"schedule\(\)"):
        tried(changed(tmp_path, ("def loss(", late)))


def test_a_file_that_does_not_go_back_into_the_model_is_told(tmp_path: Path) -> None:
    counts = """class Counts(nn.Sequential):
    def get_extra_state(self):
        return {"step": 1}

    def set_extra_state(self, state):
        pass


class Task:"""
    folder = changed(tmp_path, ("nn.Sequential(", "Counts("), ("class Task:", counts))
    assert "_extra_state" in tried(folder).not_loaded


def test_fewer_samples_than_peers_are_a_mistake_here_too(tmp_path: Path) -> None:
    few = ("table = torch.tensor(rows[shard::shards])", "table = torch.tensor(rows[:3][shard::shards]).reshape(-1, 65)")
    with pytest.raises(TaskMistake, match=r'data\("train", 3, 4\)'):
        tried(changed(tmp_path, few))


def test_much_test_data_is_evaluated_in_part(tmp_path: Path) -> None:
    asked: list[str] = []
    held_out = tried(
        changed(tmp_path, ("HELD_OUT = 360", "HELD_OUT = 1400"), toml=("peers = 4", "peers = 2")), told=asked
    )
    assert held_out.test_samples == 1400
    assert 'data("test", 0, 4)' in asked
