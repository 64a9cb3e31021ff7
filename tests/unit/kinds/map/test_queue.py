"""Which peer gets which calls: conversations with the queue."""

from __future__ import annotations

from axonp2p.kinds.map.messages import HeldChunk
from axonp2p.kinds.map.queue import ChunkQueue
from axonp2p.kinds.map.queue_actions import QueueAction, QueuePlan, StartChunk, StopChunk


def started(actions: list[QueueAction]) -> list[tuple[int, tuple[int, ...]]]:
    return [(action.rank, action.items) for action in actions if isinstance(action, StartChunk)]


def with_peers(plan: QueuePlan, *ranks: int, cores: int = 1) -> tuple[ChunkQueue, list[QueueAction]]:
    queue = ChunkQueue(plan)
    for rank in ranks:
        assert queue.joined(rank, cores, 0.0) == []
    return queue, queue.begin(0.0)


def done(queue: ChunkQueue, rank: int, chunk: int, now: float, seconds: float) -> list[QueueAction]:
    queue.begun(rank, chunk, now - seconds)
    first = queue.results(rank, chunk, [False] * len(queue.awaited(rank, chunk)), now)
    return first + queue.over(rank, chunk, now, seconds=seconds)


def test_each_core_has_a_call_that_runs_and_one_that_waits_and_all_peers_begin_at_once() -> None:
    _, actions = with_peers(QueuePlan(100), 0, 1)
    assert started(actions) == [(0, (0,)), (1, (1,)), (0, (2,)), (1, (3,))]


def test_chunks_double_while_they_are_short_and_shrink_when_they_are_long() -> None:
    queue, actions = with_peers(QueuePlan(10_000), 0)
    sizes = []
    for number in range(9):
        after = done(queue, 0, number, number + 1.0, 0.1)
        sizes += [len(items) for _, items in started(after)]
    assert sizes == [2, 2, 4, 4, 8, 8, 16, 16, 32]
    assert [len(items) for _, items in started(done(queue, 0, 9, 20.0, 5.0))] == [8], "its 16 calls took 5 seconds"
    assert actions


def test_when_few_calls_wait_all_cores_share_them() -> None:
    queue, _ = with_peers(QueuePlan(200), 0)
    for number in range(6):
        done(queue, 0, number, number + 1.0, 0.01)
    first, second = started(queue.joined(1, 2, 10.0))[:2]
    assert len(first[1]) <= 200 // 6 + 1
    assert len(second[1]) <= 200 // 6 + 1


