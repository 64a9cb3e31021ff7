"""`axon check` tells what peers would tell: jobs tried in real sandboxes, each with one thing that peers refuse."""

from __future__ import annotations

import os
import signal
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from axonp2p.errors import JobFailed, LimitReached, TaskMistake
from axonp2p.jobs.bundle import collect
from axonp2p.kinds.train.section import train_job
from axonp2p.sandbox.child import why_no_sandbox
from client_cli.meanwhile import Meanwhile
from client_cli.train import trial
from client_cli.train.check_text import TaskTrial
from tests.laboratory.fork_server import ReadProgram, fork_server
from tests.system.person import running_below

no_sandbox = why_no_sandbox()
pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")]

TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Linear(4, 2)

    def data(self, split, shard, shards):
        inputs = torch.randn(96, 4, generator=torch.Generator().manual_seed(1))[shard::shards]
        return TensorDataset(inputs, (inputs.sum(1) > 0).long())

    def loss(self, model, batch):
        inputs, wanted = batch
        return nn.functional.cross_entropy(model(inputs), wanted)
"""


def methods(text: str) -> str:
    """The task with these methods in place of its own."""
    return TASK + textwrap.indent(textwrap.dedent(text), "    ")


def written(folder: Path, task: str, toml: str = "", memory: str = "1 GiB", **files: str) -> Path:
    folder.mkdir()
    (folder / "task.py").write_text(task)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    head = f'name = "tried"\n{toml}\n[need]\npeers = 2\nmemory = "{memory}"\n'
    (folder / "job.toml").write_text(f"{head}[train]\nrounds = 2\nsteps = 4\nbatch = 8\n")
    return folder


def tried(folder: Path) -> TaskTrial:
    spec = train_job(folder)
    with Meanwhile(print) as meanwhile:
        return trial.try_task(spec, collect(folder, spec), meanwhile, print)


GROWS = """
def loss(self, model, batch):
    if not hasattr(model, "more"):
        model.more = nn.Linear(4, 2)
    inputs, wanted = batch
    return nn.functional.cross_entropy(model(inputs) + model.more(inputs), wanted)
"""
LAZY = """
def model(self):
    return nn.Sequential(nn.LazyLinear(2))
"""
COMPLEX = """
def model(self):
    model = nn.Linear(4, 2)
    model.register_buffer("freqs", torch.zeros(2, dtype=torch.complex128))
    return model
"""
OWN_OPTIMIZER = """
def optimizer(self, model):
    class Pair(torch.optim.SGD):
        def state_dict(self):
            return {"one": super().state_dict()}
    return Pair(model.parameters(), lr=0.1)
"""
WRITES = """
def evaluate(self, model, dataset):
    torch.save(model.state_dict(), "checkpoint-0.pt")
    return {"right": 1.0}
"""
OPENS_TO_WRITE = WRITES.replace('torch.save(model.state_dict(), "checkpoint-0.pt")', 'open("log.txt", "w")')
DOWNLOADS = """
def data(self, split, shard, shards):
    import urllib.request
    urllib.request.urlopen("http://example.org/data.csv")
