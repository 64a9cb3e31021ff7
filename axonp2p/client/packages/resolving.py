"""From what job.toml asks for to wheels on this disk, for one platform: pip, or a lock file, and what may not be sent.

A package that the peers have themselves is shown to pip as a wheel without modules (`write_stand_in`), in the version
that they have: so pip chooses what goes together with it, and brings neither torch nor what torch needs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from axonp2p.client.packages.kept_choices import KeptChoice
from axonp2p.client.packages.lock_file import locked_wheels, read_lock
from axonp2p.client.packages.pip_download import download
from axonp2p.client.packages.plan import PlannedWheel, WheelSet, only_used
from axonp2p.client.packages.wheel_metadata import WheelMetadata, read_metadata, write_stand_in
from axonp2p.client.packages.wheel_store import WheelStore
from axonp2p.errors import AxonError, PackagesWrong, VersionsClash
from axonp2p.jobs.packages_of_peers import OF_THE_PEER, never_travels
from axonp2p.jobs.spec import PackagesSpec
from axonp2p.peers.capability import meets_requirement
from axonp2p.plain_text import bytes_text
from axonp2p.wheels.bundled import LONGEST_FILE_NAME, MOST_UNPACKED_BYTES, check_together, named
from axonp2p.wheels.platforms import Platform, own_platform, read_platform


def resolve(wanted: WheelSet, spec: PackagesSpec, folder: Path, store: WheelStore) -> WheelSet:
    """`wanted` with its wheels, which lie in `store` then; `folder` is the job's, with its lock file. Blocks.

    Raises `PackagesWrong` for what cannot be had or sent, `IndexUnreachable`.
    """
    kept = KeptChoice(store, wanted, spec, _lock_bytes(folder, spec))
    return kept.find() or _resolved_anew(wanted, spec, folder, store, kept)


def _resolved_anew(wanted: WheelSet, spec: PackagesSpec, folder: Path, store: WheelStore, kept: KeptChoice) -> WheelSet:
    target = read_platform(wanted.platform)
    assert target is not None
    with tempfile.TemporaryDirectory(prefix="axon-wheels-") as made:
        place = Path(made)
        (place / "in").mkdir()
        if spec.lock:
            used = _by_lock(target, wanted.given, folder / spec.lock, place)
        else:
            used = _by_pip(target, wanted.given, spec, place)
        files = sorted((place / "in").iterdir())
        found = {named(file.name)[0]: read_metadata(file) for file in files}
        _check(found, target, {*used, *wanted.given})
        try:
            wheels = [store.take(file) for file in files]
        except OSError as error:
            raise PackagesWrong(
                f"the wheels cannot be kept: {error}", fix="make room on this computer's disk"
            ) from error
        store.trim({wheel.sha256 for wheel in wheels})
    _check_size(wheels, found)
    chosen = WheelSet(platform=wanted.platform, given=only_used(wanted.given, used, spec.install), wheels=wheels)
    kept.keep(chosen)
    return chosen


def _lock_bytes(folder: Path, spec: PackagesSpec) -> bytes:
    try:
        return (folder / spec.lock).read_bytes() if spec.lock else b""
    except OSError:
        return b""  # `read_lock` says what is wrong with it


def _by_pip(target: Platform, given: Mapping[str, str], spec: PackagesSpec, place: Path) -> set[str]:
    """Which packages of the peers the wheels go together with."""
    free = {name: version for name, version in given.items() if not _asked_otherwise(name, version, spec)}
    must = {name: version for name, version in given.items() if name in OF_THE_PEER}
    try:
        return _download(target, free | must, spec, place)
    except VersionsClash:
        if free | must == must:
            raise
        # Then what peers happen to have alike is brought anew, beside what every worker has loaded.
        return _download(target, must, spec, place)


def _download(target: Platform, given: Mapping[str, str], spec: PackagesSpec, place: Path) -> set[str]:
    stand_ins = place / "given"
    stand_ins.mkdir(exist_ok=True)
    versions = {}
    for name, version in given.items():
        with suppress(InvalidVersion):  # what a peer says is not always one; then pip brings its own choice
            versions[name] = write_stand_in(stand_ins, name, version)
    constraints = place / "constraints.txt"
    constraints.write_text("".join(f"{name}==={version}\n" for name, version in versions.items()))
    words = ["--find-links", str(stand_ins), "--constraint", str(constraints), *spec.install]
    download(target, place / "in", words)
    used = set()
    for file in list((place / "in").iterdir()):
        name, version = named(file.name)
        if versions.get(name) == version:
            used.add(name)
            file.unlink()
    return used


def _by_lock(target: Platform, given: Mapping[str, str], lock: Path, place: Path) -> set[str]:
    lines, used = locked_wheels(read_lock(lock), target, given)
    if lines:
        wanted = place / "locked.txt"
        wanted.write_text("\n".join(lines))
        download(target, place / "in", ["--no-deps", "--require-hashes", "-r", str(wanted)])
    return set(used)


def _asked_otherwise(name: str, version: str, spec: PackagesSpec) -> bool:
    """Whether job.toml asks for another version of it than this one."""
    same = [text for text in spec.install if canonicalize_name(Requirement(text).name) == name]
    return any(not meets_requirement(text, version) for text in same)


def _check(found: Mapping[str, WheelMetadata], target: Platform, given: set[str]) -> None:
    """Raises `PackagesWrong` for a package that is never sent, and for one that is missing on the peers' platform."""
    for name in found:
        if never_travels(name):
            raise PackagesWrong(
                f"{name} is never sent: it is large, and peers have their own",
                cause="a package under [packages] needs it, and no peer that fits the job names it in its row",
                fix=f'packages = ["{name}"] under [need] asks for peers that have it',
            )
    own = own_platform()
    if own is not None and (own.python, own.machine) == (target.python, target.machine):
        return
    for name, metadata in found.items():
        for needed in metadata.needs(target.markers):
            if canonicalize_name(needed.name) not in {*found, *given}:
                raise PackagesWrong(
                    f"{name} needs {needed.name} on {target.title}",
                    cause="pip chose what it needs on this computer, which is another platform",
                    fix=f'add "{needed.name}{needed.specifier}" to install under [packages]',
                )


def _check_size(wheels: list[PlannedWheel], found: Mapping[str, WheelMetadata]) -> None:
    for wheel in wheels:
        if len(wheel.file) > LONGEST_FILE_NAME:
            raise PackagesWrong(f"the name of {wheel.file} is too long to travel", fix="bring another version of it")
    largest = max(wheels, key=lambda one: one.size, default=None)
    fix = f"bring fewer: the largest is {largest.file}, {bytes_text(largest.size)}" if largest else ""
    try:
        check_together([wheel.bundled for wheel in wheels])
    except AxonError as error:
        raise PackagesWrong(f"the packages are too many or too large: {error.message}", fix=fix) from error
    unpacked = sum(one.unpacked_bytes for one in found.values())
    if unpacked > MOST_UNPACKED_BYTES:
        limit = bytes_text(MOST_UNPACKED_BYTES)
        raise PackagesWrong(f"the packages unpack to {bytes_text(unpacked)}; a job may bring {limit}", fix=fix)
