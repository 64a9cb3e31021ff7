"""The process in which steps are taken again: it answers, or its end is an answer, and it leaves this one as it was."""

from __future__ import annotations

import os
import random

import numpy
import pytest
import torch

from axonp2p.blobs.pieces import book_of
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.worker.out_folder import OutFolder
from axonp2p.training.worker.redo_server import RedoServer, worker_peak_mb
from tests.unit.training.trainer.test_local_trainer import TASK
from tests.unit.training.worker.test_redo import legs, order, segments, trainer

DIES = TASK.replace("    def loss(", "    def loss(self, model, batch):\n        import os; os._exit(7)\n    def lost(")
HANGS = TASK.replace(
    "    def loss(", "    def loss(self, model, batch):\n        import time; time.sleep(600)\n    def lost("
)


@pytest.fixture
def server():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    server = RedoServer(1)
    yield server
    server.close()
    torch.set_num_threads(threads)


def segment(made):
    return next(segments(order(), next(legs(made, order())).places))


@pytest.mark.parametrize("most_kept", [0, 10**9])
def test_it_comes_to_the_same_end_as_often_as_it_is_asked_and_no_chance_is_drawn_here(
    server, tmp_path, monkeypatch, most_kept
):
    monkeypatch.setattr("axonp2p.training.worker.redo_server.MOST_KEPT_VALUES", most_kept)
    made = trainer(tmp_path)
    wanted, data, end = segment(made)
    chance = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
    redo = server.for_job(tmp_path, made._prepare)
    for _ in range(3):
        assert redo(wanted, data, made, lambda: True).end == end
    assert torch.equal(chance[0], torch.get_rng_state())
    assert chance[1:] == (random.getstate(), numpy.random.get_state()[1].tolist())


def test_other_bytes_and_a_process_that_dies_are_answers_and_the_next_one_is_asked_as_before(server, tmp_path):
    made = trainer(tmp_path)
    wanted, data, end = segment(made)
    (tmp_path / "dies").mkdir()
    (tmp_path / "dies" / "task.py").write_text(DIES)
    assert server.for_job(tmp_path / "dies", made._prepare)(wanted, data, made, lambda: True).failed == "cannot be done"
    other = RedoServer(1)
    redo = other.for_job(tmp_path, made._prepare)
    assert redo(wanted, memoryview(b"nothing"), made, lambda: True).failed == "other bytes"
    assert redo(wanted, data, made, lambda: True).end == end
    other.close()
    assert redo(wanted, data, made, lambda: True).failed == "cannot be done"


