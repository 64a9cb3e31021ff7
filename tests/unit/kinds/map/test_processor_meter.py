"""Processor seconds that peers claim, and those that their cores can have had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.kinds.map.processor_meter import ProcessorMeter

SECONDS = st.floats(0, 1000)


@given(
    claims=st.lists(st.tuples(SECONDS, st.floats(0, 1e9), SECONDS, st.booleans()), max_size=40), cores=st.integers(1, 8)
)
def test_a_peer_is_never_granted_more_than_its_cores_had_since_it_came(
    claims: list[tuple[float, float, float, bool]], cores: int
) -> None:
    meter, now, granted = ProcessorMeter(cores), 0.0, 0.0
    meter.busy(0, 0.0)
    for later, claimed, age, idle in claims:
        now += later
        granted += meter.granted(0, claimed, now - age, now)
        assert granted <= cores * now + 1e-6
        if idle:
            meter.idle(0)
            meter.busy(0, now)


def test_an_honest_peer_is_granted_all_that_it_did() -> None:
    meter = ProcessorMeter(4)
    meter.busy(0, 0.0)
    short = [meter.granted(0, 1.0, second, second + 1.0) for second in range(99) for _ in range(3)]
    assert short == pytest.approx([1.0] * len(short))
    assert meter.granted(0, 99.0, 0.0, 99.0) == pytest.approx(99.0), "a long call beside short ones"
    assert meter.granted(1, 5.0, 3.0, 3.0) == 0.0, "nobody knows of anything that it has had"


def test_time_without_work_is_not_kept_for_later() -> None:
    meter = ProcessorMeter(1)
    meter.busy(0, 0.0)
    meter.idle(0)
    meter.busy(0, 100.0)
    assert meter.granted(0, 50.0, 100.0, 101.0) == 1.0
    assert meter.granted(0, 50.0, 100.0, 101.0) == 0.0
