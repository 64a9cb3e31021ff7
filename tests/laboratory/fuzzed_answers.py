"""Real askers among liars: a tracker, a peer and a client whose words are nearly right (`nearly_right`)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.laboratory.fuzzed_homes import axon
from tests.laboratory.fuzzed_world import TROUBLE, Found, World
from tests.system.processes import QUIET
from tests.system.small_job import write_job

ASKERS = ("asker", "follower")
JOB_S = 120.0
"""As long as a small job may take among liars: it gives them up, or itself."""


async def feed_answers(world: World, found: Found) -> None:
    """One command of an honest client, or one job of a liar; what the askers have said meanwhile."""
    await asyncio.to_thread(_ask, world, found)


def _ask(world: World, found: Found) -> None:
    if "liar" not in world.processes.trackers:
        _begin(world)
    liar, chance = world.processes.trackers["liar"], world.chance
    said = {name: len(world.processes.output(name)) for name in (*ASKERS, "peer", "tracker")}
    what = chance.randrange(8)
    if what == 0:
        job = write_job(world.base / f"line {found.inputs}", peers=2, rounds=3, least=1)
        words = ["submit", str(job), "--tracker", liar]
        words += ["--detach"] if chance.random() < 0.5 else ["--tracker", world.processes.tracker]
        axon(world, found, words, world.base / "honest client", "among liars", JOB_S)
    elif what == 1:
        found.inputs += 1
        job = write_job(world.base / f"line {found.inputs}", peers=2, rounds=3, least=1)
        _lying_client(world, job)
    else:
        words = chance.choice((["peers"], ["credits"], ["doctor"], ["jobs", "--hosted"]))
        axon(world, found, [*words, "--tracker", liar], world.base / "honest client", "of a lying tracker")
    for name, start in said.items():
        words_of = world.processes.output(name)[start:]
        found.crashes += [f"{name}: {words_of[max(0, one.start() - 200) : one.end() + 1500]}" for one in
                          TROUBLE.finditer(words_of)]  # fmt: skip
        if world.processes.process(name).poll() is not None:
            found.crashes.append(f"{name} ended: {words_of[-900:]}")


def _lies(world: World, one_in: int) -> list[str]:
    return [str(world.chance.randrange(10**6)), str(one_in)]


def _lying_client(world: World, job: Path) -> None:
    words = ["client_cli.main", "submit", str(job), "--tracker", world.processes.tracker]
    words += world.chance.choice(([], ["--detach"]))
    command = [sys.executable, "-m", "tests.laboratory.nearly_right", *_lies(world, world.chance.choice((5, 30)))]
    process = subprocess.Popen(
        [*command, *words, "--home", str(world.base / "lying client")], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **QUIET},
    )  # fmt: skip
    try:
        process.wait(JOB_S / 3)
    except subprocess.TimeoutExpired:
        process.terminate()  # nobody waits for a liar
        try:
            process.wait(JOB_S / 6)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _begin(world: World) -> None:
    processes, base = world.processes, world.base
    home = base / "liar"
    words = ["tracker.main", "run", "--listen", "127.0.0.1:0", "--home", str(home), "--tracker", processes.tracker]
    processes._start("liar", "tests.laboratory.nearly_right", [*_lies(world, 4), *words], ())
    processes._wait("liar", home / "address")
    true, liar = processes.tracker, (home / "address").read_text().strip()
    processes.trackers["liar"] = liar
    processes.start_tracker("follower", knows=[true, liar])
    processes.trackers.pop("follower")
    processes.begin_peer("lying peer", program=["tests.laboratory.nearly_right", *_lies(world, 20), "peer_daemon.main"])
    processes.begin_peer("asker")
    processes.wait_for_peer("asker")
    time.sleep(1)