def test_a_redo_for_which_memory_is_too_short_is_not_begun(tmp_path, capfd):
    made = trainer(tmp_path)
    wanted, data, _ = segment(made)
    for memory_mb, failed in ((worker_peak_mb() // 2, "cannot be done"), (worker_peak_mb() + 500, "")):
        server = RedoServer(1, memory_mb=memory_mb)
        assert server.for_job(tmp_path, made._prepare)(wanted, data, made, lambda: True).failed == failed
        server.close()
    assert 'they need memory = "' in capfd.readouterr().err


FROZEN = TASK.replace(
    "    def data(",
    "    def model(self, made=model):\n"
    "        model = made(self)\n"
    "        model.fixed = nn.Parameter(torch.arange(4.0) + BEGIN, requires_grad=False)\n"
    "        return model\n"
    "    def data(",
)


@pytest.mark.parametrize("most_kept", [0, 10**9])
def test_it_has_the_frozen_parameters_of_the_job_whatever_model_makes_here(server, tmp_path, monkeypatch, most_kept):
    monkeypatch.setattr("axonp2p.training.worker.redo_server.MOST_KEPT_VALUES", most_kept)
    (tmp_path / "other").mkdir()
    made = trainer(tmp_path, FROZEN.replace("BEGIN", "0"))
    wanted, data, end = segment(made)
    here = trainer(tmp_path / "other", FROZEN.replace("BEGIN", "7"))
    redo = server.for_job(tmp_path / "other", here._prepare)
    assert redo(wanted, data, here, lambda: True).failed == "other bytes"
    job = bytearray(made.frozen[:])
    here.take_frozen(memoryview(job), book_of(job))
    for _ in range(2):
        assert redo(wanted, data, here, lambda: True).end == end


def test_who_has_the_jobs_frozen_parameters_but_cannot_make_them_again_says_so(server, tmp_path):
    (tmp_path / "other").mkdir()
    made = trainer(tmp_path, FROZEN.replace("BEGIN", "0"))
    wanted, data, _ = segment(made)
    trainer(tmp_path / "other", FROZEN.replace("BEGIN", "7"))
    redo = server.for_job(tmp_path / "other", made._prepare)
    assert redo(wanted, data, made, lambda: True).failed == "cannot be done"


def test_what_is_not_wanted_any_more_is_ended_at_once(server, tmp_path):
    made = trainer(tmp_path)
    wanted, data, _ = segment(made)
    (tmp_path / "hangs").mkdir()
    (tmp_path / "hangs" / "task.py").write_text(HANGS)
    redo = server.for_job(tmp_path / "hangs", made._prepare)
    for _ in range(2):  # the second one waits for nothing of the first
        looks = iter([True, True, False])
        assert redo(wanted, data, made, lambda looks=looks: next(looks)) is None


def test_its_files_are_its_own(server, tmp_path):
    text = TASK.replace(
        "    def loss(",
        "    def loss(self, model, batch):\n"
        "        import os, tempfile\n"
        "        own = tempfile.gettempdir()\n"
        "        assert 'task.py' in os.listdir() and os.listdir(own) == [] and os.environ['TMPDIR'] == own\n"
        "        open(own + '/mine', 'w').close(); os.remove(own + '/mine')\n"
        "        try:\n"
        "            open('yours', 'w').write('x')\n"
        "        except PermissionError:\n"
        "            pass\n"
        "        return self.lost(model, batch)\n"
        "    def lost(",
    )
    made = trainer(tmp_path)
    wanted, data, end = segment(made)
    (tmp_path / "task.py").write_text(text)
    assert server.for_job(tmp_path, made._prepare)(wanted, data, made, lambda: True).end == end
    assert not os.path.exists(tmp_path / "yours")


def test_models_that_grow_and_optimisers_that_keep_no_state_dict_are_the_tasks_mistakes(tmp_path):
    from axonp2p.errors import TaskMistake

    grows = TASK.replace("    def loss(", "    def loss(self, model, batch):\n"
        "        model.register_buffer('more', torch.zeros(3))\n"
        "        return self.lost(model, batch)\n    def lost(")  # fmt: skip
    made = trainer(tmp_path, grows)
    made.begin(order())
    with pytest.raises(TaskMistake, match="local steps"):
        made.leg(made.first_state().weights, lambda *_: LegVerdict.GO_ON)
    bare = TASK + (
        "    def optimizer(self, model):\n"
        "        class Bare(torch.optim.SGD):\n"
        "            def state_dict(self):\n"
        "                return {}\n"
        "        return Bare(model.parameters(), lr=0.1)\n"
    )
    (tmp_path / "task.py").write_text(bare)
    with pytest.raises(TaskMistake, match=r"optimizer\(\)"):
        LocalTrainer(CheckedTask(tmp_path, "task.py"), made._prepare)


def test_a_leg_that_changes_no_weight_is_seen(tmp_path):
    made = trainer(
        tmp_path, TASK + "    def optimizer(self, model):\n        return torch.optim.SGD(model.parameters(), lr=0.0)\n"
    )
    still = next(legs(made, order()))
    assert not still.moved
    assert next(legs(trainer(tmp_path), order())).moved


def test_what_a_redo_prints_and_writes_into_out_is_seen_nowhere(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("AXON_OUT", "")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    out = OutFolder(scratch)
    out.make()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    server = RedoServer(1, out)
    text = TASK.replace(
        "    def loss(",
        "    def loss(self, model, batch):\n"
        "        import os\n"
        "        print('a step of another')\n"
        f"        for place in (os.environ['AXON_OUT'], '{scratch}/out'):\n"
        "            open(place + '/steps', 'a').write('1')\n"
        "        return self.lost(model, batch)\n"
        "    def lost(",
    )
    made = trainer(tmp_path)
    wanted, data, end = segment(made)
    (tmp_path / "task.py").write_text(text)
    assert server.for_job(tmp_path, made._prepare)(wanted, data, made, lambda: True).end == end
    server.close()
    torch.set_num_threads(threads)
    assert list(out.own.iterdir()) == []
    assert (scratch / "out").resolve() == out.own
    assert "another" not in "".join(capfd.readouterr())