"""
ROWS = {
    "a layer that loss() adds": (methods(GROWS), "have changed in number or size since model() built it", "correct"),
    "a lazy layer": (methods(LAZY), "0.weight has no size yet", "correct"),
    "a complex128 buffer": (methods(COMPLEX), "freqs holds torch.complex128", "correct"),
    "an optimiser of its own": (methods(OWN_OPTIMIZER), "has no param_groups and state", "correct"),
    "a module that is not listed": (f"import mymodel\n{TASK}", "No module named 'mymodel'", 'data = ["mymodel.py"]'),
    "what torch writes beside task.py": (methods(WRITES), "open file failed", "below tempfile.gettempdir()"),
    "what it writes beside task.py": (methods(OPENS_TO_WRITE), "log.txt", "below tempfile.gettempdir()"),
    "a download": (methods(DOWNLOADS), "URLError", "a task has no network"),
    "a GPU": (TASK.replace("nn.Linear(4, 2)", 'nn.Linear(4, 2).to("cuda")'), "CUDA", "leave .to("),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_peers_refuse_is_named_with_what_mends_it(tmp_path: Path, row: str) -> None:
    task, cause, fix = ROWS[row]
    folder = written(tmp_path / "job", task, mymodel__py="")
    before = sorted(os.listdir(folder))
    with pytest.raises(TaskMistake) as caught:
        tried(folder)
    assert cause in caught.value.cause
    assert fix in caught.value.fix
    assert sorted(os.listdir(folder)) == before


def test_what_peers_take_is_in_order_and_the_bundle_is_the_working_directory(tmp_path: Path) -> None:
    task = methods("""
        def model(self):
            import mymodel, tempfile, pathlib
            assert open("sizes.txt").read() == "4 2"
            (pathlib.Path(tempfile.gettempdir()) / "mine").write_text("x")
            return mymodel.made(*map(int, open("sizes.txt").read().split()))
    """)
    helper = "from torch import nn\ndef made(*sizes):\n    return nn.Sequential(nn.Linear(*sizes), nn.BatchNorm1d(2))\n"
    folder = written(tmp_path / "job", task, 'data = ["mymodel.py", "sizes.txt"]', mymodel__py=helper, sizes__txt="4 2")
    found = tried(folder).found
    assert found
    assert (found.parameters, found.train_samples, found.test_samples) == (14, 96, 96)
    assert (found.unchecked, found.not_loaded) == ("", "")
    assert found.metrics["loss"] > 0


def test_the_memory_is_that_of_the_need(tmp_path: Path) -> None:
    hoards = methods("""
        def data(self, split, shard, shards):
            self.hoard = [torch.ones(2**18) for _ in range(800)]
    """)
    with pytest.raises(LimitReached, match="MiB of memory where 600 MiB are allowed"):
        tried(written(tmp_path / "job", hoards, memory="600 MiB"))
    with pytest.raises(TaskMistake) as caught:
        tried(written(tmp_path / "at-once", hoards.replace("2**18", "2**28"), memory="600 MiB"))
    assert "more memory under [need]" in caught.value.fix


def test_a_process_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    ends = methods("""
        def model(self):
            import os
            print("so long", flush=True)
            os._exit(7)
    """)
    with pytest.raises(JobFailed, match="exit code 7") as caught:
        tried(written(tmp_path / "job", ends))
    assert "so long" in caught.value.cause


def test_without_a_sandbox_it_says_so_and_tries_the_task_in_a_plain_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "why_no_sandbox", lambda: "there is no bwrap")
    told = tried(written(tmp_path / "job", TASK))
    assert told.found
    assert told.found.unchecked == ""
    assert told.no_sandbox == "there is no bwrap"
    assert "the task is tried without the sandbox: there is no bwrap" in capsys.readouterr().out
    for row in ("a module that is not listed", "what torch writes beside task.py", "what it writes beside task.py"):
        task, cause, fix = ROWS[row]
        with pytest.raises(TaskMistake) as caught:
            tried(written(tmp_path / row, task, mymodel__py=""))
        assert cause in caught.value.cause
        assert fix in caught.value.fix


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[ReadProgram]:
    """`axon check` of a job whose data never comes."""
    task = methods("""
        def data(self, split, shard, shards):
            while True:
                pass
    """)
    folder = written(tmp_path / "job", task)
    process = fork_server().begin("client_cli.main", ["check", str(folder), "--home", str(tmp_path / "home")])
    yield process
    process.kill()
    process.wait()


def test_endless_data_is_named_while_it_runs_and_ctrl_c_ends_it(endless: ReadProgram, tmp_path: Path) -> None:
    times: list[float] = []
    for line in endless.stdout:
        if 'data("train", 0, 2) in step 1 has taken' in line:
            times.append(time.monotonic())
        if len(times) == 2:
            break
    assert times[1] - times[0] < 20  # every five seconds; a busy machine may be late
    endless.send_signal(signal.SIGINT)
    assert endless.wait(timeout=60) == 130
    assert running_below(tmp_path) == []
