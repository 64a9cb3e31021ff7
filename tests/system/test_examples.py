"""The real jobs in `examples/` on real peers, shortened. `digits`, whole, is what test_demo.py trains."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest

import axonp2p
from axonp2p.errors import IndexUnreachable
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.training.trainer.weights import load
from tests.system.processes import Processes

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


def shortened(source: Path, folder: Path, **numbers: int) -> Path:
    """A copy of a job with other numbers in its job.toml."""
    shutil.copytree(source, folder)
    text = (folder / "job.toml").read_text()
    for key, number in numbers.items():
        text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {number}", text)
        assert found == 1, key
    (folder / "job.toml").write_text(text)
    return folder


def test_text_learns_what_source_code_looks_like(tmp_path: Path) -> None:
    folder = shortened(EXAMPLES / "text", tmp_path / "text", peers=2, rounds=3, steps=5, batch=4)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(folder)
            rounds = [event for event in job.events() if isinstance(event, RoundFinished)]
            weights = job.fetch()
    losses = [event.metrics["loss"] for event in rounds]
    assert len(losses) == 3
    assert losses[-1] < losses[0] < 5.6  # ln 256 = 5.55: what knowing nothing costs
    assert 900_000 < sum(tensor.numel() for tensor in weights.values()) < 1_200_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_transformers_come_along_with_the_job(tmp_path: Path) -> None:
    folder = shortened(EXAMPLES / "transformers", tmp_path / "job", peers=2, rounds=2, steps=5, batch=4)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(folder)
            try:
                seen = list(job.events())
            except IndexUnreachable as error:
                pytest.skip(error.message)
            weights = job.fetch()
    losses = [event.metrics["loss"] for event in seen if isinstance(event, RoundFinished)]
    assert len(losses) == 2
    assert losses[1] < losses[0] < 5.6
    assert 400_000 < sum(tensor.numel() for tensor in weights.values()) < 500_000


def test_lora_sends_its_adapters_only_and_gives_the_whole_model(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(shortened(EXAMPLES / "lora", tmp_path / "lora", peers=2, rounds=6))
            sizes, rounds = set(), []
            for event in job.events():
                if isinstance(event, RoundFinished):
                    rounds.append(event)
                    with contextlib.suppress(FileNotFoundError):  # an older one may go just now
                        sizes |= {file.stat().st_size for file in job.folder.glob("states/0*.safetensors")}
            weights = job.fetch()
    base = load(EXAMPLES / "lora" / "base.safetensors")
    assert rounds[-1].metrics["accuracy"] > 0.6  # untrained it reads one turned digit in ten
    assert max(sizes) < 2 * 4 * 2_344 + 4096, "weights and momentum of 2,344 parameters"
    assert {f"{number}.layer.{kind}" for number in (0, 2, 4) for kind in ("weight", "bias")} < weights.keys()
    for name, tensor in base.items():
        number, _, kind = name.partition(".")
        assert (weights[f"{number}.layer.{kind}"] == tensor.float()).all()
