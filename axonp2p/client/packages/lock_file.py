"""A pylock.toml (PEP 751): which wheels of it a platform gets. Pure but for the reading of the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from packaging.markers import Environment
from packaging.pylock import (
    PackageWheel,
    Pylock,
    PylockSelectError,
    PylockUnsupportedVersionError,
    PylockValidationError,
)

from axonp2p.errors import PackagesWrong
from axonp2p.jobs.packages_of_peers import OF_THE_PEER, never_travels
from axonp2p.wheels.platforms import Platform

LOCK_LIMIT = 16 * 2**20


def read_lock(path: Path) -> Pylock:
    """Raises `PackagesWrong`."""
    try:
        with path.open("rb") as file:
            content = file.read(LOCK_LIMIT + 1)
        if len(content) > LOCK_LIMIT:
            raise ValueError(f"more than {LOCK_LIMIT} bytes")
        return Pylock.from_dict(tomllib.loads(content.decode()))
    except (OSError, ValueError, PylockValidationError, PylockUnsupportedVersionError) as error:
        raise PackagesWrong(
            f"{path.name} is no lock file: {error}", fix="uv export --format pylock.toml, or pip lock, writes one"
        ) from error


def locked_wheels(lock: Pylock, target: Platform, given: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Lines of a requirements file, each with the hash of its wheel, and the peers' packages that the lock names.

    `given` are the packages of the peers. Raises `PackagesWrong` for what is locked in another version than they have,
    for what has no wheel for `target`, and for one without a SHA-256.
    """
    lines, used = [], []
    try:
        chosen = list(lock.select(environment=cast("Environment", target.markers), tags=target.tags))
    except PylockSelectError as error:
        raise PackagesWrong(
            f"the lock has nothing for {target.title}: {error}", fix="lock for that platform"
        ) from error
    for package, source in chosen:
        name, version = str(package.name), str(package.version or "")
        if name in given and _same(given[name], version):
            used.append(name)
            continue
        if name in OF_THE_PEER:
            raise PackagesWrong(
                f"the lock has {name} {version}, and peers have {given.get(name, 'none')}; it is never sent",
                fix=f"lock {name}=={_public(given.get(name, version))}",
            )
        if never_travels(name):
            continue  # a part of torch, which brings its own
        if not isinstance(source, PackageWheel):
            raise PackagesWrong(
                f"the lock has no wheel of {name} {version} for {target.title}", fix="lock one that has"
            )
        sha256 = source.hashes.get("sha256")
        if not sha256 or not source.url:
            raise PackagesWrong(f"the lock has no address or no SHA-256 for {source.filename}", fix="lock it again")
        lines.append(f"{name} @ {source.url} --hash=sha256:{sha256}")
    return lines, used


def _same(has: str, wanted: str) -> bool:
    """The local part, such as `+cpu`, says how it was built."""
    return not wanted or _public(has) == _public(wanted)


def _public(version: str) -> str:
    return version.partition("+")[0]
