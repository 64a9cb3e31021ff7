"""TensorBoard's files, read back by its own reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from axonp2p.errors import SettingsError
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.loggers import opening
from axonp2p.loggers.opening import logged
from axonp2p.loggers.values import LoggerChoice, values_of
from client_cli.commands.report import command
from tests.laboratory.paper_job import NOON, STATES

pytest.importorskip("tensorboard", reason="no tensorboard here: pip install 'axonp2p[tensorboard]'")

Read = list[tuple[float, int, dict[str, float]]]


def rounds_in(file: Path) -> Read:
    """When, at which step, and what; the reader checks the checksums."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    first, *events = LegacyEventFileLoader(str(file)).Load()
    assert first.file_version == "brain.Event:2"
    return [
        (event.wall_time, event.step, {value.tag: value.simple_value for value in event.summary.value})
        for event in events
    ]


def test_a_job_is_a_folder_and_each_of_its_lives_a_file(tmp_path: Path) -> None:
    job = STATES["resumed"](tmp_path / "home")
    happened = job.folder.read_events()
    run = Path(logged(LoggerChoice("tensorboard", tmp_path / "runs"), job.folder.read(), happened))
    assert run == tmp_path / "runs" / "digits-7f3a"
    first, second = sorted(run.iterdir())
    assert first.name == f"events.out.tfevents.{int(NOON)}.axon"
    read = rounds_in(first) + rounds_in(second)
    rounds = [event for event in happened if isinstance(event, RoundFinished)]
    assert [step for _, step, _ in read] == [event.round + 1 for event in rounds]
    for (at, _, values), event in zip(read, rounds, strict=True):
        assert at == event.at
        assert values == pytest.approx(values_of(event), rel=1e-6)
    assert "held_out/accuracy" in read[0][2]
    assert "samples_per_second/otter" in read[0][2]


def test_a_number_beyond_32_bits_is_infinite(tmp_path: Path) -> None:
    job = STATES["paused"](tmp_path / "home")
    last = [event for event in job.folder.read_events() if isinstance(event, RoundFinished)][-1]
    last = msgspec.structs.replace(last, loss=1e300)
    run = Path(logged(LoggerChoice("tensorboard", tmp_path / "runs"), job.folder.read(), [last]))
    assert rounds_in(next(run.iterdir()))[0][2]["loss/train"] == float("inf")


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    job = STATES["paused"](tmp_path / "home")
    with pytest.raises(SettingsError, match="cannot write to"):
        logged(LoggerChoice("tensorboard", tmp_path / "runs"), job.folder.read(), job.folder.read_events())


def test_without_the_library_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    refused = CliRunner().invoke(command, ["digits", "--tensorboard", "runs"]).exception
    assert isinstance(refused, SettingsError)
    assert refused.fix == "pip install 'axonp2p[tensorboard]'"


def test_neither_torch_nor_tensorflow_is_loaded(tmp_path: Path) -> None:
    STATES["paused"](tmp_path / "home")
    lines = [
        "import sys",
        "from client_cli.commands.report import command",
        "command.main(sys.argv[1:], standalone_mode=False)",
        "assert not {'torch', 'tensorflow'} & set(sys.modules)",
    ]
    words = ["digits", "--home", str(tmp_path / "home"), "--tensorboard", str(tmp_path / "runs")]
    subprocess.run([sys.executable, "-c", "\n".join(lines), *words], timeout=60, check=True)
    assert list(tmp_path.glob("runs/*/events*"))
