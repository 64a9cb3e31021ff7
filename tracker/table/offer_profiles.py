"""The common parts of offers (pure): kinds of work, packages, data and GPUs, of which a swarm has few different sets.

A need's words are compared once with each set, and rows carry the number of theirs. Of packages only the different
versions are compared, so that a flood of invented sets costs an answer little; both are bounded. A row whose set is one
too many keeps its place and is found by all that has a measure; what it lists cannot be asked for. The comparisons for
a need are counted before any is made: strangers choose both the versions and what is asked of them.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgpack
import numpy as np
import numpy.typing as npt

from axonp2p.errors import Busy
from axonp2p.peers.capability import Capability, Gpu, Need, clauses_of, is_gpu_enough, meets_requirement, package_of

MOST_PROFILES = 16_384
MOST_VERSIONS = 1024
"""Of one package, or of GPUs, in all sets together."""
MOST_COMPARISONS = 8192
"""For one need, some 30 ms: three packages of which there are as many versions as can be, with two clauses each."""
PROFILES_OF_A_COMPARISON = 256
"""So many profiles that have a word are put together in the time of one comparison."""
_GPU = ("gpu", "")
NAME_BYTES = 16
_MOST_REMEMBERED = 64

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Profile:
    """The words in an offer."""

    kinds: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]
    datasets: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    """Each as `_gpu_text` has it."""

    @cached_property
    def name(self) -> bytes:
        """16 bytes of a hash: on disk a row names its profile by it."""
        words = [self.kinds, self.packages, self.datasets]
        packed = msgpack.packb([*words, self.gpus] if self.gpus else words)
        return hashlib.blake2b(packed, digest_size=NAME_BYTES).digest()


NOTHING = Profile((), (), ())


def profile_of(offer: Capability | None) -> Profile:
    """The words in this offer, in one order for all."""
    if offer is None:
        return NOTHING
    gpus = tuple(_gpu_text(gpu) for gpu in offer.gpus)
    return _profile(tuple(offer.kinds), tuple(offer.packages.items()), tuple(offer.datasets), gpus)


# A peer's words are the same in each of its rows, and in those of many others.
@lru_cache(maxsize=4096)
def _profile(
    kinds: tuple[str, ...], packages: tuple[tuple[str, str], ...], datasets: tuple[str, ...], gpus: tuple[str, ...]
) -> Profile:
    words = (tuple(sorted(set(kinds))), tuple(sorted(packages)), tuple(sorted(set(datasets))))
    return Profile(*words, tuple(sorted(set(gpus))))


def _gpu_text(gpu: Gpu) -> str:
    """The properties of a GPU that needs may ask for: "8192 9.0 free". Nobody asks a tracker for its driver or name."""
    return f"{gpu.memory_mb} {gpu.capability or ''} {'taken' if gpu.taken is True else 'free'}"


def _is_gpu_wanted(text: str, need: Need) -> bool:
    memory, capability, state = text.split(" ")
    if state == "taken" and not need.also_taken:
        return False
    return is_gpu_enough(int(memory), capability, need.gpu_memory_mb, need.gpu_capability)


def _asked(need: Need) -> tuple[object, ...]:
    """All of a need that profiles are compared with."""
    gpu = (need.gpu_memory_mb, need.gpu_capability, need.also_taken) if need.wants_gpu else None
    return need.kind, tuple(need.packages), tuple(need.datasets), gpu


class Profiles:
    """Numbers for profiles that rows hold, by name; one that no row holds any more is gone."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._profiles: list[Profile | None] = []
        self._holders: list[int] = []
        self._free: list[int] = []
        self._with: defaultdict[tuple[str, str], dict[str, set[int]]] = defaultdict(dict)
        self._masks: dict[tuple[object, ...], Mask] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def hold(self, profile: Profile) -> int:
        """The number of this profile, held by one more row."""
        number = self._numbers.get(profile.name)
        if number is None:
            profile = self._bounded(profile)
            number = self._numbers.get(profile.name)
        if number is None:
            number = self._add(profile)
        self._holders[number] += 1
        return number

    def release(self, number: int) -> None:
        """A row does not hold this profile any more."""
        self._holders[number] -= 1
        profile = self._profiles[number]
        if self._holders[number] or profile is None:
            return
        del self._numbers[profile.name]
        self._profiles[number] = None
        self._free.append(number)
        self._masks.clear()
        for what, version in _words(profile):
            versions = self._with[what]
            versions[version].discard(number)
            if not versions[version]:
                del versions[version]
            if not versions:
                del self._with[what]

    def comparisons(self, need: Need) -> int:
        """How many `meeting` may make for this need; none for one of the last that were asked.

        Raises `Busy` for more than `MOST_COMPARISONS`.
        """
        if _asked(need) in self._masks:
            return 0
        words = 1 + len(need.datasets) + need.wants_gpu + len(need.packages)
        found = words * len(self._numbers) // PROFILES_OF_A_COMPARISON
        found += len(self._with.get(_GPU, ())) * need.wants_gpu
        for text in need.packages:
            found += max(1, clauses_of(text)) * len(self._with.get(("package", package_of(text)), ()))
        if found > MOST_COMPARISONS:
            raise Busy(
                "the packages of this need have too many versions here to be compared",
                fix="ask for fewer packages, or for each with fewer clauses",
            )
        return found

    def meeting(self, need: Need) -> Mask:
        """For each number, whether that profile has the kind, packages, data and GPU of `need`."""
        asked = _asked(need)
        mask = self._masks.get(asked)
        if mask is None:
            mask = self._of({""}, ("kind", need.kind))
            for name in need.datasets:
                mask &= self._of({""}, ("data", name))
            if need.wants_gpu:
                known = self._with.get(_GPU, {})
                mask &= self._of({text for text in known if _is_gpu_wanted(text, need)}, _GPU)
            for text in need.packages:
                if not mask.any():
                    break
                what = ("package", package_of(text))
                versions = self._with.get(what, {})
                mask &= self._of({version for version in versions if meets_requirement(text, version)}, what)
            if len(self._masks) >= _MOST_REMEMBERED:
                self._masks.clear()
            self._masks[asked] = mask
        return mask

    def _of(self, versions: set[str], what: tuple[str, str]) -> Mask:
        mask = np.zeros(len(self._profiles), np.bool_)
        known = self._with.get(what, {})
        for version in versions & known.keys():
            mask[list(known[version])] = True
        return mask

    def _bounded(self, profile: Profile) -> Profile:
        if len(self._numbers) >= MOST_PROFILES:
            # The few kinds are worth more than the many packages; the last profile of all is empty.
            alone = Profile(profile.kinds, (), ())
            return alone if alone.name in self._numbers else NOTHING
        known = tuple(pair for pair in profile.packages if self._has_room(("package", pair[0]), pair[1]))
        gpus = tuple(text for text in profile.gpus if self._has_room(_GPU, text))
        return Profile(profile.kinds, known, profile.datasets, gpus)

    def _has_room(self, what: tuple[str, str], version: str) -> bool:
        versions = self._with.get(what, {})
        return version in versions or len(versions) < MOST_VERSIONS

    def _add(self, profile: Profile) -> int:
        if self._free:
            number = self._free.pop()
            self._profiles[number] = profile
        else:
            number = len(self._profiles)
            self._profiles.append(profile)
            self._holders.append(0)
        self._numbers[profile.name] = number
        self._masks.clear()
        for what, version in _words(profile):
            self._with[what].setdefault(version, set()).add(number)
        return number


def _words(profile: Profile) -> list[tuple[tuple[str, str], str]]:
    words = [(("kind", kind), "") for kind in profile.kinds]
    words += [(("data", name), "") for name in profile.datasets]
    words += [(_GPU, text) for text in profile.gpus]
    return words + [(("package", package), version) for package, version in profile.packages]
