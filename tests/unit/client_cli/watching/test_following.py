from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest

from axonp2p.client.events.events import Event, as_line
from axonp2p.client.job import Job
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.console import error_json
from axonp2p.errors import TaskMistake
from axonp2p.jobs.kinds import KINDS
from client_cli.context import Context
from client_cli.report.beside import PageWishes
from client_cli.watching.following import EventQueue, follow, ways_of, wish_of
from tests.laboratory.paper_job import STATES


@pytest.mark.parametrize(
    ("typed", "wish"),
    [("leave", "leave"), ("l", "leave"), (" C ", "cancel"), ("on", "on"), ("ON", "on"), ("s", "stop")],
)
def test_a_wish_may_be_said_by_its_beginning(typed: str, wish: str) -> None:
    assert wish_of(typed, ways_of("train")) == wish


@pytest.mark.parametrize("typed", ["", "  ", "x", "leaves"])
def test_anything_else_is_asked_again(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        wish_of(typed, ways_of("train"))


def test_only_what_can_end_early_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "endless", replace(KINDS["run"], name="endless", finish=""))
    assert "stop" in ways_of("run")
    with pytest.raises(click.BadParameter, match="say leave, cancel or on"):
        wish_of("stop", ways_of("endless"))


@pytest.mark.parametrize(("wish", "asked"), [("stop", "stop"), ("cancel", "cancel"), ("leave", "leave")])
def test_after_ctrl_c_the_job_is_told_what_was_wished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: str, asked: str
) -> None:
    folder, feed, told = STATES["running"](tmp_path).folder, EventFeed(), list[str]()
    for event in folder.read_events():
        feed.put(event)

    def is_told(word: str) -> Callable[[], None]:
        def hear() -> None:
            told.append(word)
            feed.end(None)

        return hear

    def prompt(question: str, **_: object) -> str:
        assert "stop it after this round, with its weights" in question
        return wish

    job = Job(folder, feed, leave=is_told("leave"), cancel=is_told("cancel"), stop=is_told("stop"))
    monkeypatch.setattr("client_cli.watching.following.on_terminal", lambda: True)
    monkeypatch.setattr("client_cli.watching.following.click.prompt", prompt)
    monkeypatch.setattr(EventQueue, "__next__", interrupted_once(EventQueue.__next__))
    follow(job, Context(tmp_path, as_json=False), PageWishes(page=""))
    assert told == [asked]


def interrupted_once(then: Callable[[EventQueue], Event]) -> Callable[[EventQueue], Event]:
    presses = [KeyboardInterrupt()]

    def interrupted(self: EventQueue) -> Event:
        if presses:
            raise presses.pop()
        return then(self)

    return interrupted


def test_for_programs_each_event_is_a_line_and_nothing_else_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = STATES["finished"](tmp_path).folder
    job, context = Job(folder, EventFeed.of(folder.read_events())), Context(tmp_path, as_json=True)
    assert follow(job, context, PageWishes(), json_events=True) == 0
    told = capsys.readouterr()
    assert told.out.encode().splitlines() == [as_line(event) for event in folder.read_events()]
    first, last = (json.loads(told.out.splitlines()[at]) for at in (0, -1))
    assert (first["event"], first["job"], last["event"]) == ("job_submitted", job.id, "job_finished")
    assert told.err == ""


@pytest.mark.parametrize("json_events", [False, True])
def test_an_error_says_which_job_failed_and_where_it_lies(tmp_path: Path, json_events: bool) -> None:
    folder, feed = STATES["running"](tmp_path).folder, EventFeed()
    feed.end(TaskMistake("otter: loss()", fix="correct task.py"))
    with pytest.raises(TaskMistake) as caught:
        follow(Job(folder, feed), Context(tmp_path, as_json=True), PageWishes(), json_events=json_events)
    told = json.loads(error_json(caught.value))["error"]
    assert (told["code"], told["job"], told["folder"]) == ("AX-102", folder.path.name, str(folder.path))
