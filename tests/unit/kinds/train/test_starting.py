"""Between the bundle and the first round a person hears of peers that need long."""

from __future__ import annotations

from axonp2p.kinds.train.starting import AGAIN_S, FIRST_S, StartingPeers
from client_cli.train.lines import stays

NAMES = {0: "otter", 1: "heron", 2: "lynx"}


def test_peers_that_start_at_once_are_not_told_of() -> None:
    starting = StartingPeers(100.0)
    assert starting.due(109.0, NAMES, set()) is None
    for rank in NAMES:
        starting.ready(rank)
    assert starting.due(200.0, NAMES, set(NAMES)) is None, "a state may be on its way to some of them"
    starting.steps_begin(200.0)
    for rank in NAMES:
        assert not starting.over(NAMES)
        starting.stepped(rank)
    assert starting.over(NAMES)
    assert starting.due(300.0, NAMES, set(NAMES)) is None


def test_who_needs_long_is_told_with_what_it_does_and_now_and_then_again() -> None:
    starting = StartingPeers(100.0)
    event = starting.due(100.0 + FIRST_S, NAMES, set())
    assert event is not None
    assert (event.loading, event.building, event.seconds) == (["otter", "heron", "lynx"], [], FIRST_S)
    said = "after 10 s otter, heron and lynx still load torch, behind whatever else their processors do"
    assert stays(event) == said
    assert starting.due(111.0, NAMES, set()) is None
    starting.ready(1)
    event = starting.due(110.0 + AGAIN_S, NAMES, {0, 1})
    assert event is not None
    assert (event.loading, event.building) == (["lynx"], ["otter"])
    assert stays(event).endswith("lynx still loads torch, behind whatever else its processors do; otter still builds "
                                 "the task's model")  # fmt: skip


def test_who_has_gone_is_not_waited_for() -> None:
    starting = StartingPeers(0.0)
    starting.ready(0)
    starting.stepped(0)
    assert starting.over({0: "otter"})
    assert starting.due(60.0, {0: "otter"}, set()) is None


def test_whose_data_or_first_step_takes_long_is_told_since_when() -> None:
    starting = StartingPeers(0.0)
    for rank in NAMES:
        starting.ready(rank)
    starting.steps_begin(9.0)
    starting.stepped(1)
    assert starting.due(9.0 + FIRST_S - 1, NAMES, set(NAMES)) is None
    event = starting.due(9.0 + FIRST_S, NAMES, set(NAMES))
    assert event is not None
    assert (event.loading, event.building, event.stepping) == ([], [], ["otter", "lynx"])
    assert stays(event) == "otter and lynx are in data() or the first step for 10 s (axon logs JOB names the line)"
    assert starting.due(40.0, NAMES, set(NAMES)) is None
    assert starting.due(9.0 + FIRST_S + AGAIN_S, NAMES, set(NAMES)) is not None
    starting.round_done()
    assert starting.over(NAMES)


def test_first_steps_are_told_of_in_time_though_slow_starters_were_just_told_of() -> None:
    starting = StartingPeers(0.0)
    assert starting.due(FIRST_S, NAMES, set()) is not None
    for rank in NAMES:
        starting.ready(rank)
    starting.steps_begin(FIRST_S + 2)
    assert starting.due(FIRST_S + 2 + FIRST_S - 1, NAMES, set(NAMES)) is None
    event = starting.due(FIRST_S + 2 + FIRST_S, NAMES, set(NAMES))
    assert event is not None
    assert event.stepping == ["otter", "heron", "lynx"]
