from __future__ import annotations

import gc

from axonp2p.sandbox.processors import HeldProcessors


class Worker:
    """Stands for one."""


def test_two_workers_share_no_processor_while_another_is_free() -> None:
    held, one, two, three = HeldProcessors(), Worker(), Worker(), Worker()
    assert held.hold(one, 1, range(4)) == {3}
    assert held.hold(two, 2, range(4)) == {1, 2}
    assert held.hold(three, 2, range(4)) == {0, 3}


def test_a_worker_that_is_held_anew_lets_go_of_what_it_had() -> None:
    held, one, two = HeldProcessors(), Worker(), Worker()
    held.hold(one, 2, range(4))
    assert held.hold(one, 1, range(4)) == {3}
    assert held.hold(two, 1, range(4)) == {2}
    held.release(one)
    held.release(one)
    assert held.hold(Worker(), 1, range(4)) == {3}


def test_more_cores_than_there_are_is_all_of_them() -> None:
    assert HeldProcessors().hold(Worker(), 64, {0, 5}) == {0, 5}


def test_a_worker_whose_start_failed_holds_nothing() -> None:
    held, gone = HeldProcessors(), Worker()
    held.hold(gone, 1, range(2))
    del gone
    gc.collect()
    assert held.hold(Worker(), 1, range(2)) == {1}
