"""Workers that go over a limit of the sandbox: one peer may be the reason, two are not."""

from __future__ import annotations

from axonp2p.errors import LimitReached
from axonp2p.jobs.task_fixes import fix_of_limit
from axonp2p.training.round_messages import GiveUp, MemberJoins, MemberLost
from tests.unit.training.conversation import SECOND, THIRD, Conversation

USED = "its worker ended: used 1113 MiB of memory where 1024 MiB are allowed"


def over(rank: int, limit: str = "memory") -> MemberLost:
    return MemberLost(rank, USED, limit)


def ended(said: list) -> GiveUp | None:  # type: ignore[type-arg]
    return next((action for action in said if isinstance(action, GiveUp)), None)


def talk(members: int = 3, **more: int) -> Conversation:
    return Conversation(members, memory_mb=1024, **more)


def test_after_one_the_others_go_on_and_after_the_second_the_author_is_told_to_ask_for_more() -> None:
    job = talk()
    job.all_ready()
    assert ended(job.hears(over(1))) is None
    end = ended(job.hears(over(2)))
    assert end is not None
    assert isinstance(end.error, LimitReached)
    assert end.error.message == "peer lynx: the task went over its limit of memory; 1 more peer too"
    assert end.error.cause == USED
    assert 'memory = "2 GiB" under [need]' in end.error.fix
    assert not end.too_few  # other peers would end it too: nobody waits for them


def test_the_only_one_is_enough() -> None:
    job = talk(1)
    job.begin()
    end = ended(job.hears(over(0)))
    assert end is not None
    assert isinstance(end.error, LimitReached)


def test_too_few_after_one_are_not_waited_for() -> None:
    job = talk(2, min_peers=2)
    job.all_ready()
    end = ended(job.hears(over(1)))
    assert end is not None
    assert isinstance(end.error, LimitReached)


def test_too_few_in_a_later_round_are_no_matter_of_the_limit() -> None:
    job = talk(3, min_peers=2)
    job.all_ready()
    job.hears(over(1))
    job.all_report(0, SECOND, attempt=1)
    end = ended(job.hears(MemberLost(2, "killed")))
    assert end is not None
    assert not isinstance(end.error, LimitReached)
    assert end.too_few


def test_the_second_one_may_come_rounds_later_and_in_place_of_the_first() -> None:
    job = talk(3, rounds=5)
    job.all_ready()
    job.hears(over(1))
    job.all_report(0, SECOND, attempt=1)
    job.all_report(1, THIRD)
    job.hears(MemberJoins(7, "hare"))
    end = ended(job.hears(over(7)))
    assert end is not None
    assert isinstance(end.error, LimitReached)


def test_two_limits_are_two_matters() -> None:
    job = talk(4)
    job.all_ready()
    job.hears(over(1))
    assert ended(job.hears(over(2, "processes"))) is None


def test_the_fix_names_what_to_ask_for() -> None:
    assert 'memory = "2 GiB"' in fix_of_limit("memory", 800)
    assert 'memory = "6 GiB"' in fix_of_limit("memory", 3000)
    assert "print less" in fix_of_limit("output", 800)
    assert "axon logs JOB" in fix_of_limit("time", 800)
