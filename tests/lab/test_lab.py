"""The laboratory does to packets what it says. Rates and times are asked for loosely: other programs run here too."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import kernel
from tests.lab.claim import FOLDER, Claim
from tests.lab.laboratory import Laboratory
from tests.lab.site import Host

PROBE = [sys.executable, str(Path(__file__).parent / "probe.py")]
PORT = 7000
FAST, SLOW, CONE, SYMMETRIC = range(4)

pytestmark = pytest.mark.skipif(bool(kernel.why_not()), reason=kernel.why_not() or "-")


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    """Two hosts with an address of their own, and two behind routers; an echo on each."""
    hosts = [Host(), Host(up=8, down=24), Host(nat="cone"), Host(up=8, nat="symmetric")]
    with Laboratory(hosts, lambda one, other: 30 if (one, other) == (FAST, SLOW) else 10) as lab:
        for host in range(len(hosts)):
            assert lab.start(host, *PROBE, "echo", str(PORT)).readline() == "ready\n"
        yield lab


def knock(lab: Laboratory, host: int, *at: int, count: int = 5) -> dict[str, Any]:
    addresses = ",".join(lab.address(other) for other in at)
    found: dict[str, Any] = json.loads(lab.run(host, *PROBE, "knock", addresses, str(PORT), str(count)))
    return found


def pour(lab: Laboratory, host: int, into: int, kilobytes: int = 64) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        lab.run(host, *PROBE, "pour", lab.address(into), str(PORT), str(kilobytes * 1024))
    )
    return told


def test_round_trips_take_what_was_asked_for(lab: Laboratory) -> None:
    assert 29 < knock(lab, FAST, SLOW)["rtt_ms"] < 45
    assert 9 < knock(lab, CONE, SLOW)["rtt_ms"] < 25
    lab.set_rtt(FAST, SLOW, 90)
    assert 89 < knock(lab, FAST, SLOW)["rtt_ms"] < 105
    lab.set_rtt(FAST, SLOW, 30)


def test_a_line_is_as_fast_as_it_was_made_each_way(lab: Laboratory) -> None:
    before = lab.traffic(SLOW)
    assert 5 < pour(lab, SLOW, FAST, 2048)["mbit"] < 9
    assert 15 < pour(lab, FAST, SLOW, 4096)["mbit"] < 27
    after = lab.traffic(SLOW)
    assert 2.0 < (after.sent - before.sent) / 2**20 < 2.6
    assert 4.0 < (after.received - before.received) / 2**20 < 4.8
    lab.set_rates(SLOW, up=2, down=24)
    assert 1.2 < pour(lab, SLOW, FAST, 512)["mbit"] < 2.4
    lab.set_rates(SLOW, up=None, down=None)
    assert pour(lab, SLOW, FAST, 4096)["mbit"] > 9
    lab.set_rates(SLOW, up=8, down=24)


def test_a_router_hides_who_is_behind_it(lab: Laboratory) -> None:
    assert pour(lab, CONE, FAST)["address"] == lab.address(CONE)
    assert 5 < pour(lab, SYMMETRIC, FAST, 2048)["mbit"] < 9
    assert "refused" in pour(lab, FAST, CONE)
    assert knock(lab, FAST, SYMMETRIC, count=1)["answered"] == 0


def test_a_cone_keeps_its_port_for_all_and_a_symmetric_router_takes_one_for_each(lab: Laboratory) -> None:
    assert len(knock(lab, CONE, FAST, SLOW)["ports"]) == 1
    assert len(knock(lab, SYMMETRIC, FAST, SLOW)["ports"]) == 2


def test_two_hosts_are_cut_apart_and_a_third_reaches_both(lab: Laboratory) -> None:
    lab.cut(FAST, SLOW)
    assert knock(lab, FAST, SLOW, count=2)["answered"] == 0
    assert knock(lab, CONE, FAST, SLOW, count=2)["answered"] == 4
    lab.mend(FAST, SLOW)
    assert knock(lab, FAST, SLOW, count=2)["answered"] == 2


def test_a_cut_of_one_way_loses_what_goes_that_way(lab: Laboratory) -> None:
    before = lab.traffic(SLOW)
    lab.cut(SLOW, FAST, one_way=True)
    assert knock(lab, FAST, SLOW, count=3)["answered"] == 0
    after = lab.traffic(SLOW)
    assert after.received > before.received, "the questions came"
    assert after.sent > before.sent, "the answers went"
    lab.mend(SLOW, FAST)


def test_a_network_falls_into_parts_and_heals(lab: Laboratory) -> None:
    lab.partition([FAST, CONE], [SLOW, SYMMETRIC])
    assert knock(lab, CONE, FAST, count=2)["answered"] == 2
    assert knock(lab, SYMMETRIC, SLOW, count=2)["answered"] == 2
    assert knock(lab, CONE, SLOW, count=2)["answered"] == 0
    lab.heal()
    assert knock(lab, CONE, SLOW, count=2)["answered"] == 2


def test_a_lossy_line_loses_a_share_of_its_packets(lab: Laboratory) -> None:
    lab.lose(SLOW, 1.0)
    assert knock(lab, FAST, SLOW, count=3)["answered"] == 0
    lab.lose(SLOW, 0.05)
    assert pour(lab, FAST, SLOW, 256)["bytes"] == 256 * 1024, "a stream gets through all the same"
    lab.lose(SLOW, 0.0)


def test_a_line_that_was_pulled_out_is_as_before_when_it_is_back(lab: Laboratory) -> None:
    lab.unplug(SLOW)
    assert knock(lab, FAST, SLOW, count=2)["answered"] == 0
    assert "refused" in pour(lab, SLOW, FAST), "its own kernel knows"
    lab.plug(SLOW)
    assert knock(lab, FAST, SLOW, count=2)["answered"] == 2
    assert 5 < pour(lab, SLOW, FAST, 1024)["mbit"] < 9


def test_what_a_dead_run_left_behind_is_removed_by_the_next_one(lab: Laboratory, tmp_path: Path) -> None:
    (tmp_path / "axonlab-dead").touch()
    kernel.run("ip", "netns", "add", "axonlab-dead-0-host")
    alive = Claim(tmp_path)
    kernel.run("ip", "netns", "add", f"{alive.name}-0-host")
    Claim(tmp_path).give_up()
    left = kernel.namespaces()
    assert "axonlab-dead-0-host" not in left
    assert f"{alive.name}-0-host" in left, "its run lives"
    assert lab.namespace(FAST) in left
    assert (FOLDER / lab.namespace(FAST).rsplit("-", 2)[0]).exists()
    alive.give_up()
    assert f"{alive.name}-0-host" not in kernel.namespaces()
