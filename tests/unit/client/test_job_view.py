"""A job in a notebook: silent, in a loop that runs already, as HTML, with its page and a picture that changes."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import axonp2p
from axonp2p.client import job_view
from axonp2p.client.events.events import Event, JobEndedBadly, JobFinished
from axonp2p.client.job import Job
from axonp2p.errors import TrackerUnreachable
from tests.laboratory.paper_job import HOSTILE, STATES, PaperJob

NOBODY = "https://127.0.0.1:1"


def job_of(home: Path, state: str) -> Job:
    found = STATES[state](home)
    return axonp2p.Swarm([NOBODY], home=home).job(found.folder.path.name)


def test_a_job_is_shown_with_its_state_and_how_far_it_is(tmp_path: Path) -> None:
    text = job_of(tmp_path, "paused")._repr_html_()
    assert "<b>digits-7f3a</b> paused" in text
    assert 'value="12"' in text
    assert "loss " in text
    assert "href" not in text  # a page is served only when it is asked for


def test_names_of_strangers_are_text(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin([HOSTILE])
    text = axonp2p.Swarm([NOBODY], home=tmp_path).job("digits")._repr_html_()
    assert "<script" not in text
    assert "<img" not in text


def test_the_page_is_served_and_its_address_stays(tmp_path: Path) -> None:
    job = job_of(tmp_path, "finished")
    address = job.page
    try:
        assert job.page == address
        assert f'href="{address}"' in job._repr_html_()
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"FINISHED" in answer.read()
    finally:
        job_view._pages.pop(job.folder).close()


def test_in_a_notebook_one_picture_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=None)  # type: ignore[attr-defined]
    display.display = lambda job, display_id: SimpleNamespace(update=shown.append)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    job = job_of(tmp_path, "finished")
    assert isinstance(job.show(), JobFinished)
    assert shown
    assert set(shown) == {job}


def test_without_a_notebook_there_are_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(job_of(tmp_path, "finished").show(), JobFinished)
    assert "round=1/" in capsys.readouterr().out


async def read(job: Job, events: list[Event]) -> None:
    async for event in job.events():
        events.append(event)


async def test_all_of_it_works_in_a_loop_that_runs_and_says_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asyncio.get_running_loop()
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "task.py").write_text("class Task: pass\n")
    (folder / "job.toml").write_text('name = "line"\n[train]\nrounds = 3\n')
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        job = swarm.submit(folder)
        with pytest.raises(TrackerUnreachable):
            job.wait(60)
        events: list[Event] = []
        with pytest.raises(TrackerUnreachable):
            await read(job, events)
        assert isinstance(events[-1], JobEndedBadly)
        assert "failed" in job._repr_html_()
    assert capfd.readouterr() == ("", "")
