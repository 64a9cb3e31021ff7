"""Who is asked first, and what is said when too few are left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.peers.capability import Need
from axonp2p.peers.selection import Candidate, Distance, Shortlist, how_many_to_ask, nearest_first
from tests.fakes import key_of, make_offer


def candidate(name: str, **offer: object) -> Candidate:
    return Candidate(key_of(name).peer_id, name, make_offer(**offer))


def at(distances: dict[str, float | None]) -> dict[str, Distance]:
    return {key_of(name).peer_id: Distance(seconds) for name, seconds in distances.items()}


def names(candidates: list[Candidate]) -> list[str]:
    return [candidate.name for candidate in candidates]


def test_more_are_asked_for_than_are_needed_but_never_more_than_the_table_gives() -> None:
    assert how_many_to_ask(1) == 7
    assert how_many_to_ask(4) == 16
    assert how_many_to_ask(64) == 196
    assert how_many_to_ask(1000) == 200


def test_coordinates_rank_those_that_have_one_and_leave_the_others_where_they_stood() -> None:
    found = nearest_first(
        [candidate(name) for name in ("far", "unknown", "near", "middle")],
        {key_of(name).peer_id: seconds for name, seconds in {"far": 0.3, "near": 0.01, "middle": 0.1}.items()},
    )
    assert names(found) == ["near", "unknown", "middle", "far"]
    assert nearest_first([], {}) == []


def test_what_does_not_fit_is_dropped_before_it_is_measured() -> None:
    shortlist = Shortlist(Need(cores=4), 0.25)
    found = shortlist.worth_measuring([candidate("otter"), candidate("heron", cores=1), candidate("lynx", free=0)])
    assert names(found) == ["otter"]
    assert shortlist.seen == 3


def test_nobody_is_looked_at_twice() -> None:
    shortlist = Shortlist(Need(), 0.25)
    assert names(shortlist.worth_measuring([candidate("otter"), candidate("otter")])) == ["otter"]
    assert shortlist.worth_measuring([candidate("otter")]) == []
    assert shortlist.seen == 1


def test_the_nearest_come_first_and_the_faster_one_at_equal_distance() -> None:
    shortlist = Shortlist(Need(), 0.25)
    all_of_them = [candidate("far"), candidate("slow", gflops=1.0), candidate("near"), candidate("quick", gflops=90.0)]
    shortlist.worth_measuring(all_of_them)
    shortlist.add_measured(all_of_them, at({"far": 0.2, "slow": 0.1, "near": 0.01, "quick": 0.1}))
    assert names(shortlist.take(3)) == ["near", "quick", "slow"]
    assert names(shortlist.take(3)) == ["far"]
    assert shortlist.take(3) == []


def test_those_too_far_or_out_of_reach_are_left_out() -> None:
    shortlist = Shortlist(Need(), 0.25)
    some = [candidate("near"), candidate("edge"), candidate("far"), candidate("gone")]
    shortlist.worth_measuring(some)
    too_far = shortlist.add_measured(some, at({"near": 0.01, "edge": 0.25, "far": 0.26, "gone": None}))
    assert names(too_far) == ["far"]
    assert names(shortlist.take(9)) == ["near", "edge"]


def test_the_error_counts_every_reason() -> None:
    shortlist = Shortlist(Need(cores=4), 0.25)
    some = [candidate(name) for name in ("a", "b", "c", "d")]
    shortlist.worth_measuring([*some, candidate("small", cores=2), candidate("full", free=0)])
    shortlist.add_measured(some, at({"a": 0.3, "b": 0.4, "c": 0.1, "d": None}))
    shortlist.take(1)
    shortlist.refused("busy")
    shortlist.add_unseen(2, "busy or taking no work now")
    error = shortlist.nobody_fits(hired=0, needed=2)
    assert error.message == "this job needs 2 peers and can have 0"
    assert error.cause.startswith("seen 8 peers: too far (max-rtt 250 ms) (2), busy or taking no work now (2)")
    for reason in ("unreachable (1)", "lends 2 of the 4 cores needed (1)", "every slot is taken (1)", "busy (1)"):
        assert reason in error.cause
    assert "max-rtt" in error.fix


def test_an_empty_swarm_is_said_to_be_empty() -> None:
    error = Shortlist(Need(), 0.25).nobody_fits(hired=0, needed=1)
    assert error.message == "this job needs 1 peer and can have 0"
    assert "seen 0 peers" in error.cause
    assert "axon-peer run" in error.fix


@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=6), st.floats(0, 1), max_size=12), st.floats(0, 1))
def test_whoever_is_taken_is_within_reach_and_in_order(seconds: dict[str, float], limit: float) -> None:
    shortlist = Shortlist(Need(), limit)
    some = shortlist.worth_measuring([candidate(name) for name in seconds])
    shortlist.add_measured(some, at(dict(seconds)))
    order = [seconds[name] for name in names(shortlist.take(len(seconds)))]
    assert order == sorted(order)
    assert len(order) == sum(value <= limit for value in seconds.values())
