"""Which packages are resolved for whom, and who cannot have them."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.client.packages.plan import PackagePlan, PlannedWheel, WheelSet, sets_to_resolve
from axonp2p.peers.capability import Capability
from axonp2p.wheels.platforms import read_platform

DEBIAN, UBUNTU, PI = "cp311-manylinux_2_36_x86_64", "cp311-manylinux_2_35_x86_64", "cp311-manylinux_2_36_aarch64"
OURS = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
WHEEL = PlannedWheel(file="gull-1.0-py3-none-any.whl", sha256="a" * 64, size=10)
PLAN = PackagePlan(install=["gull>=1"], sets=[WheelSet(platform=UBUNTU, given={"numpy": "2.4.6"}, wheels=[WHEEL])])


def offer(platform: str = DEBIAN, packages: dict[str, str] | None = None, **more: Any) -> Capability:
    takes = {"platform": platform, "wheels": "any"} if platform else {}
    return Capability(
        cores=1, memory_mb=1, disk_mb=1, gflops=1, slots=1, free=1, python="3.11.2",
        packages=OURS if packages is None else packages, kinds=["train"], **takes, **more,
    )  # fmt: skip


def test_peers_of_one_kind_get_one_set_that_runs_on_the_oldest() -> None:
    (one,) = sets_to_resolve([offer(DEBIAN), offer(UBUNTU)], ["gull"], None)
    assert one.platform == UBUNTU
    assert one.given == OURS


def test_the_most_frequent_kinds_come_first_and_few_are_resolved() -> None:
    others = [f"cp3{minor}-manylinux_2_36_x86_64" for minor in (12, 13, 14)]
    found = sets_to_resolve([offer(one) for one in (*others, PI, PI, DEBIAN)], ["gull"], None)
    assert len(found) == 3
    assert found[0].platform == PI


def test_only_what_all_have_alike_is_given_but_for_what_is_never_sent() -> None:
    older = {"torch": "2.12.0", "numpy": "2.4.6", "scipy": "1.0"}
    (one,) = sets_to_resolve([offer(), offer(), offer(packages=older)], ["gull"], None)
    assert one.given == OURS


@pytest.mark.parametrize("name", ["/home/ada/numpy", "x\n--no-binary :all:\n#", "../gull", "a b", ""])
def test_what_is_no_name_of_a_package_is_not_given(name: str) -> None:
    (one,) = sets_to_resolve([offer(packages={**OURS, name: "1.0"})], ["gull"], None)
    assert one.given == OURS


def test_who_has_all_takes_none_or_is_too_old_is_not_resolved_for() -> None:
    has = offer(packages={**OURS, "gull": "1.4"})
    old = offer("cp311-manylinux_2_17_x86_64")
    assert sets_to_resolve([has, offer(""), old], ["gull"], None) == []
    own = read_platform(PI)
    assert own is not None
    (one,) = sets_to_resolve([has, old], ["gull"], (own, OURS))
    assert (one.platform, one.given) == (PI, OURS)


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        (offer(), ""),
        (offer(""), "takes no packages"),
        (offer("", packages={"gull": "1.2"}), ""),
        (offer("", packages={"gull": "0.9"}), "takes no packages"),
        (offer(PI), "runs Python 3.11 on aarch64 with glibc 2.36, for which no packages were resolved"),
        (
            offer("cp311-manylinux_2_31_x86_64"),
            "runs Python 3.11 on x86_64 with glibc 2.31, for which no packages were resolved",
        ),
        (offer(packages={"torch": "2.13.0"}), "has no numpy, and the packages need 2.4.6"),
        (offer(packages={"numpy": "1.26.0"}), "has numpy 1.26.0, and the packages need 2.4.6"),
        (offer(packages={"numpy": "2.4.6", "torch": "1.0"}), ""),
    ],
)
def test_who_cannot_have_them_is_told_why(peer: Capability, why: str) -> None:
    assert PLAN.why_not(peer) == why


def test_who_has_all_that_was_asked_for_is_sent_nothing() -> None:
    assert PLAN.for_offer(offer(packages={"gull": "1.2"})) is None
    assert PLAN.for_offer(offer()) is PLAN.sets[0]
    assert PLAN.for_offer(offer(PI)) is None
