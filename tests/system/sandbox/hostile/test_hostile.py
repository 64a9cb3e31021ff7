"""Every attack there is, in real sandboxes of root's and of an ordinary user's: each is held, and nobody notices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from axonp2p.sandbox.attacks.attack import Tried
from tests.system.sandbox.hostile import contain
from tests.system.sandbox.hostile.all_jobs import JOBS
from tests.system.sandbox.hostile.contain import HowItEnded, Told
from tests.system.sandbox.hostile.light.inside import ATTACKS
from tests.system.sandbox.hostile.users import AS_ANYBODY, AS_ROOT, run_as, why_not

pytestmark = pytest.mark.timeout(300)

LIGHT = [attack.name for attack in ATTACKS]
_MEMORY_MB = 200
_DESCRIPTORS = 5
"""What a daemon may have open more than before, for caches and the like."""


@pytest.fixture(scope="module", params=[AS_ROOT, AS_ANYBODY])
def told(request: Any) -> Told:
    if why := why_not(request.param):
        pytest.skip(why)
    done = run_as(request.param, contain.__name__, timeout_s=280)
    assert done.returncode == 0, done.stderr[-4000:]
    found = msgspec.json.decode(done.stdout, type=Told)
    assert (found.user == 0) == (request.param == AS_ROOT)
    return found


@pytest.mark.parametrize("name", LIGHT)
def test_the_wall_holds(told: Told, name: str) -> None:
    tried = next((tried for tried in told.tried if tried.name == name), Tried(name, "", False, "was not tried"))
    assert tried.held, f"{tried.tries}: {tried.said}"


@pytest.mark.parametrize("name", JOBS)
def test_the_job_ends_at_its_limit_or_is_held_until_it_is_ended(told: Told, name: str) -> None:
    job, ended = JOBS[name], how_it_ended(told, name)
    assert ended.ended in job.ends, ended
    assert job.log in ended.log, ended
    assert not job.heard or set(ended.heard) <= set(job.heard), ended
    assert ended.left == [], ended


@pytest.mark.parametrize("name", JOBS)
def test_the_job_beside_it_answers(told: Told, name: str) -> None:
    assert how_it_ended(told, name).answered


def test_no_log_holds_what_a_terminal_obeys_or_hides(told: Told) -> None:
    for job in told.jobs:
        assert not [character for character in job.log if not (character.isprintable() or character in "\n\t")], job


def test_whoever_started_them_keeps_neither_memory_nor_open_files(told: Told) -> None:
    assert told.descriptors <= _DESCRIPTORS
    assert told.memory_mb <= _MEMORY_MB


def test_there_are_enough_attacks() -> None:
    names = [*LIGHT, *JOBS]
    assert len(set(names)) == len(names) >= 60


def how_it_ended(told: Told, name: str) -> HowItEnded:
    return next(ended for ended in told.jobs if ended.name == name)
