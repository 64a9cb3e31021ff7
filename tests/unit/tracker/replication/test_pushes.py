"""Rows that trackers hand over: from whom they are taken, for whom they count, and how much room they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import AxonError, BadSignature, Refused, TooOften, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.table.records import TRACKERS_LIMIT, KnownTrackers, Row, open_row
from axonp2p.table.sync_messages import PUSHED_LIMIT, TOLD_LIMIT, DigestsAsked, DigestsTold, Push, Pushed
from axonp2p.table.tracker_client import known_trackers
from axonp2p.table.tracker_standing import TrackerStanding
from axonp2p.table.vouching import open_vouching
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, ManualClock, key_of, make_row
from tests.unit.tracker.conftest import Running, Start, until
from tracker.api.sync_routes import LEARNT_WALK_COSTS, PUSHED_AT_ONCE, WALKS_AT_ONCE, WALKS_OF_A_REQUEST
from tracker.replication.own_tracker_row import OwnTrackerRow
from tracker.replication.sync_line import SyncLine
from tracker.replication.tracker_book import KnownTracker, TrackerBook
from tracker.table.row_sources import PassedOnBy, RowSources

STRANGER, FRIEND, OTHER = key_of("stranger"), key_of("friend"), key_of("other")
AT = "https://127.0.0.1:1#" + "a" * 52
PUSH_PATH = "/v1/push"


def row_of(name: str, **changes: object) -> Signed[Row]:
    key = key_of(name)
    return sign(key, make_row(key, **changes))  # type: ignore[arg-type]


async def push(lab: Running, key: PrivateKey, *rows: Signed[Row], to: str = "") -> Pushed:
    message = Push(rows=list(rows), to=to or lab.tracker.key.peer_id)
    return await lab.caller.call(PUSH_PATH, sign(key, message), Pushed, PUSHED_LIMIT)


def know(lab: Running, key: PrivateKey, standing: TrackerStanding, monkeypatch: pytest.MonkeyPatch) -> KnownTracker:
    """From now on the tracker with that key is in the lab's book, as one that lives."""
    known = KnownTracker(AT, standing, key.peer_id, answered=NOW, since=NOW)
    book = lab.tracker._joined().book
    before = book.living_one
    monkeypatch.setattr(book, "living_one", lambda tracker: known if tracker == key.peer_id else before(tracker))
    return known


def rows_in(lab: Running) -> int:
    return len(lab.tracker.table.index)


async def test_a_stranger_pushes_nothing_whatever_it_says_of_itself(lab: Running):
    with pytest.raises(Refused, match="rows are taken from trackers that are known here"):
        await push(lab, STRANGER, row_of("ada"))
    introduction = KnownTrackers(trackers=[OwnTrackerRow(STRANGER, AT, "0" * 32).at(NOW)])
    await lab.caller.call("/v1/trackers", introduction, KnownTrackers, TRACKERS_LIMIT)
    with pytest.raises(Refused):  # it never answered where it says that it is
        await push(lab, STRANGER, row_of("ada"))
    assert rows_in(lab) == 0


async def test_a_push_is_its_signers_and_for_one_receiver(lab: Running, monkeypatch: pytest.MonkeyPatch):
    know(lab, FRIEND, TrackerStanding.CONFIGURED, monkeypatch)
    with pytest.raises(Refused, match="for another tracker"):
        await push(lab, FRIEND, row_of("ada"), to=OTHER.peer_id)
    message = sign(STRANGER, Push(rows=[row_of("ada")], to=lab.tracker.key.peer_id))
    forged: Signed[Push] = Signed(signer=FRIEND.peer_id, payload=message.payload, signature=message.signature)
    with pytest.raises(BadSignature):
        await lab.caller.call(PUSH_PATH, forged, Pushed, PUSHED_LIMIT)
    assert rows_in(lab) == 0
    await push(lab, FRIEND, row_of("ada"))
    assert rows_in(lab) == 1


