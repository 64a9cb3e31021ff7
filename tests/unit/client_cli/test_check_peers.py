"""What `axon check` says of peers and of the packages that a job brings along."""

from __future__ import annotations

from axonp2p.client.packages.plan import PlannedWheel, WheelSet
from axonp2p.jobs.spec import NeedSpec
from client_cli.check_peers import PeersAsked, packages_text, peers_text

NEED = NeedSpec(peers=4, min_peers=2)


def test_peers_that_cannot_have_the_packages_are_named_with_their_reasons() -> None:
    asked = PeersAsked(3, "", 2, "1 wheel", {"wren": "takes no packages", "lynx": "lacks numpy==2.4.6"})
    assert peers_text(NEED, asked) == (
        "4 wanted, only 3 would take it now: it can start with fewer; wren takes no packages; lynx lacks numpy==2.4.6"
    )
    assert peers_text(NEED, PeersAsked(5, needed=2)) == "4 wanted, 5 would take it now"
    assert PeersAsked(1, "", 2, "", {"wren": "takes no packages"}).too_few


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
