"""When members are asked for the task's files: seldom enough that the exchange has the line."""

from __future__ import annotations

from axonp2p.jobs.output_messages import file_name_hash
from axonp2p.kinds.train.file_requests import EVERY_S, GIVEN_UP_S, TIMES, FileRequests
from axonp2p.training.messages import MOST_HAVE

FIRST = 1 << 20


def test_a_member_is_asked_after_a_while_and_again_after_its_answer() -> None:
    requests = FileRequests(FIRST)
    assert requests.due([0, 1], 0.0) == []
    assert requests.due([0, 1], EVERY_S) == [0, 1]
    assert requests.ask(0, EVERY_S).request == FIRST + 1
    assert requests.due([0, 1], EVERY_S + 1) == [1]
    requests.answered(0, EVERY_S + 1)
    assert requests.due([0], 2 * EVERY_S) == []
    assert requests.due([0], 2 * EVERY_S + 1) == [0]


def test_an_answer_that_took_long_is_waited_for_and_then_followed_by_a_long_pause() -> None:
    requests = FileRequests(FIRST)
    requests.ask(3, 0.0)
    assert requests.due([3], 60.0) == []
    requests.answered(3, 60.0)
    assert requests.due([3], 60.0 + TIMES * 60 - 1) == []
    assert requests.due([3], 60.0 + TIMES * 60) == [3]


def test_a_question_without_an_answer_is_put_again() -> None:
    requests = FileRequests(FIRST)
    requests.ask(3, 0.0)
    assert requests.due([3], GIVEN_UP_S) == [3]
    assert requests.open == {3}


def test_what_came_need_not_be_sent_again_unless_it_has_changed() -> None:
    requests = FileRequests(FIRST)
    requests.came(0, "a", b"1" * 32)
    requests.came(0, "b", b"1" * 32)
    requests.came(0, "a", b"2" * 32)
    assert requests.ask(0, 0.0).have == [file_name_hash("b", b"1" * 32), file_name_hash("a", b"2" * 32)]
    assert requests.ask(1, 0.0).have == []


def test_it_remembers_no_more_than_a_question_holds() -> None:
    requests = FileRequests(FIRST)
    for number in range(MOST_HAVE + 5):
        requests.came(0, str(number), bytes(32))
    have = requests.ask(0, 0.0).have
    assert len(have) == MOST_HAVE
    assert have[-1] == file_name_hash(str(MOST_HAVE + 4), bytes(32))
