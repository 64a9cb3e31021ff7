"""Commands about jobs that a tracker carries on, as far as no tracker answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import axonp2p
from axonp2p.client.hosted.hosted_mark import HostedMark, OtherHost, write_mark
from axonp2p.client.hosted.second_host import without_host
from axonp2p.client.job import Job
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import Ambiguous, NotFound, TrackerUnreachable, Unreachable
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.section import TrainJob
from axonp2p.tensors.checkpoint_file import Model
from client_cli.context import Context
from client_cli.main import cli
from client_cli.text.job_text import job_data, jobs_text, status_text
from client_cli.watching.hosted import following_host, handed_over, hosted_data, looked_at
from tests.fakes import NOW, key_of

DEAD = "https://127.0.0.1:1#" + "a" * 52
JOB = "line-7f3a"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context.of(tmp_path / "home", as_json=False)


@pytest.fixture
def folder(context: Context) -> JobFolder:
    """A job that was handed over."""
    created = JobStore(context.home).create(new_record(JOB, TrainJob(name="line"), "/home/ada/line", NOW))
    write_mark(created, HostedMark(tracker=DEAD, host=key_of("host").peer_id))
    return created


def test_without_a_key_nobody_is_asked(context: Context) -> None:
    with pytest.raises(NotFound, match="no job matches line"):
        looked_at("line", context, [DEAD])


def test_with_a_key_trackers_are_asked_and_what_they_said_is_told(context: Context) -> None:
    load_or_create_key(context.home / "client.key")
    with pytest.raises(NotFound, match="no job matches line") as error:
        looked_at("line", context, [DEAD])
    assert "no tracker that answers carries it on" in error.value.cause
    assert "127.0.0.1:1" in error.value.cause


def test_that_there_is_no_such_job_is_said_before_anything_about_trackers(context: Context) -> None:
    load_or_create_key(context.home / "client.key")
    (context.home / "trackers.json").write_text("[]")
    with pytest.raises(NotFound, match="no job matches line"):
        looked_at("line", context, [])


def test_the_beginning_of_two_ids_asks_nobody_and_names_both(context: Context) -> None:
    for job in ("line-7f3a", "line-1111"):
        JobStore(context.home).create(new_record(job, TrainJob(name="line"), "/home/ada/line", NOW))
    load_or_create_key(context.home / "client.key")
    with pytest.raises(Ambiguous, match="line matches line-1111 and line-7f3a"):
        looked_at("line", context, [DEAD])


def test_a_host_that_is_away_leaves_what_it_told_last(
    context: Context, folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looked_at("line", context, [DEAD]).path == folder.path
    told = capsys.readouterr().out
    assert "this is what it told last" in told
    assert f"axon resume {JOB} --here" in told
    for asked in ({"result": True}, {"steers": True}):
        with pytest.raises(Unreachable) as caught:
            looked_at("line", context, [DEAD], **asked)
        assert f"axon resume {JOB} --here" in caught.value.fix
        assert "on the computer that submitted it; continues from its beginning" in caught.value.fix
    folder.model.write_bytes(b"weights")
    folder.write(msgspec.structs.replace(folder.read(), state=JobState.FINISHED))
    assert looked_at("line", context, [DEAD], result=True).path == folder.path


def test_a_pause_that_reaches_no_host_does_not_say_that_the_job_stops(context: Context, folder: JobFolder) -> None:
    write_mark(folder, HostedMark(tracker=DEAD, host=key_of("host").peer_id, at_work=True))
    done = CliRunner().invoke(cli, ["pause", JOB, "--home", str(context.home), "--tracker", DEAD])
    assert isinstance(done.exception, Unreachable)
    assert f"axon resume {JOB} --here" in done.exception.fix
    assert "stops" not in done.output


def test_who_watches_hears_soon_that_the_host_says_nothing(
    context: Context, folder: JobFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        def look_at_host(self, job: str, *, result: bool) -> None:
            """It answered a moment ago."""

        def attach(self, job: str, *, silent: Callable[[Unreachable], None]) -> Any:
            silent(Unreachable("host lab says nothing", fix=f"axon resume {job} --here"))
            return SimpleNamespace(wait=lambda seconds: None)

    monkeypatch.setattr(Context, "swarm", lambda self, trackers: nullcontext(Silent()))
    with following_host("line", context, [DEAD]) as (_, check):
        check()
    told = capsys.readouterr().out
    assert "host lab says nothing; it is called again and again" in told
    assert f"fix: axon resume {JOB} --here" in told


def test_a_host_that_is_gone_is_told_with_the_round_that_the_job_goes_on_after(folder: JobFolder) -> None:
    folder.bundle.mkdir()
    room = folder.checkpoints(2).room(9, b"s" * 32, Model(1, 1))
    room.put()
    assert without_host(folder).endswith("(when the host is gone for good; continues after 9 rounds, kept here)")


def test_status_says_who_carries_it_on(context: Context, folder: JobFolder) -> None:
    seen = job_data(folder.read(), at_work=True) | {"kept_in": str(folder.path)} | hosted_data(folder)
    assert seen["hosted_at"] == DEAD
    assert "host       127.0.0.1:1" in status_text(seen, context.command)


def test_how_far_the_copy_is_stands_beside_the_job(context: Context, folder: JobFolder) -> None:
    second = OtherHost(tracker=DEAD.replace(":1#", ":2#"), host=key_of("second").peer_id, kept=9)
    write_mark(folder, HostedMark(tracker=DEAD, host=key_of("host").peer_id, standby=second))
    seen = job_data(folder.read(), at_work=True) | {"kept_in": str(folder.path)} | hosted_data(folder)
    assert "copy       127.0.0.1:2, after 9 rounds" in status_text(seen, context.command)
    assert "127.0.0.1:2, after 9 rounds" in jobs_text([seen], NOW)
    fix = without_host(folder)
    assert fix.startswith(f"axon resume {JOB}  ")
    assert f"at host 127.0.0.1:2, which keeps a copy, after 9 rounds; or axon resume {JOB} --here" in fix
    write_mark(folder, HostedMark(tracker=DEAD, host=key_of("host").peer_id, role="copy"))
    assert hosted_data(folder)["copy"] == "127.0.0.1:1, nothing yet"


def test_who_keeps_a_copy_is_told_with_the_job(
    context: Context, folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = HostedMark(tracker=DEAD, host=key_of("host").peer_id, without_copy="no other tracker is known")
    write_mark(folder, mark)
    job = Job(folder, EventFeed.of([]))
    handed_over(job, context)
    assert "No second host keeps a copy of it (no other tracker is known)" in capsys.readouterr().out
    write_mark(folder, msgspec.structs.replace(mark, standby=OtherHost(tracker=DEAD, host=key_of("second").peer_id)))
    handed_over(job, context)
    assert "host 127.0.0.1:1 keeps a copy of it." in capsys.readouterr().out


def test_a_job_that_nobody_takes_is_not_kept(tmp_path: Path) -> None:
    source = tmp_path / "job"
    source.mkdir()
    (source / "task.py").write_text("class Task: pass\n")
    (source / "job.toml").write_text('name = "line"\n')
    with axonp2p.Swarm([DEAD], home=tmp_path / "home") as swarm:
        with pytest.raises(TrackerUnreachable, match="no tracker carries the job on"):
            swarm.hand_over(source)
        assert swarm.jobs() == []
    assert not list((tmp_path / "home" / "jobs").iterdir())
    shutil.rmtree(source)
