"""A line that is measured from what the kernel counts, in simulated time."""

from __future__ import annotations

import pytest

from axonp2p.jobs.messages import LineMeasured
from axonp2p.transport.flow.tcp_state import TcpState
from peer_daemon.links.line_meter import LineMeter
from peer_daemon.links.line_watch import worth_telling

MB = 1_000_000


class Links:
    """Some links, and the meter that is asked every 50 ms."""

    def __init__(self, count: int, round_trip: float = 0.01) -> None:
        self.meter = LineMeter()
        self.round_trip = round_trip
        self.counts = {number: [0, 0, 0.0] for number in range(count)}
        self.now = 100.0
        self.step()

    def step(self, up: int = 0, down: int = 0, busy: float = 0.0) -> None:
        """Each link sends and receives so many bytes in the next 50 ms, busy for so long."""
        self.now += 0.05
        for counts in self.counts.values():
            counts[0] += up
            counts[1] += down
            counts[2] += busy
        states = {
            number: TcpState(acked, received, busy, self.round_trip)
            for number, (acked, received, busy) in self.counts.items()
        }
        self.meter.heard(states, self.now)

    def go_on(self, steps: int, **step: float) -> None:
        for _ in range(steps):
            self.step(**step)  # type: ignore[arg-type]


def test_all_links_together_are_the_upload():
    links = Links(3)
    links.go_on(40, up=50_000, busy=0.05)
    assert links.meter.upload == pytest.approx(3 * MB, rel=0.01)


def test_idle_time_counts_for_nothing():
    links = Links(2)
    for _ in range(40):
        links.step(up=50_000, busy=0.025)
        links.go_on(10)
    assert links.meter.upload == pytest.approx(4 * MB, rel=0.01)
    assert not links.meter.moving


def test_the_slow_beginning_of_a_transfer_is_not_taken_for_the_line():
    links = Links(1)
    links.go_on(20, up=60_000, busy=0.05)
    links.go_on(60, up=500_000, busy=0.05)
    assert links.meter.upload == pytest.approx(10 * MB, rel=0.01)


def test_a_line_that_became_slower_is_noticed():
    links = Links(1)
    links.go_on(40, up=500_000, busy=0.05)
    links.go_on(400, up=50_000, busy=0.05)
    assert links.meter.upload == pytest.approx(1 * MB, rel=0.01)


def test_nothing_is_said_of_a_line_that_carried_little():
    links = Links(1)
    links.go_on(500, up=1000, down=1000, busy=0.001)
    assert links.meter.upload is None
    assert links.meter.download is None


def test_a_long_round_trip_needs_longer_to_be_measured():
    links = Links(1, round_trip=0.3)
    links.go_on(59, up=100_000, busy=0.05)
    assert links.meter.upload is None
    links.go_on(2, up=100_000, busy=0.05)
    assert links.meter.upload == pytest.approx(2 * MB, rel=0.01)


def test_download_is_measured_only_where_data_kept_coming():
    links = Links(2)
    for _ in range(4):
        links.step(down=1000)
        links.go_on(20, down=50_000)
        links.step(down=20_000)
        links.go_on(3)
    assert links.meter.download == pytest.approx(2 * MB, rel=0.01)


def test_a_link_that_is_new_or_replaced_does_not_count_what_it_had_before():
    links = Links(1)
    links.go_on(40, up=50_000, busy=0.05)
    links.counts[1] = [500 * MB, 500 * MB, 100.0]
    links.go_on(40, up=50_000, busy=0.05)
    del links.counts[0]
    links.go_on(40, up=50_000, busy=0.05)
    assert links.meter.upload == pytest.approx(2 * MB, rel=0.01)
    assert links.meter.download is None


@pytest.mark.parametrize(("upload", "download", "worth"), [(110, 110, False), (120, 100, True), (100, 80, True)])
def test_only_a_change_by_much_is_told(upload: int, download: int, worth: bool):
    assert worth_telling(None, LineMeasured(upload=upload, download=download))
    told = LineMeasured(upload=100, download=100)
    assert worth_telling(told, LineMeasured(upload=upload, download=download)) is worth
