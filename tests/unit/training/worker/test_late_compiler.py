"""torch's compiler stays away from who does not compile, and is whole for who does; each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PREPARED = """
import sys
from axonp2p.training.worker.worker_main import prepare_torch
prepare_torch(1)
import torch
from torch import nn
model = nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters())

def step():
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())

def loaded():
    return "torch._dynamo.convert_frame" in sys.modules

step()
assert not loaded()
"""


def passes(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + textwrap.dedent(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_training_does_not_load_it() -> None:
    passes("""
        before = model.weight.clone()
        step()
        assert not torch.equal(before, model.weight)
        assert not torch.compiler.is_compiling()
        assert not loaded()
    """)


def test_a_task_that_compiles_gets_it_and_its_optimiser_goes_on() -> None:
    passes("""
        quiet = torch.compiler.disable(model)
        assert loaded()  # what is no plain function is left to it
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.ones(3, 2)), model(torch.ones(3, 2)))
        assert torch.equal(compiled(torch.ones(3, 2)), quiet(torch.ones(3, 2)))
        import torch._dynamo
        assert torch._dynamo is sys.modules["torch._dynamo"]
        assert torch._dynamo.__file__
        step()

        @torch.compile(backend="eager")
        def clear():
            optimizer.zero_grad()

        clear()
        assert model.weight.grad is None
        (why,) = torch._dynamo.utils.counters["graph_break"]
        assert "Optimizer.zero_grad" in why  # it is kept from compiling, as with the compiler there from the start
    """)


def test_a_part_of_it_can_be_imported_first() -> None:
    passes("""
        from torch._dynamo.utils import counters
        import torch._dynamo
        assert torch._dynamo.utils.counters is counters
        assert torch._dynamo.__file__
        step()
    """)


def test_steps_are_taken_again_where_it_is_loaded_once_it_was_used(tmp_path: Path) -> None:
    passes(f"""
        from pathlib import Path
        from axonp2p.training.worker.redo_server import RedoServer
        from tests.unit.training.worker.test_redo import TASK, legs, order, segments, trainer

        def failed():
            return server.for_job(folder, made._prepare)(wanted, data, made, lambda: True).failed

        torch.set_num_threads(1)
        server, folder = RedoServer(1), Path({str(tmp_path)!r})
        made = trainer(folder)
        wanted, data, _ = next(segments(order(), next(legs(made, order())).places))
        head = "def loss(self, model, batch):\\n"
        looks = "        import sys; assert 'torch._dynamo.convert_frame' in sys.modules\\n"
        (folder / "task.py").write_text(TASK.replace(head, head + looks))
        assert not loaded()
        assert failed() == "cannot be done"
        torch.compile(model, backend="eager")
        assert loaded()
        assert failed() == ""
        server.close()
    """)
