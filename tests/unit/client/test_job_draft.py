"""Jobs of folders, and of classes that stand in scripts and notebooks, before they are submitted."""

from __future__ import annotations

import linecache
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from axonp2p.client.job_draft import drafted
from axonp2p.errors import JobFileWrong
from axonp2p.jobs.overrides import keywords, set_words

SCRIPT = """\
import math

RATE = 0.5


class Line:
    def __init__(self, rate=RATE):
        self.rate = rate

    def model(self):
        return math.sqrt(self.rate)

    def data(self, split, shard, shards): ...
    def loss(self, model, batch): ...
"""
SUBMIT = """
def submit():
    from axonp2p.client.job_draft import drafted
    from axonp2p.errors import JobFileWrong
    try:
        with drafted(Line) as draft:
            print([file.path for file in draft.bundle.files], draft.spec.name)
    except JobFileWrong as error:
        print(error)


{guard}submit()
"""

Module = Callable[[str], ModuleType]


def files_of(job: object, **given: Any) -> dict[str, str]:
    with drafted(job, keywords(given)) as draft:
        return {file.path: file.source.read_text() for file in draft.bundle.files}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """A script as Python has loaded it."""

    def load(text: str) -> ModuleType:
        path = tmp_path / "train_line.py"
        path.write_text(text)
        module = ModuleType("train_line")
        monkeypatch.setitem(sys.modules, "train_line", module)
        exec(compile(text, str(path), "exec"), vars(module))
        return module

    yield load
    linecache.clearcache()


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """A notebook: each cell a text of its own, which Python's linecache knows, as IPython has it."""
    monkeypatch.chdir(tmp_path)

    def run(*cells: str) -> ModuleType:
        module = ModuleType("notebook")
        monkeypatch.setitem(sys.modules, "notebook", module)
        for number, cell in enumerate(cells):
            name = f"<cell {number}>"
            monkeypatch.setitem(linecache.cache, name, (len(cell), None, cell.splitlines(keepends=True), name))
            exec(compile(cell, name, "exec"), vars(module))
        return module

    return run


def test_a_folder_is_taken_as_it_is_and_what_is_given_stands_in_its_job_file(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("class Task: pass\n")
    (tmp_path / "job.toml").write_text('name = "line"  # mine\n')
    with drafted(str(tmp_path)) as draft:
        assert draft.folder == str(tmp_path)
        assert [file.source for file in draft.bundle.files] == [tmp_path / "job.toml", tmp_path / "task.py"]
    with drafted(tmp_path, set_words(["train.rounds=3"])) as draft:
        assert draft.spec.train.rounds == 3
        assert draft.bundle.files[0].source.read_text() == 'name = "line"  # mine\n\n[train]\nrounds = 3\n'
    assert (tmp_path / "job.toml").read_text() == 'name = "line"  # mine\n'


def test_of_a_script_the_whole_file_is_the_task(script: Module) -> None:
    module = script(SCRIPT)
    files = files_of(module.Line, rounds=3, need={"peers": 2})
    assert files["train_line.py"] == f"{SCRIPT}\n\nTask = Line\n"
    assert files["job.toml"].startswith('name = "train_line"\ntask = "train_line.py"\n')


def test_an_object_brings_its_values(script: Module) -> None:
    files = files_of(script(SCRIPT).Line(0.25), name="sweep", train={"steps": 3})
    around: dict[str, Any] = {}
    exec(files["train_line.py"], around)
    assert around["Task"]().model() == 0.5
    assert 'name = "sweep"' in files["job.toml"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda module: module.Line(object()), "self.rate is of type object, which cannot be sent as text"),
        (lambda module: module.Wants, "class Wants wants arguments: missing a required argument: 'size'"),
        (lambda module: module.inside(), "class Inner is inside of inside.<locals>"),
        (lambda module: module.Empty, "class Empty has no methods of its own"),
        (lambda module: module.Hidden, "has no class Hidden at its top level"),
    ],
)
def test_what_cannot_travel_is_refused_by_name(
    script: Module, make: Callable[[ModuleType], object], message: str
) -> None:
    more = """
class Wants:
    def __init__(self, size): ...

class Empty: ...

if True:
    class Hidden:
        def model(self): ...

def inside():
    class Inner:
        def model(self): ...
    return Inner
"""
    with pytest.raises(JobFileWrong) as caught:
        files_of(make(script(SCRIPT + more)))
    assert message in caught.value.message
    assert caught.value.fix


