from __future__ import annotations

import random

from axonp2p.errors import NotFound
from axonp2p.table.records import Contacts, KnownTrackers, TrackerRow
from axonp2p.table.tracker_file import read_health
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.table.vouching import sign_vouching
from axonp2p.wire.envelope import sign
from peer_daemon.discovery.tracker_news import AGAIN_AFTER_S, TrackerNews
from tests.fakes import NEARBY, NOW, ManualClock, key_of

ONE, TWO, STRANGER = key_of("one"), key_of("two"), key_of("stranger")
CONFIGURED = "https://192.0.2.1:7070"
OTHER = "https://192.0.2.2:7070"


def tracker_row(key, address, *, signer=None, expires=NOW + 600):
    row = TrackerRow(tracker=key.peer_id, address=address, sequence=1, expires=int(expires), database="0" * 32)
    return sign(signer or key, row)


class FakeTracker:
    """Names these trackers and contacts."""

    called = "tracker one"
    address = CONFIGURED

    def __init__(self, *trackers, contacts=(), old=False, vouching=None):
        self._trackers = list(trackers)
        self._vouching = vouching
        self._contacts = list(contacts)
        self._old = old

    async def call(self, path, message, answer, limit, **_):
        if self._old:
            raise NotFound(path)
        if answer is KnownTrackers:
            return KnownTrackers(trackers=self._trackers, vouching=self._vouching)
        return Contacts(contacts=self._contacts)


def make_news(folder):
    lines, offered = TrackerLines(TrackerHealth([CONFIGURED]), ManualClock(), random.Random(1)), []
    lines.health.answered(CONFIGURED, NOW, tracker=ONE.peer_id)
    news = TrackerNews(lines, folder / "trackers.json", ManualClock(), offered.extend, NEARBY)
    return news, lines.health, offered


async def test_other_trackers_are_learnt_kept_and_not_trusted(tmp_path):
    news, health, offered = make_news(tmp_path)
    tracker = FakeTracker(
        tracker_row(ONE, "https://198.51.100.7:7070"),
        tracker_row(TWO, OTHER),
        contacts=["192.0.2.9:7071", "127.0.0.1:22"],
    )
    assert await news.hear(tracker, None) is True
    assert await news.hear(tracker, None) is False
    assert health.addresses == [CONFIGURED, OTHER]  # the first is the one that was asked, under another address
    assert health.trusted(NOW) == {ONE.peer_id}
    assert set(offered) == {"192.0.2.9:7071"}
    again = read_health(tmp_path / "trackers.json", [CONFIGURED], NOW)
    assert again.addresses == [CONFIGURED, OTHER]
    assert again.trusted(NOW) == {ONE.peer_id}


async def test_those_that_the_asked_operator_vouches_for_are_trusted(tmp_path):
    news, health, _ = make_news(tmp_path)
    tracker = FakeTracker(
        tracker_row(ONE, "https://198.51.100.7:7070"),
        tracker_row(TWO, OTHER),
        vouching=sign_vouching(ONE, {TWO.peer_id: OTHER}, NOW),
    )
    assert await news.hear(tracker, None) is True
    assert await news.hear(tracker, None) is False
    assert health.addresses == [CONFIGURED, OTHER]
    assert health.trusted(NOW) == {ONE.peer_id, TWO.peer_id}
    again = read_health(tmp_path / "trackers.json", [CONFIGURED], NOW)
    assert again.trusted(NOW) == {ONE.peer_id, TWO.peer_id}
    await news.hear(
        FakeTracker(tracker_row(ONE, "https://198.51.100.7:7070"), vouching=sign_vouching(ONE, {}, NOW + 1)), None
    )
    assert health.trusted(NOW) == {ONE.peer_id}


async def test_what_a_tracker_did_not_say_itself_counts_nothing(tmp_path):
    news, health, _ = make_news(tmp_path)
    false = FakeTracker(tracker_row(TWO, OTHER, signer=STRANGER), tracker_row(TWO, OTHER, expires=NOW - 1))
    await news.hear(false, None)
    assert health.addresses == [CONFIGURED]
    assert health.trusted(NOW) == {ONE.peer_id}


async def test_a_tracker_that_knows_no_such_question_is_no_trouble(tmp_path):
    news, health, offered = make_news(tmp_path)
    assert await news.hear(FakeTracker(old=True), None) is False
    assert (health.addresses, offered) == ([CONFIGURED], [])


async def test_after_a_datagram_a_tracker_is_asked_only_for_what_is_new(tmp_path):
    news, _, _ = make_news(tmp_path)
    assert news.is_due(CONFIGURED, None, lonely=False)  # the line is open anyway
    assert news.is_due(CONFIGURED, b"1111", lonely=False)
    await news.hear(FakeTracker(), b"1111")
    assert not news.is_due(CONFIGURED, b"1111", lonely=False)
    assert news.is_due(CONFIGURED, b"2222", lonely=False)
    assert news.is_due(CONFIGURED, b"1111", lonely=True)
    news._clock.time += AGAIN_AFTER_S + 1
    assert news.is_due(CONFIGURED, b"1111", lonely=False)


async def test_what_was_not_heard_is_asked_for_again(tmp_path):
    news, _, _ = make_news(tmp_path)
    await news.hear(FakeTracker(old=True), b"1111")
    assert news.is_due(CONFIGURED, b"1111", lonely=False)