async def test_a_learnt_tracker_hands_over_as_many_peers_as_one_household(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 3)
    know(lab, STRANGER, TrackerStanding.LEARNT, monkeypatch)
    know(lab, FRIEND, TrackerStanding.VOUCHED, monkeypatch)
    known = know(lab, OTHER, TrackerStanding.LEARNT, monkeypatch)
    await push(lab, STRANGER, *(row_of(f"made up {number}") for number in range(10)))
    assert rows_in(lab) == 3
    await push(lab, OTHER, row_of("another network's peer"))  # its neighbour's bound is its own
    assert (rows_in(lab), known.useful) == (3, False)
    await push(lab, STRANGER, row_of("made up 1", sequence=2))  # renewals go on
    assert lab.tracker.table.index.sequence_of(key_of("made up 1").peer_id) == 2
    await push(lab, FRIEND, *(row_of(f"a friend's {number}") for number in range(10)))
    assert rows_in(lab) == 13


async def test_a_household_that_announces_and_pushes_has_one_bound_for_both(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 4)
    monkeypatch.setattr(lab.tracker.table, "_sources", RowSources(b"secret", most=4))
    know(lab, STRANGER, TrackerStanding.LEARNT, monkeypatch)
    await lab.announce(*(key_of(f"announced {number}") for number in range(3)))
    await push(lab, STRANGER, *(row_of(f"pushed {number}") for number in range(10)))
    assert rows_in(lab) == 4
    with pytest.raises(TooOften):
        await lab.announce(key_of("one more"))


async def hand_over(lab: Running, *rows: Signed[Row]) -> None:
    """A learnt tracker of another network hands over these."""
    learnt = PassedOnBy("203.0.113.7", "203.0.0.0/16")
    await lab.tracker.table.keep_many([(row, open_row(row, NOW)) for row in rows], NOW, learnt)


async def test_a_peer_that_announces_itself_counts_for_the_tracker_no_more(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 1)
    await hand_over(lab, row_of("ada"), row_of("ben"))
    assert rows_in(lab) == 1
    await lab.announce(key_of("ada"), sequence=2)
    await hand_over(lab, row_of("ben"))
    assert rows_in(lab) == 2


async def test_the_trackers_of_one_network_have_one_bound_wherever_they_call_from(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 3)
    for household in range(3):
        rows = [row_of(f"made up {household} {number}") for number in range(2)]
        learnt = PassedOnBy(f"203.0.{household}.7", "203.0.0.0/16")
        await lab.tracker.table.keep_many([(row, open_row(row, NOW)) for row in rows], NOW, learnt)
    assert rows_in(lab) == 3


async def test_what_is_fetched_from_a_learnt_tracker_counts_as_what_it_pushes(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 3)
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    await first.announce(*(key_of(f"made up {number}") for number in range(10)))
    here = second.tracker
    line = SyncLine(str(first.address), here._joined().own, here.replica, here._arrivals, second.clock)
    for trusted, most in ((False, 3), (True, 10)):
        await line.pull(first.tracker.key.peer_id, everything=True, trusted=trusted)
        assert rows_in(second) == most
    await line.close()


@pytest.mark.parametrize("standing", [None, TrackerStanding.LEARNT, TrackerStanding.CONFIGURED])
async def test_a_question_costs_the_rows_that_it_walks(
    lab: Running, monkeypatch: pytest.MonkeyPatch, standing: TrackerStanding | None
):
    monkeypatch.setattr("axonp2p.transport.http.http_replies.REFUSED_AFTER_S", 0.0)
    asked = DigestsAsked(oldest=0, newest=1, groups=bytes(8))

    async def ask() -> None:
        await lab.caller.call("/v1/sync", asked, DigestsTold, TOLD_LIMIT)

    walks, fit = WALKS_OF_A_REQUEST * 10, 1
    if standing is not None:
        known = KnownTracker(AT, standing, FRIEND.peer_id, answered=NOW, since=NOW)
        monkeypatch.setattr(lab.tracker._joined().book, "living", lambda: [known])
        walks, fit = int(WALKS_AT_ONCE) // LEARNT_WALK_COSTS, 1 if standing is TrackerStanding.LEARNT else 10
    lab.tracker._limit._burst = 25.0  # a stranger's question that walks nothing costs ten
    monkeypatch.setattr(lab.tracker.replica, "walks", lambda question: walks)
    for _ in range(fit):
        await ask()
    with pytest.raises(TooOften):
        await ask()


