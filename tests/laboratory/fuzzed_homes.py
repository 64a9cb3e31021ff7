"""A client's home with one file broken: whatever reads it answers all the same, or ends in an error of the family."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path

from tests.laboratory.fuzzed_world import HANG_S, TROUBLE, Found, World
from tests.system.small_job import write_job

BUG_EXIT = 70
_ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    2**70,
    1e400,
    -0.0,
    "",
    "\0",
    "x" * 10_000,
    "\ud800",
    [],
    {},
    [[]] * 99,
    {"a": {"a": 1}},
)


def break_a_file(chance: random.Random, home: Path) -> str:
    """One file in there is not what it was; which."""
    files = [one for one in home.rglob("*") if one.is_file() and 0 < one.stat().st_size < 2**20]
    file = chance.choice(sorted(files))
    file.write_bytes(_broken(chance, file.read_bytes()))
    return str(file.relative_to(home))


def _broken(chance: random.Random, data: bytes) -> bytes:
    kind = chance.randrange(7)
    if kind == 0:
        place = chance.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    if kind == 1:
        return data[: chance.randrange(len(data))]
    if kind == 2:
        return chance.choice((chance.randbytes(200), bytes(200), b"\xef\xbb\xbf" + data, data + data))
    if kind == 3:
        return b'{"a":' + b"[" * 50_000
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    try:
        lines[place] = json.dumps(_changed(chance, json.loads(lines[place]))).encode()
        return b"\n".join(lines)
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(_changed(chance, json.loads(data))).encode()
    except (ValueError, RecursionError):
        return b"\n".join([*lines[:place], *lines[place + 1 :]])


def _changed(chance: random.Random, plain: object) -> object:
    if isinstance(plain, dict) and plain:
        key = chance.choice(list(plain))
        return {**plain, key: _changed(chance, plain[key])}
    if isinstance(plain, list) and plain:
        place = chance.randrange(len(plain))
        return [*plain[:place], _changed(chance, plain[place]), *plain[place + 1 :]]
    return chance.choice(_ODD)


def axon(world: World, found: Found, words: list[str], home: Path, why: str, within_s: float = 3 * HANG_S) -> str:
    """Run one command of `axon`; what it said."""
    found.inputs += 1
    code, said = world.axon([*words, "--home", str(home)], within_s)
    shown = f"axon {' '.join(words)} ({why}): {said[-1500:]}"
    if code is None:
        found.hangs += 1
        found.crashes.append(f"hang: {shown}")
    elif code == BUG_EXIT or code < 0 or TROUBLE.search(said):
        found.crashes.append(shown)
    return said


def host_a_job(world: World) -> None:
    """The tracker carries one on, so that its home has all that a host's home has."""
    home = world.base / "hosting client"
    if not home.exists():
        folder = write_job(world.base / "hosted line", peers=1, rounds=2)
        words = ["submit", str(folder), "--detach", "--tracker", world.processes.tracker, "--home", str(home)]
        world.axon(words, 6 * HANG_S)


async def feed_client_homes(world: World, found: Found) -> None:
    """The home of a client that had a job done, and one command."""
    await asyncio.to_thread(_try_client_home, world, found)


def _try_client_home(world: World, found: Found) -> None:
    home, copy = world.base / "client", world.base / "broken client"
    tracker = world.processes.tracker
    if not home.exists():
        folder = write_job(world.base / "line", peers=1, rounds=2)
        axon(world, found, ["submit", str(folder), "--tracker", tracker], home, "whole", 120)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("*.sock", "lock"))
    jobs = sorted(one.name for one in (home / "jobs").iterdir() if one.is_dir())
    broken = break_a_file(world.chance, copy)
    commands = [["jobs"], ["trust"], ["doctor", "--tracker", tracker], ["credits", "--tracker", tracker]]
    for job in jobs:
        commands += [["status", job], ["report", job], ["verdict", job], ["watch", job], ["fetch", job]]
    for words in world.chance.sample(commands, 2):
        axon(world, found, words, copy, f"{broken} broken")
