"""Who would take a job now, and why the others would not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from axonp2p.client.packages.plan import PlannedWheel, WheelSet
from axonp2p.client.queries import PeerState, SeenPeer, Survey
from axonp2p.jobs.spec import NeedSpec
from axonp2p.peers.capability import Capability, Need
from axonp2p.table.sightings import DHT, SourceAnswer
from client_cli.check_peers import PeersAsked, common_facts, packages_text, tally, why_nobody_was_asked

OFFER = Capability(
    cores=2, memory_mb=2000, disk_mb=9000, gflops=40, slots=1, free=1, python="3.11.2", packages={}, kinds=["train"]
)


def seen(
    name: str, trust: str = "new", rtt_s: float | None = 0.01, other_version: str = "", **offer: object
) -> SeenPeer:
    offered = msgspec.structs.replace(OFFER, **offer)
    return SeenPeer(name, name, (), offered, rtt_s, trust=trust, other_version=other_version)


OTTER, HERON, LYNX = seen("otter"), seen("heron", free=0), seen("lynx", cores=1)


def test_all_peers_are_counted_once() -> None:
    need = Need(cores=2)
    asked = tally(NeedSpec(min_peers=2), need, [OTTER], [HERON, LYNX, OTTER])
    assert (asked.found, asked.names) == (1, ("otter",))
    assert asked.refusing == Counter({"every slot is taken": 1, "lends 1 of the 2 cores needed": 1})
    assert asked.too_few


def test_who_was_convicted_is_not_hired_and_who_is_new_to_the_tracker_does_not_fit() -> None:
    asked = tally(NeedSpec(), Need(uptime_s=60), [seen("wren", "convicted"), OTTER], [OTTER, seen("newt")])
    assert asked.names == ("otter",)
    assert asked.refusing == Counter(
        {"convicted of false work, in an earlier job of yours": 1, "not known for long enough (uptime)": 1}
    )


def test_who_is_too_far_silent_or_of_another_version_is_not_hired() -> None:
    older = "runs another version of Axon (its messages are 0123456789abcdef, ours fedcba9876543210)"
    silent = replace(seen("silent", rtt_s=None), state=PeerState.SILENT)
    far, guessed = seen("far", rtt_s=0.3), replace(seen("guessed", rtt_s=None), estimate_s=0.4)
    fitting = [OTTER, seen("not measured", rtt_s=None), far, guessed, silent, seen("old", other_version=older)]
    asked = tally(NeedSpec(max_rtt=250), Need(), fitting, [*fitting, HERON])
    assert asked.names == ("otter", "not measured")
    assert asked.refusing == Counter(
        {"too far (max-rtt 250 ms)": 2, "unreachable": 1, older: 1, "every slot is taken": 1}
    )


@pytest.mark.parametrize(
    ("refusing", "said"),
    [
        ({"lacks numpy": 3}, "lacks numpy (3)"),
        ({"lends 1 of the 2 cores needed": 1}, "lends 1 of the 2 cores needed (1)"),
        (
            {"has no data called faces": 2, "does not take run jobs": 2},
            "has no data called faces (2), does not take run jobs (2)",
        ),
        ({"every slot is taken": 2}, "every slot is taken (2)"),
    ],
)
def test_why_others_do_not_take_it(refusing: dict[str, int], said: str) -> None:
    assert common_facts(NeedSpec(), PeersAsked(0, refusing=Counter(refusing)))["not taken by"].startswith(said)


def test_a_gpu_that_nobody_lends_is_said_plainly() -> None:
    asked = tally(NeedSpec(gpu_memory=8192), Need(gpu_memory_mb=8192), [], [OTTER, seen("newt")])
    facts = common_facts(NeedSpec(gpu_memory=8192), asked)
    assert facts["gpu"].startswith("no peer that was seen lends one with 8192 MiB: without gpu-memory")
    assert facts["not taken by"] == "has no GPU with 8192 MiB (2)"
    assert not common_facts(NeedSpec(), asked)["gpu"]


def test_peers_that_cannot_have_the_packages_do_not_take_it() -> None:
    reasons = {"otter": "", "heron": "takes no packages"}
    asked = tally(
        NeedSpec(min_peers=2),
        Need(),
        [OTTER, seen("heron", cores=3)],
        [],
        lambda offer: reasons["otter" if offer.cores == 2 else "heron"],
    )
    assert (asked.names, asked.refusing) == (("otter",), Counter({"takes no packages": 1}))
    assert asked.too_few


def test_what_peers_of_each_platform_would_be_sent() -> None:
    wheels = [PlannedWheel(file=f"{name}-1.0-py3-none-any.whl", sha256="a" * 64, size=1_500_000) for name in "ab"]
    sets = [
        WheelSet(platform="cp311-manylinux_2_36_x86_64", wheels=wheels),
        WheelSet(platform="cp312-manylinux_2_36_aarch64", wheels=wheels[:1]),
    ]
    assert packages_text(sets) == (
        "2 wheels, 3.0 MB for cp311-manylinux_2_36_x86_64; 1 wheel, 1.5 MB for cp312-manylinux_2_36_aarch64"
    )
    assert packages_text([]) == ""


SILENT = SourceAnswer("tracker lab:7070", 1.0, trouble="connection refused")
NAMES = SourceAnswer(DHT, 0.1)


@pytest.mark.parametrize(
    ("peers", "answers", "silent", "why"),
    [
        ([OTTER], [SILENT, NAMES], {}, ""),
        ([], [SourceAnswer("tracker lab:7070", 0.1), NAMES], {"wren": "no address"}, ""),
        ([], [NAMES], {"wren": "no address"}, "no tracker is known, and no peer that the DHT names answers"),
        ([], [NAMES], {}, "no tracker is known, and the DHT names no peer"),
        ([], [SILENT, NAMES], {}, "no tracker answers, and the DHT names no peer"),
    ],
)
def test_a_dht_of_which_nobody_answers_is_no_swarm_with_too_few_peers(
    peers: list[SeenPeer], answers: list[SourceAnswer], silent: dict[str, str], why: str
) -> None:
    assert why_nobody_was_asked(Survey(peers, answers, silent)) == why