def test_a_chunk_has_calls_of_one_function_and_sizes_are_of_each() -> None:
    queue, _ = with_peers(QueuePlan(40, group=lambda item: item // 20), 0)
    for number in range(20):
        after = started(done(queue, 0, number, number + 1.0, 0.01))
        groups = {item // 20 for _, items in after for item in items}
        assert len(groups) <= 1
        if after and after[0][1][0] == 20:
            assert after[0][1] == (20,), "nobody knows how long these take"
            return
    raise AssertionError("the second function never came")


def test_a_message_has_no_more_calls_than_fit_it_and_a_large_call_is_alone() -> None:
    _, actions = with_peers(QueuePlan(10, chunk=5, weigh=lambda item: 900_000 if item == 0 else 200_000), 0)
    assert [items for _, items in started(actions)] == [(0,), (1, 2)]


def test_a_waiting_chunk_is_taken_back_for_a_core_that_has_nothing() -> None:
    queue, _ = with_peers(QueuePlan(2), 0)
    queue.begun(0, 0, 0.1)
    actions = queue.joined(1, 1, 1.0)
    assert actions == [StopChunk(0, 1, only_waiting=True)]
    assert queue.joined(2, 1, 1.0) == [], "there is nothing else to be had"
    assert started(queue.over(0, 1, 1.1)) == [(1, (1,))]


def test_a_chunk_that_runs_is_copied_once_and_never_moved() -> None:
    queue, _ = with_peers(QueuePlan(3, chunk=1), 0, 1)
    done(queue, 0, 0, 1.0, 1.0)
    queue.begun(1, 1, 0.0)
    done(queue, 0, 2, 2.0, 1.0)
    assert queue.next_deadline() == 3.0, "it was heard of at 1.0; 1.5 times what others took, 2 seconds at least"
    assert queue.due(2.9) == []
    (copy,) = queue.due(3.5)
    assert isinstance(copy, StartChunk)
    assert (copy.rank, copy.items, copy.copy_of) == (0, (1,), 1)
    assert queue.due(60.0) == []
    after = done(queue, 0, copy.chunk, 61.0, 1.0)
    assert StopChunk(1, 1) in after
    assert queue.over_all


def test_a_chunk_stands_still_that_does_not_begin_where_a_core_is_free() -> None:
    queue, _ = with_peers(QueuePlan(2, chunk=1), 0)
    done(queue, 0, 0, 13.0, 1.0)
    assert queue.joined(1, 1, 13.0) == []
    assert queue.next_deadline() == 28.0, "a core is free there since 13.0"
    assert started(queue.due(27.9)) == []
    assert started(queue.due(28.0)) == [(1, (1,))]


def test_calls_that_take_long_may_begin_late() -> None:
    queue, _ = with_peers(QueuePlan(2, chunk=1), 0)
    done(queue, 0, 0, 113.0, 100.0)
    queue.joined(1, 1, 113.0)
    assert queue.next_deadline() == 113.0 + 150.0, "a copy of a long call is no small thing"


def test_a_peer_has_two_chunks_of_an_earlier_life_for_each_core_and_of_no_more_calls_than_it_was_given() -> None:
    queue = ChunkQueue(QueuePlan(40, chunk=2, first_chunk=8))
    queue.joined(0, 1, 0.0, [HeldChunk(0, [1, 2, 3], True), *(HeldChunk(n, [10 + n], True) for n in range(1, 8))])
    assert [chunk.number for chunk in queue.chunks_at(0)] == [1, 2]


def test_a_chunk_that_waits_behind_another_does_not_stand_still_by_itself() -> None:
    queue, _ = with_peers(QueuePlan(3, chunk=1), 0, 1)
    queue.begun(0, 0, 0.1)
    queue.begun(1, 1, 0.1)
    assert queue.next_deadline() is None
    assert queue.due(600.0) == []


def test_a_chunk_that_is_not_given_back_is_copied() -> None:
    queue, _ = with_peers(QueuePlan(2), 0)
    queue.begun(0, 0, 0.1)
    assert queue.joined(1, 1, 1.0) == [StopChunk(0, 1, only_waiting=True)]
    assert queue.next_deadline() == 16.0
    assert started(queue.due(15.9)) == []
    assert started(queue.due(16.0)) == [(1, (1,))]


def test_a_queue_rests_though_a_chunk_is_not_given_back() -> None:
    queue, _ = with_peers(QueuePlan(2), 0)
    queue.hold(1.0)
    assert not queue.resting
    assert queue.next_deadline() == 16.0
    queue.due(16.0)
    assert queue.resting
    assert queue.next_deadline() is None


def test_a_peer_that_says_no_begin_took_no_longer_than_since_it_was_sent() -> None:
    queue, _ = with_peers(QueuePlan(4, chunk=1), 0, 1)
    queue.results(0, 0, [False], 1.0)
    queue.over(0, 0, 1.0, seconds=1e9)
    queue.begun(1, 1, 1.0)
    done(queue, 0, 2, 2.0, 1.0)
    assert queue.next_deadline() == 3.0, "2 seconds after it began: others took one"


def test_a_call_goes_to_a_peer_where_it_has_not_failed() -> None:
    queue, _ = with_peers(QueuePlan(1, retries=3), 0, 1)
    queue.begun(0, 0, 0.0)
    assert started(queue.results(0, 0, [True], 1.0)) == [(1, (0,))]
    assert queue.over(0, 0, 1.0) == []


def test_paused_silent_and_leaving_peers_get_nothing() -> None:
    queue = ChunkQueue(QueuePlan(10))
    for rank in range(4):
        queue.joined(rank, 1, 0.0)
    queue.paused(0, 0.0)
    queue.silent(1, 0.0)
    queue.leaves(2, 0.0)
    assert {rank for rank, _ in started(queue.begin(0.0))} == {3}
    assert {rank for rank, _ in started(queue.resumed(0, 1.0))} == {0}
    assert {rank for rank, _ in started(queue.answers(1, 1.0))} == {1}


def test_nobody_wants_a_call_that_was_dropped() -> None:
    queue = ChunkQueue(QueuePlan(2, closed=False))
    assert queue.drop(1)
    assert not queue.drop(1)
    queue.joined(0, 1, 0.0)
    assert started(queue.begin(0.0)) == [(0, (0,))]
    assert not queue.drop(0), "a peer has it"
    done(queue, 0, 0, 1.0, 1.0)
    assert not queue.over_all
    queue.close(1.0)
    assert queue.over_all


def test_a_chunk_that_a_peer_says_it_has_but_that_was_never_given_out_is_passed_over() -> None:
    queue = ChunkQueue(QueuePlan(4, chunk=1, first_chunk=8))
    queue.joined(0, 1, 0.0, [HeldChunk(9, [3], True), HeldChunk(7, [2], True)])
    queue.joined(1, 1, 0.0)
    assert started(queue.begin(0.0)) == [(1, (0,)), (0, (1,)), (1, (3,))], "of what it has, the last life gave it one"
    assert [chunk.number for chunk in queue.chunks_at(0)] == [7, 9]
    queue.lost(0, 1.0)
    queue.lost(1, 1.0)
    queue.joined(2, 1, 1.0)
    for _ in range(4):
        (chunk, *_) = queue.chunks_at(2)
        done(queue, 2, chunk.number, 2.0, 0.5)
    assert queue.over_all
