"""Who still has to be stopped, told from looks at the processes of a sandbox."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from axonp2p.sandbox.watch.freezer import Freezer, Look, SeenProcess, judge

RUNS, STANDS = SeenProcess(born=5, states="RS"), SeenProcess(born=5, states="TT")


def test_at_first_everyone_is_to_be_stopped() -> None:
    assert judge({1: RUNS, 2: RUNS}, {}, set()) == Look(to_stop=(1, 2), unasked=(1, 2), still=False)


def test_who_was_told_and_waits_for_its_turn_is_told_again_but_does_not_evade() -> None:
    assert judge({1: RUNS}, {1: RUNS}, {(1, 5)}) == Look(to_stop=(1,), unasked=(), still=False)


def test_one_thread_that_moves_is_enough() -> None:
    assert judge({1: SeenProcess(5, "TTR")}, {1: RUNS}, {(1, 5)}).to_stop == (1,)


def test_all_stand_still_when_a_second_look_finds_nobody_new() -> None:
    assert not judge({1: STANDS, 2: STANDS}, {1: RUNS}, {(1, 5)}).still
    assert judge({1: STANDS, 2: STANDS}, {1: STANDS, 2: STANDS}, {(1, 5)}).still


def test_a_child_that_was_born_meanwhile_is_to_be_stopped() -> None:
    look = judge({1: STANDS, 3: RUNS}, {1: RUNS}, {(1, 5)})
    assert (look.to_stop, look.unasked, look.still) == ((3,), (3,), False)


def test_a_number_that_was_given_again_is_somebody_new() -> None:
    again = SeenProcess(born=9, states="S")
    assert judge({1: again}, {1: STANDS}, {(1, 5)}).unasked == (1,)
    assert not judge({1: SeenProcess(born=9, states="T")}, {1: STANDS}, {(1, 5)}).still


def test_who_waits_deep_in_the_kernel_stands_still_once_told() -> None:
    # As the parent in vfork does, for as long as its child is stopped.
    deep = SeenProcess(born=5, states="D")
    assert not judge({1: deep}, {1: deep}, set()).still
    assert judge({1: deep}, {1: deep}, {(1, 5)}).still


def test_who_has_ended_needs_no_stopping() -> None:
    assert judge({1: SeenProcess(5, "Z")}, {1: SeenProcess(5, "Z")}, set()).still
    assert judge({}, {1: STANDS}, set()).still


@pytest.fixture
def waiting() -> Iterator[psutil.Process]:
    """A process with a child; both wait."""
    script = "import os, time; os.fork(); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        first = psutil.Process(process.pid)
        family = [first, *first.children()]
        yield first
        for member in family:
            member.kill()


def states(first: psutil.Process) -> set[str]:
    return {process.status() for process in (first, *first.children(recursive=True))}


def freezer_of(first: psutil.Process, group: Any = None) -> Freezer:
    return Freezer(first.pid, 10, group, lambda: pytest.fail("nobody evades"))


def test_a_family_stands_still_goes_on_and_stands_still_again(waiting: psutil.Process) -> None:
    freezer = freezer_of(waiting)
    freezer.freeze()
    assert freezer.frozen
    assert states(waiting) == {psutil.STATUS_STOPPED}
    freezer.freeze()
    freezer.thaw()
    assert not freezer.frozen
    assert psutil.STATUS_STOPPED not in states(waiting)
    freezer.freeze()
    assert states(waiting) == {psutil.STATUS_STOPPED}
    freezer.thaw()


def test_who_is_woken_from_outside_is_stopped_again(waiting: psutil.Process) -> None:
    freezer = freezer_of(waiting)
    freezer.freeze()
    waiting.resume()
    freezer.keep()
    while states(waiting) != {psutil.STATUS_STOPPED}:
        pass
    freezer.thaw()
    freezer.keep()
    assert psutil.STATUS_STOPPED not in states(waiting)


class Group:
    """A control group whose kernel needs two looks."""

    def __init__(self) -> None:
        self.told: list[bool] = []
        self._looks = 0

    def freeze(self, wish: bool) -> None:
        self.told.append(wish)

    def is_frozen(self) -> bool:
        self._looks += 1
        return self._looks >= 2


def test_a_control_group_does_it_alone(waiting: psutil.Process) -> None:
    group = Group()
    freezer = freezer_of(waiting, group)
    freezer.freeze()
    freezer.keep()
    freezer.thaw()
    assert group.told == [True, False]
    assert psutil.STATUS_STOPPED not in states(waiting)


class GoneGroup(Group):
    """A control group that was removed, as that of a worker that has ended."""

    def freeze(self, wish: bool) -> None:
        raise FileNotFoundError


def test_a_worker_that_has_ended_is_neither_frozen_nor_thawed(waiting: psutil.Process) -> None:
    for group in (None, GoneGroup()):
        freezer = freezer_of(waiting, group)
        freezer.ended()
        freezer.freeze()
        assert not freezer.frozen
        assert psutil.STATUS_STOPPED not in states(waiting)
        freezer.thaw()


def test_a_frozen_worker_that_has_ended_is_not_thawed(waiting: psutil.Process) -> None:
    group = Group()
    freezer = freezer_of(waiting, group)
    freezer.freeze()
    freezer.ended()
    freezer.thaw()
    freezer.keep()
    assert group.told == [True]