async def test_pushes_leave_room_for_those_who_announce_themselves(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.table.admission.MOST_KNOWN_PEERS", 10)
    know(lab, FRIEND, TrackerStanding.CONFIGURED, monkeypatch)
    await push(lab, FRIEND, *(row_of(f"pushed {number}") for number in range(20)))
    assert rows_in(lab) == 8
    await lab.announce(key_of("ada"), key_of("ben"))
    assert rows_in(lab) == 10


async def test_one_networks_pushes_are_held_to_a_rate(lab: Running, monkeypatch: pytest.MonkeyPatch):
    know(lab, STRANGER, TrackerStanding.LEARNT, monkeypatch)
    rows = [row_of("ada")] * 200
    for _ in range(int(PUSHED_AT_ONCE) // 200):
        await push(lab, STRANGER, *rows)
    with pytest.raises(TooOften):
        await push(lab, STRANGER, *rows)


async def test_a_table_of_many_lets_learnt_trackers_hand_over_an_eighth_each(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.table_store.MOST_ROWS_OF_ONE", 1)
    await lab.announce(*(key_of(f"here {number}") for number in range(32)))
    await hand_over(lab, *(row_of(f"made up {number}") for number in range(10)))
    assert rows_in(lab) == 32 + 4


@pytest.mark.slow
async def test_two_trackers_push_to_each_other_once_they_know_each_other(start: Start, tmp_path: Path):
    """One names the other in its settings; the other learns of it, and tells whom it vouches for."""
    first = await start(tmp_path / "first")
    second = await start(tmp_path / "second", first.clock, trackers=[str(first.address)], vouches_for=[])
    first_id, second_id = first.tracker.key.peer_id, second.tracker.key.peer_id
    await until(lambda: second.tracker._joined().book.living_one(first_id))
    await until(lambda: first.tracker._joined().book.living_one(second_id))
    assert second.tracker._joined().book.is_trusted(first_id, NOW)
    assert not first.tracker._joined().book.is_trusted(second_id, NOW)
    await second.announce(key_of("ada"))
    await until(lambda: rows_in(first) == 1)
    await first.announce(key_of("ben"))
    await until(lambda: rows_in(second) == 2)
    # The first one's operator strikes nobody in yet: its list is empty, and it is signed.
    told = await first.caller.call("/v1/trackers", None, KnownTrackers, TRACKERS_LIMIT)
    assert told.vouching is not None
    assert told.vouching.signer == first_id


async def test_an_operators_list_names_those_it_vouches_for_once_they_said_who_they_are(start: Start, tmp_path: Path):
    friend = await start(tmp_path / "friend")
    lab = await start(tmp_path / "lab", friend.clock, vouches_for=[str(friend.address)])
    book: TrackerBook = lab.tracker._joined().book
    await until(lambda: book.living_one(friend.tracker.key.peer_id))
    told = await known_trackers(lab.caller, now=NOW)
    assert told.own == lab.tracker.key.peer_id
    assert told.vouching is not None
    (named,) = open_vouching(told.vouching, told.own, NOW).trackers
    assert (named.tracker, named.address) == (friend.tracker.key.peer_id, str(friend.address))


async def test_a_configured_tracker_whose_clock_is_wrong_shares_the_table_and_vouches_for_nobody(
    start: Start, tmp_path: Path
):
    ahead = await start(tmp_path / "ahead", ManualClock(NOW + 120))
    lab = await start(tmp_path / "lab", ManualClock(NOW), trackers=[str(ahead.address)])
    book = lab.tracker._joined().book
    await until(lambda: book.living_one(ahead.tracker.key.peer_id))
    assert book.to_remember()[1] == []


async def test_an_address_without_a_fingerprint_is_not_vouched_for(start: Start, tmp_path: Path):
    with pytest.raises(AxonError, match="has no fingerprint"):
        await start(tmp_path / "lab", vouches_for=["https://lab.example:7070"])


async def test_a_tracker_that_a_stranger_named_is_dialled_where_the_policy_allows_it(lab: Running):
    sync = lab.tracker._joined()
    sync.dials = DialPolicy(tuple)
    said = []
    for number, standing in enumerate((TrackerStanding.LEARNT, TrackerStanding.VOUCHED), start=1):
        line = sync._line(KnownTracker(AT.replace("127.0.0.1", f"127.0.0.{number}"), standing))
        assert line is not None
        with pytest.raises(Unreachable) as caught:
            await line.caller.round_trip()
        said.append("refused" in caught.value.in_a_line)
    assert said == [False, True]
