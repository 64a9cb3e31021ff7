"""Which way an announce takes, told as what happened before."""

from __future__ import annotations

from axonp2p.table.announce_datagrams import MOST_BODY, NO_TOKEN, DatagramTicket
from peer_daemon.announcing.announce_ways import FIRST_REST_S, LONGEST_REST_S, NOT_OFFERED_S, AnnounceWays, DatagramWay
from tests.fakes import NOW

LAB = "https://192.0.2.1:7070"
WAY = DatagramWay("192.0.2.1", DatagramTicket(ticket=b"t" * 8, key=b"k" * 32))


def offered() -> AnnounceWays:
    ways = AnnounceWays()
    ways.taken_by_https(LAB, NOW, was_silent=False)
    assert ways.wants_ticket(LAB, NOW)
    ways.offered(LAB, WAY)
    return ways


def test_the_first_announce_goes_by_https_which_offers_datagrams_for_the_next() -> None:
    assert AnnounceWays().by_datagram(LAB, 700) is None
    ways = offered()
    assert ways.by_datagram(LAB, 700) == WAY
    assert not ways.wants_ticket(LAB, NOW)
    assert WAY.token == NO_TOKEN


def test_the_token_of_the_last_time_is_shown_the_next_time() -> None:
    ways = offered()
    ways.answered(LAB, b"12345678")
    way = ways.by_datagram(LAB, 700)
    assert way is not None
    assert (way.token, way.ticket) == (b"12345678", WAY.ticket)


def test_a_row_that_is_too_large_goes_by_https() -> None:
    assert offered().by_datagram(LAB, MOST_BODY) == WAY
    assert offered().by_datagram(LAB, MOST_BODY + 1) is None


def test_one_that_takes_no_datagrams_is_asked_again_a_day_later() -> None:
    ways = AnnounceWays()
    ways.not_offered(LAB, NOW)
    assert not ways.wants_ticket(LAB, NOW + NOT_OFFERED_S - 1)
    assert ways.wants_ticket(LAB, NOW + NOT_OFFERED_S)


def test_silence_that_https_breaks_rests_longer_each_time() -> None:
    ways, now, rests = offered(), NOW, []
    for _ in range(8):
        ways.taken_by_https(LAB, now, was_silent=True)
        assert ways.by_datagram(LAB, 700) is None
        rest = next(rest for rest in range(0, 100_000, 600) if ways.wants_ticket(LAB, now + rest))
        rests.append(rest)
        now += rest
        ways.offered(LAB, WAY)
    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert rests[-1] == LONGEST_REST_S
    ways.answered(LAB, b"12345678")
    ways.taken_by_https(LAB, now, was_silent=True)
    assert ways.wants_ticket(LAB, now + FIRST_REST_S)


def test_a_tracker_that_answers_neither_way_is_asked_by_datagram_again() -> None:
    ways = offered()  # nothing was told to it: HTTPS failed as well
    assert ways.by_datagram(LAB, 700) == WAY


def test_after_a_no_https_is_the_way_until_it_takes_a_row() -> None:
    ways = offered()
    ways.refused(LAB)
    assert ways.by_datagram(LAB, 700) is None
    ways.taken_by_https(LAB, NOW, was_silent=False)
    assert ways.by_datagram(LAB, 700) == WAY


def test_a_clock_that_was_put_back_ends_a_rest() -> None:
    ways = offered()
    ways.taken_by_https(LAB, NOW, was_silent=True)
    assert ways.wants_ticket(LAB, NOW - 30 * 86_400)


def test_trackers_that_are_forgotten_are_forgotten_here() -> None:
    ways = offered()
    ways.keep_only([LAB])
    assert ways.by_datagram(LAB, 700) == WAY
    ways.keep_only([])
    assert ways.by_datagram(LAB, 700) is None
