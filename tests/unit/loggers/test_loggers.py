"""W&B and MLflow, each by its own library, which writes to this disk alone."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import axonp2p
from axonp2p.client.job import Job
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.client.storage.job_record import new_record
from axonp2p.errors import SettingsError
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.run.section import RunJob, RunSection
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.loggers import opening
from axonp2p.loggers.opening import logged, opened, require
from axonp2p.loggers.values import LIBRARIES, LoggedSteps, LoggerChoice, parameters_of, values_of
from client_cli.commands.report import command
from tests.laboratory.paper_job import STATES, PaperJob
from tests.unit.client_cli.run.conftest import whole_story


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlruns")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def rounds_of(job: PaperJob) -> list[RoundFinished]:
    return [event for event in job.folder.read_events() if isinstance(event, RoundFinished)]


def test_settings_are_parameters_by_their_places_in_job_toml() -> None:
    spec = {"name": "x", "need": {"peers": 3}, "train": {"rounds": 5, "density": 1.0}, "data": ["a" * 1000]}
    found = parameters_of(spec)
    assert (found["name"], found["need.peers"], found["train.rounds"]) == ("x", "3", "5")
    assert len(found["data"]) == 250


def wandb_records(folder: Path) -> list[Any]:
    """What the library wrote into its own file: a log of LevelDB's form after seven bytes, in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, records, begun = next(folder.glob("*.wandb")).read_bytes(), 7, [], b""
    while len(content) - at >= 7:
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, form = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        begun += content[at + 7 : at + 7 + length]
        at += 7 + length
        if form in (1, 4):  # whole, or the last part of one
            record = Record()
            record.ParseFromString(begun)
            records.append(record)
            begun = b""
    return records


@pytest.mark.slow
def test_wandb_has_a_run_with_all_rounds(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="no wandb here: pip install 'axonp2p[wandb]'")
    job = STATES["finished"](tmp_path / "home")
    where = logged(LoggerChoice("wandb"), job.folder.read(), job.folder.read_events())
    wandb.teardown()  # as at a program's end: its own process has written all
    records = wandb_records(Path(where))
    (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"][:1]
    assert (run.run_id, run.project) == ("digits-7f3a", "axon")
    settings = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert settings["name"] == "digits"
    rows = [
        {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    assert [row["_step"] for row in rows] == [event.round + 1 for event in rounds_of(job)]
    assert {name: rows[-1][name] for name in ("loss/train", "held_out/accuracy")} == {
        name: values_of(rounds_of(job)[-1])[name] for name in ("loss/train", "held_out/accuracy")
    }
    (end,) = [record.exit for record in records if record.WhichOneof("record_type") == "exit"]
    assert end.exit_code == 0


def test_without_a_key_wandb_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="no wandb here: pip install 'axonp2p[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "online")  # it reads that once in a program
    monkeypatch.setenv("HOME", str(tmp_path))
    STATES["paused"](tmp_path / "home")
    words = ["report", "digits", "--home", str(tmp_path / "home"), "--log", "wandb", "--json"]
    done = subprocess.run([sys.executable, "-m", "client_cli.main", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == SettingsError.exit_code
    told = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (told["message"], told["fix"][:11]) == ("W&B knows no key of yours", "wandb login")


def test_mlflow_has_one_run_however_often_the_job_is_resumed(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="no mlflow here: pip install 'axonp2p[mlflow]'")
    from mlflow.tracking import MlflowClient

    job = STATES["resumed"](tmp_path / "home")
    record, events = job.folder.read(), job.folder.read_events()
    half = len(events) // 2
    where = [logged(LoggerChoice("mlflow"), record, some) for some in (events[:half], events[half:])]
    assert where[0] == where[1]
    client = MlflowClient()
    run = client.get_run(where[0].split()[-1])
    assert (run.data.tags["axon.job"], run.info.run_name, run.info.status) == (record.id, record.id, "KILLED")
    assert run.data.params["name"] == "digits"
    told = client.get_metric_history(run.info.run_id, "loss/train")
    assert [(one.step, one.value) for one in told] == [(event.round + 1, event.loss) for event in rounds_of(job)]
    finished = STATES["finished"](tmp_path / "other")
    again = logged(LoggerChoice("mlflow"), finished.folder.read(), finished.folder.read_events())
    assert client.get_run(again.split()[-1]).info.status == "FINISHED"


def test_a_store_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="no mlflow here: pip install 'axonp2p[mlflow]'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")
    with pytest.raises(SettingsError, match="MLflow does not open a run") as caught:
        opened(LoggerChoice("mlflow"), STATES["paused"](tmp_path / "home").folder.read())
    assert "MLFLOW_TRACKING_URI" in caught.value.fix


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(SettingsError) as caught:
        require(name)
    assert caught.value.fix == f"pip install 'axonp2p[{name}]'"
    refused = CliRunner().invoke(command, ["digits", "--log", name]).exception
    assert isinstance(refused, SettingsError)


def test_each_copy_that_has_its_result_is_a_step(tmp_path: Path) -> None:
    steps = LoggedSteps()
    told = [step for event in whole_story(tmp_path) if (step := steps.of(event))]
    assert [step.step for step in told] == [1, 2, 3]
    assert [(step.values["copy/index"], step.values["copy/failed"]) for step in told] == [(0, 0), (1, 0), (2, 1)]
    assert [(step.values["copy/exit_code"], step.values["copy/seconds"]) for step in told] == [(0, 2), (0, 1), (5, 1)]
    assert (told[0].values["copy/files"], told[0].values["copy/bytes"]) == (2, 1200)
    assert (told[1].values["copy/attempts"], told[2].values["job/done"]) == (2, 3)


def test_copies_go_to_every_logger(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="no tensorboard here: pip install 'axonp2p[tensorboard]'")
    spec = RunJob(name="sweep", kind="run", run=RunSection(command="python x.py", copies=3))
    where = logged(
        LoggerChoice("tensorboard", tmp_path / "runs"), new_record("sweep-1111", spec, "/x", 1.0), whole_story(tmp_path)
    )
    (file,) = Path(where).iterdir()
    assert file.read_bytes().count(b"copy/exit_code") == 3


def test_a_kind_that_has_neither_rounds_nor_copies_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = RunJob(name="sweep", kind="run", run=RunSection(command="python x.py"))
    monkeypatch.setitem(KINDS, "run", replace(KINDS["run"], unit="page"))
    with pytest.raises(SettingsError, match="loggers take the rounds of a training, or the copies of a command"):
        opened(LoggerChoice("tensorboard", tmp_path), new_record("sweep-1111", spec, "/x", 1.0))


def test_a_job_is_logged_in_a_loop_over_its_events(tmp_path: Path) -> None:
    paper = STATES["finished"](tmp_path / "home")
    job = Job(paper.folder, EventFeed.of(paper.folder.read_events()))
    with axonp2p.open_logger("tensorboard", job, tmp_path / "runs") as logger:
        for event in job.events():
            logger.add(event)
    assert list((tmp_path / "runs" / "digits-7f3a").iterdir())
    with pytest.raises(SettingsError, match="there is no logger comet"), axonp2p.open_logger("comet", job):
        pass
