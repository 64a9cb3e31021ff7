from __future__ import annotations

import pytest

from axonp2p.errors import SettingsError
from axonp2p.wheels.bundled import BundledWheel
from peer_daemon.wheels.wheel_policy import KeptWheels, WheelPolicy, read_list

GULL = BundledWheel("a" * 64, "Gull-1.0-py3-none-any.whl", 10)


def test_the_owner_takes_any_none_or_what_is_listed() -> None:
    assert WheelPolicy("any").why_not(GULL) == ""
    assert WheelPolicy("none").why_not(GULL) == "this peer takes no packages"
    assert WheelPolicy("listed").why_not(GULL) == "the owner of this peer has not listed gull 1.0"
    assert WheelPolicy("listed", read_list("# ours\nGull==1.0  # a bird\n\n")).why_not(GULL) == ""
    assert WheelPolicy("listed", read_list(f"sha256:{'a' * 64}")).why_not(GULL) == ""
    assert WheelPolicy("listed", read_list("gull==1.1\nsha256:" + "b" * 64)).why_not(GULL)


@pytest.mark.parametrize("entry", ["gull", "gull>=1.0", "sha256:abc", "gull==1.0 tern==2"])
def test_a_line_that_names_no_wheel_is_told_with_its_number(entry: str) -> None:
    with pytest.raises(SettingsError, match=r"wheels\.txt, line 2: "):
        read_list(f"tern==1\n{entry}\n")


def test_the_wheels_used_least_recently_go_and_never_those_in_use() -> None:
    kept = KeptWheels(most_bytes=100)
    for name in ("a", "b", "c"):
        kept.put(name, 50)
    kept.put("a", 50)
    assert kept.going() == ["b"]
    kept.put("d", 100)
    assert kept.going(stay={"d", "c"}) == ["a"]
    assert kept.size("a") is None
    assert kept.size("c") == 50