def test_data_lies_beside_the_script_and_so_do_its_modules(script: Module, tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("x = 1\n")
    (tmp_path / "a.csv").write_text("1\n")
    module = script(f"def late():\n    import helpers\n\n\n{SCRIPT}")
    with pytest.raises(JobFileWrong, match=r"imports helpers, and helpers\.py next to it would not be sent") as caught:
        files_of(module.Line)
    assert caught.value.fix == 'name it: data=["helpers.py"]'
    assert set(files_of(module.Line, data=["helpers.py", "*.csv"])) == {
        "job.toml", "train_line.py", "helpers.py", "a.csv"
    }  # fmt: skip
    with pytest.raises(JobFileWrong, match=r"this job: 'none\.csv': there is no such file"):
        files_of(module.Line, data=["helpers.py", "none.csv"])


@pytest.mark.parametrize("guard", ['if __name__ == "__main__":\n    ', ""])
def test_a_script_must_not_submit_itself_at_peers(tmp_path: Path, guard: str) -> None:
    path = tmp_path / "train_line.py"
    path.write_text(SCRIPT + SUBMIT.format(guard=guard))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=True)
    if guard:
        assert done.stdout == "['job.toml', 'train_line.py'] train_line\n"
    else:
        line = len(path.read_text().splitlines())
        assert f"train_line.py, line {line}: peers load this whole file, and would run this line too" in done.stdout
        assert 'fix: put what submits the job below: if __name__ == "__main__":' in done.stdout


def test_a_job_file_that_no_peer_would_read_is_refused_here(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("class Task: pass\n")
    (tmp_path / "job.toml").write_text(f'name = "line"  # {"mine" * 16_370}\n')
    assert set(files_of(tmp_path)) == {"job.toml", "task.py"}
    with pytest.raises(JobFileWrong, match=r"its job\.toml would have more than 65536 bytes"):
        files_of(tmp_path, data=["a" * 100])


def test_of_a_long_value_the_beginning_is_shown(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('name = "line"\n')
    with pytest.raises(JobFileWrong, match=r"^data=\['aaa.{90,100}\.\.\.: expected at most 256 entries"):
        files_of(tmp_path, data=["a" * 100] * 300)


CELLS = (
    "import math\nimport os.path as paths\nfrom json import dumps as dump, JSONDecoder\n"
    "SIZES = [2, 1]\nbatch = object()\n",
    "def twice(x):\n    return math.prod([2, x])\n\n\n"
    "class Base:\n    def loss(self, model, batch):\n        return dump(batch)\n",
    "class Mine(Base):\n    decoder = JSONDecoder\n    def model(self):\n        return twice(SIZES[0]), paths.sep\n",
)


def test_of_a_notebook_the_class_travels_with_what_it_names(notebook: Callable[..., ModuleType]) -> None:
    files = files_of(notebook(*CELLS).Mine)
    assert files["job.toml"] == 'name = "Mine"\ntask = "task.py"\n'
    around: dict[str, Any] = {}
    exec(files["task.py"], around)
    task = around["Task"]()
    assert task.model() == (4, "/")
    assert task.loss(None, [1]) == "[1]"
    assert "batch" not in around  # a local name, although the notebook has it too


def test_what_a_notebook_cannot_send_is_named(notebook: Callable[..., ModuleType]) -> None:
    module = notebook(*CELLS, "class Bad(Base):\n    def model(self):\n        return batch\n")
    with pytest.raises(JobFileWrong, match="Bad names batch, of type object, which cannot be sent as text") as caught:
        files_of(module.Bad)
    assert caught.value.fix == "make it inside of Bad, or save it to a file and name that in data"
    module = notebook("wrong = lambda x: x\nclass Bad:\n    def model(self):\n        return wrong(1)\n")
    with pytest.raises(JobFileWrong, match="the source of wrong cannot be found"):
        files_of(module.Bad)


def test_a_class_that_was_typed_in_has_no_source() -> None:
    module = ModuleType("typed")
    exec(compile("class Task:\n    def model(self): ...\n", "<stdin>", "exec"), vars(module))
    sys.modules["typed"] = module
    try:
        with pytest.raises(JobFileWrong, match="the source of Task cannot be found"):
            files_of(module.Task)
    finally:
        del sys.modules["typed"]
