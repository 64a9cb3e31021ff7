"""The page and the report of a job of calls."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from axonp2p.kinds.map import events as map_events
from axonp2p.kinds.map.kept_end import RESULTS
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore
from axonp2p.values.packing import pack_value
from client_cli.map.lanes import lanes
from client_cli.map.results_found import MOST_FOUND, find_results
from client_cli.map.story import MapStory
from client_cli.map.stretches import CallStretch, PeerStretches
from client_cli.report.document import Made, make
from client_cli.report.folder_view import FolderView
from client_cli.report.folding import fold
from client_cli.report.job_summary import View
from client_cli.report.lanes import WorkTime
from tests.laboratory.paper_calls import CALL_STATES, PaperCalls
from tests.laboratory.paper_job import HOSTILE


def spelled(*words: str) -> str:
    return " ".join(["axon", *words])


def made_of(job: PaperCalls) -> Made:
    view = FolderView(job.folder, ours=True).look_at_all()
    return make(view, spelled, lambda at: datetime.fromtimestamp(at, UTC), live=False)


@pytest.mark.parametrize("state", CALL_STATES)
def test_every_beginning_of_the_story_is_a_page(tmp_path: Path, state: str) -> None:
    job = CALL_STATES[state](tmp_path)
    told, record = job.folder.read_events(), job.folder.read()
    for until in range(0, len(told) + 1, 7):
        story = fold(told[:until], "map")
        assert isinstance(story, MapStory)
        view = View(record, story, True, job.clock.time, str(job.folder.path))
        make(view, spelled, lambda at: datetime.fromtimestamp(at, UTC), live=True)
        time = WorkTime(story.lives, job.clock.time)
        for lane in lanes(story, time, job.clock.time):
            assert all(0 <= span.began <= span.ended <= time.total for span in [*lane.spans, *lane.over])


def test_a_straggler_is_drawn_from_its_last_result_until_the_copy_has_them(tmp_path: Path) -> None:
    job = CALL_STATES["running"](tmp_path)
    story = fold(job.folder.read_events(), "map")
    time = WorkTime(story.lives, job.clock.time)
    found = {lane.peer: lane for lane in lanes(story, time, job.clock.time)}
    [stuck] = [span for span in found["wren"].over if span.doing == "stuck"]
    [copy] = [span for span in found["lynx"].spans if span.doing == "copy"]
    assert stuck.ended == copy.ended
    assert stuck.lasted == pytest.approx(3 + 1.2)
    assert [span.doing for span in found["heron"].spans] == ["ran", "ran", "ran", "failed"]
    assert {span.rows for span in found["otter"].spans} == {2}


def test_100_000_chunks_are_few_stretches_and_none_is_lost() -> None:
    drawn = PeerStretches()
    for number in range(100_000):
        began = number * 1.1
        drawn.add(CallStretch(began, began + 1, number * 3, 3, failed=number % 2), 50)
    assert sum(map(len, drawn.rows)) <= 50
    stretches = sorted((one for row in drawn.rows for one in row), key=lambda one: one.began)
    assert sum(one.chunks for one in stretches) == 100_000
    assert sum(one.calls for one in stretches) == 300_000
    assert sum(one.failed for one in stretches) == 50_000
    assert (stretches[0].began, stretches[-1].ended) == (0.0, pytest.approx(99_999 * 1.1 + 1))
    assert drawn.seconds == pytest.approx(100_000)


def test_results_are_words_and_long_ones_are_not_opened(tmp_path: Path) -> None:
    job = PaperCalls(tmp_path)
    job.begin(["otter"])
    job.work(1)
    made = made_of(job)
    rows = list(csv.DictReader(io.StringIO(made.csv["results"])))
    assert rows[0] == {
        "item": "0", "outcome": "value", "result": "{'inside': 785000}", "bytes": "13", "peer": "otter",
    }  # fmt: skip
    assert len(rows) == 22


def test_results_that_cannot_be_read_are_said_so(tmp_path: Path) -> None:
    assert find_results(tmp_path).trouble == ""
    (tmp_path / RESULTS).write_bytes(b"SQLite format 3\0" + bytes(5000))
    assert "results.sqlite cannot be read: " in find_results(tmp_path).trouble


def test_of_merged_results_the_last_one_is_shown(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / RESULTS)
    store.keep_tree(tree := ReduceTree(items=4, fold=2))
    store.keep([ItemResult(call, "value", pack_value(f"part {call}"), "otter") for call in (0, 1)], [])
    store.close()
    found = find_results(tmp_path)
    assert [one.text for one in found.results] == ["'part 0'", "'part 1'"]
    assert (found.parts, found.merged) == (True, False)
    store.keep([ItemResult(tree.calls - 1, "value", pack_value("all"), "otter")], [])
    store.close()
    found = find_results(tmp_path)
    assert [one.text for one in found.results] == ["'all'"]
    assert (found.parts, found.merged) == (False, True)


def test_the_csv_has_the_first_results_alone(tmp_path: Path) -> None:
    job = PaperCalls(tmp_path, items=MOST_FOUND + 5)
    job.begin(["otter"])
    job.chunk("otter", MOST_FOUND + 5)
    made = made_of(job)
    assert len(made.csv["results"].splitlines()) == 1 + MOST_FOUND
    assert "The CSV has the first 10,000; results.sqlite has all." in made.html


def test_a_picture_of_the_program_is_shown_and_nothing_else_of_that_name(tmp_path: Path) -> None:
    job = CALL_STATES["running"](tmp_path)
    picture = job.folder.path / "picture.png"
    picture.write_bytes(b"<svg onload=alert(1)>")
    assert "data:image/png" not in made_of(job).html
    picture.write_bytes(b"\x89PNG\r\n\x1a\n and more")
    assert "data:image/png;base64,iVBORw0KGg" in made_of(job).html


def test_what_strangers_compute_stays_words(tmp_path: Path) -> None:
    job = PaperCalls(tmp_path)
    job.begin(["otter"])
    job.say(map_events.CallFailed(item=1, peer="otter", kind=HOSTILE, message=HOSTILE))
    assert "<img" not in made_of(job).html


def test_nothing_is_said_of_opinions_where_no_result_was_compared(tmp_path: Path) -> None:
    assert "Second opinions" not in made_of(CALL_STATES["finished"](tmp_path)).html


def test_who_was_outvoted_what_waits_and_what_is_made_again_are_shown(tmp_path: Path) -> None:
    job = CALL_STATES["compared"](tmp_path)
    made = made_of(job)
    assert "15 results are confirmed: at least two peers gave an equal one." in made.html
    assert "3 calls wait for a second opinion: " in made.html
    assert "1 peer was outvoted, and not paid for that." in made.html
    assert "<strong>heron</strong> gets no more calls: its results differ from those of 2 others." in made.html
    rows = {row["peer"]: row for row in csv.DictReader(io.StringIO(made.csv["opinions"]))}
    assert list(rows) == ["heron", "lynx", "otter", "wren"]
    (doubted,) = [one for one in job.folder.read_events() if isinstance(one, map_events.ResultsDoubted)]
    assert rows["heron"] == {
        "peer": "heron", "outvoted_calls": "6", "first": "177", "outvoted_by": "otter, lynx",
        "made_again": "32", "taken": "0", "wait": "0", "waited": "6",
    }  # fmt: skip
    assert f"32 results, made again (items {', '.join(map(str, doubted.items[:5]))}, ...)" in made.html
    assert (rows["wren"]["waited"], rows["wren"]["wait"]) == ("3", "3")


def test_calls_whose_results_wait_are_on_the_lane_of_their_peer(tmp_path: Path) -> None:
    job = PaperCalls(tmp_path)
    job.begin(["otter", "heron"])
    job.clock.time += 2
    job.waits("otter", 4)
    story = fold(job.folder.read_events(), "map")
    found = {lane.peer: lane for lane in lanes(story, WorkTime(story.lives, job.clock.time), job.clock.time)}
    assert [span.lasted for span in found["otter"].spans] == [pytest.approx(0.5)]


def test_results_that_a_program_has_used_already_are_named(tmp_path: Path) -> None:
    job = PaperCalls(tmp_path)
    job.begin(["otter", "heron"])
    job.work(1)
    job.say(map_events.PeerOutvoted(peer="heron", others=["otter", "lynx"], calls=1, first=7))
    job.say(map_events.ResultsDoubted(peer="heron", again=0, taken=1, items=[3]))
    made = made_of(job)
    assert "<td>call 7</td><td>otter, lynx</td><td>1 result, used already (item 3)</td>" in made.html
