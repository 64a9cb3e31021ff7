"""From events to what happened."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.client.events import events
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train import events as train_events
from client_cli.report.folding import fold as fold_of_kind
from client_cli.report.lanes import WorkTime
from client_cli.report.story import Life
from client_cli.train.lanes import lanes, pace_setter
from client_cli.train.story import TrainStory
from tests.laboratory.paper_job import CREW, NOON, STATES, PaperJob


def fold(happened: list[events.Event]) -> TrainStory:
    story = fold_of_kind(happened, "train")
    assert isinstance(story, TrainStory)
    return story


def told(state: str, folder: Path) -> list[events.Event]:
    return STATES[state](folder).folder.read_events()


@pytest.fixture(scope="module")
def all_told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[events.Event]]:
    return {state: told(state, tmp_path_factory.mktemp(state)) for state in STATES}


def test_a_finished_job_has_all_rounds_and_every_peer(tmp_path: Path) -> None:
    story = fold(told("finished", tmp_path))
    assert [one.round for one in story.rounds] == list(range(20))
    assert {name: peer.state for name, peer in story.peers.items()} == {
        "otter": "works", "heron": "works", "lynx": "works", "wren": "lost", "ibex": "works",
    }  # fmt: skip
    assert story.peers["ibex"].rtt_s == 0.031
    assert [(mark.kind, mark.peer, mark.round) for mark in story.marks] == [
        ("exchange", "", 0), ("lost", "wren", 8), ("redone", "", 8), ("joined", "ibex", 11), ("paused", "lynx", 14),
        ("behind", "lynx", 14), ("resumed", "lynx", 16), ("joined", "lynx", 17),
    ]  # fmt: skip
    assert isinstance(story.last, events.JobFinished)
    assert not story.begun


def test_a_job_that_ends_early_has_no_more_rounds_to_come(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(CREW)
    job.train(5)
    happened = [*job.folder.read_events(), train_events.TrainingStops(rounds=6)]
    story = fold(happened)
    assert story.rounds_planned == 6
    assert story.said[-1].sentence == "the job ends after round 6: its owner stopped it"


def test_a_resumed_job_forgets_rounds_that_were_not_kept(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(CREW)
    job.train(5)
    job.clock.time += 900
    job.journal.change(round=3, state=JobState.PAUSED)
    job.here = []
    job.begin(["otter"], resumed_from=3)
    assert len(fold(job.folder.read_events()).rounds) == 5  # nothing is lost before that is said
    job.say(train_events.RoundsLost(first=3, last=4))
    job.say(train_events.StateFound(round=3, rounds=20))
    job.train(1)
    story = fold(job.folder.read_events())
    assert [one.round for one in story.rounds] == [0, 1, 2, 3]
    assert [one.round for one in story.forgotten] == [3, 4]
    assert [life.from_round for life in story.lives] == [0, 3]
    assert story.peers["wren"].state == "lost"
    assert [mark.kind for mark in story.marks].count("again") == 1


def test_a_round_that_is_told_twice_counts_once(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(CREW)
    job.train(3)
    happened = job.folder.read_events()
    assert [one.round for one in fold([*happened, happened[-1]]).rounds] == [0, 1, 2]


@pytest.mark.parametrize("state", sorted(STATES))
def test_every_beginning_of_a_job_is_a_story(all_told: dict[str, list[events.Event]], state: str) -> None:
    for length in range(len(all_told[state]) + 1):
        happened = all_told[state][:length]
        story = fold(happened)
        now = happened[-1].at + 3 if happened else NOON
        time = WorkTime(story.lives, now)
        assert [one.round for one in story.rounds] == list(range(len(story.rounds)))
        for lane in lanes(story, time, now):
            for span in [*lane.spans, *lane.over]:
                assert -1e-6 <= span.began <= span.ended <= time.total + 1e-6
            in_rounds = [span for span in lane.spans if span.doing in ("train", "exchange", "wait")]
            for one, other in itertools.pairwise(in_rounds):
                assert one.ended <= other.began + 1e-6


@settings(max_examples=100, deadline=None)
@given(chosen=st.lists(st.integers(0, 10_000), max_size=60))
def test_events_in_any_order_and_number_are_no_error(
    all_told: dict[str, list[events.Event]], chosen: list[int]
) -> None:
    everything = [event for state in sorted(all_told) for event in all_told[state]]
    happened = [everything[index % len(everything)] for index in chosen]
    story = fold(happened)
    lanes(story, WorkTime(story.lives, NOON + 1e4), NOON + 1e4)


def test_time_between_two_lives_is_left_out() -> None:
    time = WorkTime([Life(100, 110, 0), Life(500, 520, 3)], now=530)
    assert time.total == 40
    assert time.cuts == [10]
    assert [time.at(moment) for moment in (90, 100, 105, 300, 500, 510)] == [0, 0, 5, 10, 10, 20]


def test_a_lane_says_what_a_peer_did_in_a_round(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(["otter", "wren"])
    job.train(1)
    happened = job.folder.read_events()
    finished = happened[-1]
    assert isinstance(finished, train_events.RoundFinished)
    story = fold(happened)
    time = WorkTime(story.lives, 0)
    otter, wren = lanes(story, time, 0)
    spent = {span.doing: span.lasted for span in otter.spans}
    least = min(share.exchange_seconds for share in finished.peers.values())
    assert spent["train"] == pytest.approx(finished.peers["otter"].train_seconds)
    assert spent["exchange"] == pytest.approx(least)
    whole = sum(span.lasted for span in otter.spans if span.doing != "ready")
    assert whole == pytest.approx(finished.seconds)
    waited = {lane.peer: sum(span.lasted for span in lane.spans if span.doing == "wait") for lane in (otter, wren)}
    assert waited["otter"] > waited["wren"]
    assert pace_setter(story) == ("wren", 1, 1)


def test_what_was_done_in_vain_is_shown_as_lost(tmp_path: Path) -> None:
    story = fold(told("lost", tmp_path))
    found = {lane.peer: lane for lane in lanes(story, WorkTime(story.lives, 0), 0)}
    in_vain = [span for span in found["otter"].spans if span.doing == "lost"]
    assert [round(span.lasted, 3) for span in in_vain] == [1.1]
    assert found["wren"].lost_at == [in_vain[0].ended]
    assert not found["otter"].lost_at


@pytest.mark.slow
def test_very_many_rounds_are_drawn_together(tmp_path: Path) -> None:
    job = PaperJob(tmp_path, rounds=600)
    job.begin(CREW)
    job.train(600)
    story = fold(job.folder.read_events())
    drawn = lanes(story, WorkTime(story.lives, 0), 0)
    assert sum(len(lane.spans) for lane in drawn) < 6000
    trained = sum(span.lasted for span in drawn[0].spans if span.doing == "train")
    told_of = sum(one.peers["otter"].train_seconds for one in story.rounds)
    assert trained == pytest.approx(told_of, rel=0.01)


def test_a_peer_that_waited_for_its_job_is_there_again(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(["otter", "heron"])
    job.train(2)
    job.journal.change(state=JobState.PAUSED)
    job.here = ["heron"]
    job.begin(["otter"], resumed_from=2)
    assert fold(job.folder.read_events()).peers["heron"].state == "lost"
    job.train(1)
    story = fold(job.folder.read_events())
    assert story.peers["heron"].state == "works"
    job.lose("heron")
    last = story.newest
    assert last
    job.journal.folder.add_event(last)  # told after the peer was lost, though accepted before
    assert fold(job.folder.read_events()).peers["heron"].state == "lost"
