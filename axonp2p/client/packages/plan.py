"""Which packages go to which peer: one set of wheels a platform, and why a peer gets none. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, is_normalized_name

from axonp2p.jobs.packages_of_peers import OF_THE_PEER
from axonp2p.peers.capability import Capability, meets_requirement
from axonp2p.wheels.bundled import LONGEST_FILE_NAME, MOST_WHEELS, BundledWheel
from axonp2p.wheels.platforms import OLDEST_GLIBC, Platform, read_platform
from axonp2p.wire.quantities import Count

MOST_PLATFORMS = 3
"""Platforms for which the packages of one job are resolved."""

ShortText = Annotated[str, msgspec.Meta(max_length=200)]
PLAN_FILE = "plan.json"
"""The plan beside the wheels of a bundle that goes to a host: a wheels.json by another name."""


class PlannedWheel(msgspec.Struct, frozen=True, kw_only=True):
    """One wheel, in wheels.json. At a host another computer wrote it, and its names lead to files."""

    file: Annotated[str, msgspec.Meta(pattern=rf"^[^/\x00]{{1,{LONGEST_FILE_NAME}}}\.whl\Z")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    size: Count

    @property
    def bundled(self) -> BundledWheel:
        """As it lies in a bundle."""
        return BundledWheel(self.sha256, self.file, self.size)


class WheelSet(msgspec.Struct, frozen=True, kw_only=True):
    """The wheels that peers of one platform are sent."""

    platform: ShortText
    """The oldest on which all of its wheels run."""
    given: dict[ShortText, ShortText] = {}
    """Packages that come with the peer, with the version that the wheels were resolved for."""
    wheels: Annotated[list[PlannedWheel], msgspec.Meta(max_length=MOST_WHEELS)] = []

    @property
    def size(self) -> int:
        """Bytes of all wheels."""
        return sum(wheel.size for wheel in self.wheels)

    def why_not(self, offer: Capability) -> str:
        """Why a peer of this platform cannot take it; empty when it can."""
        for name, version in self.given.items():
            if offer.packages.get(name) != version:
                has = offer.packages.get(name)
                return f"has {f'{name} {has}' if has else f'no {name}'}, and the packages need {version}"
        return ""


class PackagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of wheels.json: what was resolved when the job began."""

    install: Annotated[list[ShortText], msgspec.Meta(max_length=MOST_WHEELS)] = []
    """The packages that job.toml asked for; empty with a lock."""
    sets: Annotated[list[WheelSet], msgspec.Meta(max_length=MOST_PLATFORMS)] = []

    def for_offer(self, offer: Capability) -> WheelSet | None:
        """The set that the peer of this offer is sent; None: nothing, it has all that job.toml asked for."""
        return None if has_all(offer, self.install) else self._set_for(offer)

    def why_not(self, offer: Capability) -> str:
        """Why a peer cannot have the packages; empty when it can."""
        if has_all(offer, self.install):
            return ""
        platform = platform_of(offer)
        if platform is None:
            return "takes no packages"
        found = self._set_for(offer)
        return found.why_not(offer) if found else f"runs {platform.title}, for which no packages were resolved"

    def _set_for(self, offer: Capability) -> WheelSet | None:
        platform = platform_of(offer)
        for one in self.sets:
            made_for = read_platform(one.platform)
            if platform and made_for and platform.runs_wheels_of(made_for):
                return one
        return None


def has_all(offer: Capability, install: Sequence[str]) -> bool:
    """Whether the peer has every one of these requirements itself, extras aside."""
    return bool(install) and all(
        not Requirement(text).extras
        and meets_requirement(text, offer.packages.get(canonicalize_name(Requirement(text).name)))
        for text in install
    )


def platform_of(offer: Capability) -> Platform | None:
    """The platform of a peer that takes packages."""
    return read_platform(offer.platform) if isinstance(offer.platform, str) else None


def sets_to_resolve(
    offers: Iterable[Capability], install: Sequence[str], own: tuple[Platform, dict[str, str]] | None
) -> list[WheelSet]:
    """For which platforms to resolve, the most frequent first, each without its wheels yet.

    `own` is this computer's platform and packages: what is resolved for while there is nobody else to go by.
    """
    by_kind: defaultdict[tuple[object, ...], list[tuple[Platform, dict[str, str]]]] = defaultdict(list)
    for offer in offers:
        platform = platform_of(offer)
        if platform is None or has_all(offer, install):
            continue
        if platform.libc == "many" and platform.libc_minor < OLDEST_GLIBC:
            continue
        kind = (platform.python, platform.libc, platform.libc_major, platform.machine)
        by_kind[kind].append((platform, offer.packages))
    if not by_kind and own is not None:
        by_kind[()].append(own)
    frequent = sorted(by_kind.values(), key=len, reverse=True)[:MOST_PLATFORMS]
    return [
        WheelSet(platform=str(min(platform for platform, _ in peers)), given=_given([has for _, has in peers]))
        for peers in frequent
    ]


def _given(packages: Sequence[dict[str, str]]) -> dict[str, str]:
    """The packages that all of these peers have alike; of those never sent, the ones that most of them have."""
    alike = set.intersection(*(set(one.items()) for one in packages))
    # A row may have any text for a name, and these become names of files and lines that pip reads.
    given = {name: version for name, version in sorted(alike) if is_normalized_name(name)}
    for name in OF_THE_PEER:
        versions = Counter(one[name] for one in packages if name in one)
        if versions:
            given[name] = versions.most_common(1)[0][0]
    return given


def only_used(given: dict[str, str], used: Iterable[str], install: Sequence[str]) -> dict[str, str]:
    """Of the packages of the peers those that the wheels, or job.toml, name: only these have to be what they were."""
    named = {canonicalize_name(Requirement(text).name) for text in install}
    return {name: version for name, version in given.items() if name in used or name in named}
