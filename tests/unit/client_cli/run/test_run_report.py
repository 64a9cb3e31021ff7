"""The page and the report of a job that runs copies of a command."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

from axonp2p.client.events import events
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.kinds.run import events as run_events
from client_cli.report.document import Made, make
from client_cli.report.folding import fold
from client_cli.report.job_summary import View, summary_of
from client_cli.report.lanes import WorkTime
from client_cli.run.lanes import lanes
from client_cli.run.story import RunStory


def spelled(*words: str) -> str:
    return " ".join(["axon", *words])


def view_of(job: JobFolder, until: int | None = None, *, at_work: bool = False) -> View:
    story = fold(job.read_events()[:until], "run")
    return View(job.read(), story, at_work, 1030.0, str(job.path))


def page_of(view: View) -> Made:
    return make(view, spelled, lambda at: datetime.fromtimestamp(at, UTC), live=False)


def test_every_beginning_of_the_story_is_a_page(job: JobFolder) -> None:
    for until in range(len(job.read_events()) + 1):
        view = view_of(job, until)
        page_of(view)
        assert isinstance(view.story, RunStory)
        time = WorkTime(view.story.lives, 1030.0)
        for lane in lanes(view.story, time, 1030.0):
            assert all(0 <= span.began <= span.ended <= time.total for span in [*lane.spans, *lane.over])


def test_the_lanes_show_which_copy_ran_where_and_how_it_ended(job: JobFolder) -> None:
    story = view_of(job).story
    found = lanes(story, WorkTime(story.lives, 0.0), 0.0)
    assert {lane.peer: [(span.name, span.doing) for span in lane.spans] for lane in found} == {
        "otter": [("0", "ran"), ("2", "failed"), ("1", "ran")],
        "wren": [("1", "lost"), ("2", "failed")],
    }


def test_the_table_of_copies_has_a_line_an_index_and_failed_ones_first(job: JobFolder) -> None:
    made = page_of(view_of(job))
    rows = list(csv.DictReader(io.StringIO(made.csv["copies"])))
    assert [(row["index"], row["state"], row["peer"], row["attempts"], row["code"]) for row in rows] == [
        ("0", "done", "otter", "1", "0"), ("1", "done", "otter", "2", "0"), ("2", "failed", "wren", "2", "5"),
    ]  # fmt: skip
    assert made.html.index("<td>2</td><td>failed</td>") < made.html.index("<td>0</td><td>done</td>")
    assert "1 copy failed: 2" in made.html


def test_the_page_speaks_of_copies_alone(job: JobFolder) -> None:
    html = page_of(view_of(job)).html
    body = html[html.index("<main") : html.index("</main>")].lower()
    for word in ("loss", "weights", "trained", "rounds", "dense"):
        assert word not in body


def test_how_it_stands(job: JobFolder) -> None:
    stands = summary_of(view_of(job), spelled)
    assert stands.sentence == "3 copies done, 1 failed in 9.0 s"
    assert [one.title for one in stands.banners] == ["1 copy failed: 2", "The results are here"]
    assert stands.banners[0].fix == "axon logs sweep-7f3a --index 2"
    assert "Copy 2 ended last with exit code 5 at wren." in stands.banners[0].text


def test_a_peer_that_goes_gives_its_copy_up(job: JobFolder) -> None:
    told = [*job.read_events()[:7], events.PeerLost(peer="wren", round=0, reason="gone", left=1, at=1007.0)]
    story = fold(told, "run")
    assert isinstance(story, RunStory)
    assert [(run.index, run.how) for run in story.over] == [(1, "given up")]
    assert list(story.running) == ["otter"]
    assert story.peers["wren"].state == "lost"


def test_a_copy_whose_files_are_lost_is_not_done(job: JobFolder) -> None:
    story = fold([*job.read_events(), run_events.OutputsLost(indices=[0], done=2)], "run")
    assert isinstance(story, RunStory)
    assert (story.done, story.indices[0].done) == (2, False)
