"""Two or more copies of the table: pushes, renewals, and what a comparison costs and finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.peers.capability import as_map
from axonp2p.table.records import Row
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, make_offer, make_row
from tests.unit.tracker.replicas import PaperTracker, key_number
from tracker.replication.renewals import mention, restore, shorten

VERSIONS = st.dictionaries(st.sampled_from(["torch", "numpy", "jax"]), st.text(max_size=8))
GFLOPS = st.floats(0, 1000) | st.integers(0, 1000)
OFFER: dict[str, Any] = as_map(make_offer())


def row_of(number: int, at: float = NOW, **changes: Any) -> Signed[Row]:
    key = key_number(number)
    return sign(key, make_row(key, now=at, sequence=int(at * 1000), **changes))


def test_what_is_pushed_is_there_and_is_no_news_of_the_receiver():
    one, two = PaperTracker("one"), PaperTracker("two")
    one.take(row_of(1), NOW, announced=True)
    one.push([two], NOW)
    assert one.serves(NOW) == two.serves(NOW) != {}
    assert two.replica.take_news() == []


def test_a_row_announced_to_two_is_pushed_by_the_quicker_one_only():
    one, two = PaperTracker("one"), PaperTracker("two")
    for tracker in (one, two):
        tracker.take(row_of(1), NOW, announced=True)
    one.push([two], NOW)
    assert two.replica.take_news() == []


def test_a_renewal_is_a_quarter_of_the_row_and_gives_the_same_bytes():
    one, two = PaperTracker("one"), PaperTracker("two")
    before, after = row_of(1), row_of(1, NOW + 300)
    for tracker in (one, two):
        tracker.take(before, NOW, announced=False)
    short = shorten(after, before)
    assert short is not None
    assert len(short) < 0.25 * (len(after.payload) + 64)
    assert restore(short, two.replica.slots, two.replica.index) == after


@given(VERSIONS, VERSIONS, GFLOPS, GFLOPS)
def test_whatever_changes_in_the_capability_the_bytes_are_the_same(
    old: dict[str, str], new: dict[str, str], slower: float, faster: float
):
    there = PaperTracker("there")
    before, after = (
        row_of(1, capability=OFFER | {"packages": old, "gflops": slower}),
        row_of(1, NOW + 300, capability=OFFER | {"packages": new, "gflops": faster}),
    )
    there.take(before, NOW, announced=False)
    short = shorten(after, before)
    assert short is None or restore(short, there.replica.slots, there.replica.index) == after


def test_other_free_slots_make_a_renewal_little_longer():
    before = row_of(1, capability=OFFER)
    same = shorten(row_of(1, NOW + 300, capability=OFFER), before)
    fewer = shorten(row_of(1, NOW + 300, capability=OFFER | {"free": 1}), before)
    assert same is not None
    assert fewer is not None
    assert len(fewer) <= len(same) + 4


def test_a_renewal_is_of_no_use_to_who_lacks_the_row_before():
    other = PaperTracker("other")
    short = shorten(row_of(1, NOW + 300), row_of(1))
    assert short is not None
    assert restore(short, other.replica.slots, other.replica.index) is None


def test_a_renewal_is_understood_by_who_has_the_new_row_already():
    other = PaperTracker("other")
    before, after = row_of(1), row_of(1, NOW + 300)
    for signed in (before, after):
        other.take(signed, NOW + 300, announced=True)
    short = shorten(after, before)
    assert short is not None
    assert restore(short, other.replica.slots, other.replica.index) == after
    for _ in range(2):
        other.sweep(NOW + 310)  # that was long ago
    assert restore(short, other.replica.slots, other.replica.index) is None


def test_a_row_that_changed_much_is_not_shortened():
    assert shorten(row_of(1, NOW + 1, capability={"x": "y" * 400}), row_of(1)) is None
    assert shorten(row_of(1), None) is None


def test_equal_tables_cost_one_question():
    one, two = PaperTracker("one"), PaperTracker("two")
    for number in range(50):
        for tracker in (one, two):
            tracker.take(row_of(number, NOW + number), NOW + number, announced=False)
    assert two.pull(one, NOW + 100) == (1, 0)


def test_an_empty_tracker_fetches_everything_and_nothing_twice():
    one, two = PaperTracker("one"), PaperTracker("two")
    for number in range(500):
        one.take(row_of(number, NOW + number / 10), NOW + 50, announced=False)
    assert two.pull(one, NOW + 51, everything=True)[1] == 500
    assert two.serves(NOW + 51) == one.serves(NOW + 51)
    assert two.pull(one, NOW + 51, everything=True) == (1, 0)


def test_one_row_missing_among_many_in_a_slot_is_found_by_its_part():
    one, two = PaperTracker("one"), PaperTracker("two")
    for number in range(400):
        one.take(row_of(number), NOW, announced=False)
        if number != 7:
            two.take(row_of(number), NOW, announced=False)
    questions, rows = two.pull(one, NOW + 60)
    assert (questions, rows) == (4, 1)  # digests, parts, names, rows


def test_what_was_replaced_before_we_heard_of_it_is_asked_about_once():
    one, two = PaperTracker("one"), PaperTracker("two")
    one.take(row_of(1), NOW, announced=False)
    one.take(row_of(1, NOW + 100), NOW + 100, announced=False)
    assert two.pull(one, NOW + 200)[1] == 1
    assert two.pull(one, NOW + 200) == (1, 0)
    assert one.pull(two, NOW + 200)[1] == 0
    assert one.pull(two, NOW + 200) == (1, 0)


def test_the_slot_that_has_not_ended_is_left_alone_unless_everything_is_asked_for():
    one, two = PaperTracker("one"), PaperTracker("two")
    one.take(row_of(1), NOW, announced=False)
    assert two.pull(one, NOW)[1] == 0
    assert two.pull(one, NOW, everything=True)[1] == 1


def test_a_restart_with_its_disk_costs_a_look_and_no_rows():
    one, two = PaperTracker("one"), PaperTracker("two")
    for at in (NOW, NOW + 300):
        for number in range(100):
            for tracker in (one, two):
                tracker.take(row_of(number, at), at, announced=False)
    two.start(NOW + 320)
    assert two.pull(one, NOW + 320)[1] == 0
    assert two.pull(one, NOW + 320) == (1, 0)


def test_a_number_that_is_no_time_is_compared_too():
    one, two = PaperTracker("one"), PaperTracker("two")
    for number, sequence in enumerate([0, 7, 2**53]):
        key = key_number(number)
        one.take(sign(key, make_row(key, sequence=sequence)), NOW, announced=False)
    assert two.pull(one, NOW + 30)[1] == 3


def test_expired_rows_are_not_handed_on():
    one, two = PaperTracker("one"), PaperTracker("two")
    one.take(row_of(1), NOW, announced=False)
    assert two.pull(one, NOW + 700)[1] == 0


def test_a_tracker_that_has_the_row_from_its_peer_is_only_reminded_of_it():
    two = PaperTracker("two")
    row, newer = row_of(1), row_of(1, NOW + 300)
    note = mention(row)
    assert len(note) == 12
    assert restore(note, two.replica.slots, two.replica.index) is None, "it lacks it: send it whole"
    two.take(row, NOW, announced=True)
    assert restore(note, two.replica.slots, two.replica.index) == row
    two.replica.pushed(row)
    assert two.replica.take_news() == [], "the other one tells everybody"
    two.take(newer, NOW + 300, announced=True)
    assert restore(note, two.replica.slots, two.replica.index) is None


def test_nothing_is_kept_of_trackers_that_are_gone():
    one = PaperTracker("one")
    strangers = [key_number(number).peer_id for number in range(50)]
    for stranger in strangers:
        for number in range(20):
            one.replica.fetched(stranger, number, digest=number + 1)
    one.replica.keep_only(strangers[:2])
    assert [one.replica.expected(stranger, 3) for stranger in strangers[:3]] == [4, 4, 0]
    one.replica.keep_only(strangers[:2])
    assert set(one.replica._fetched) == set(strangers[:2])
