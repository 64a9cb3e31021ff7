"""What a person is told of a task's trial that ended badly."""

from __future__ import annotations

import pytest

from axonp2p.errors import JobFailed, LimitReached
from axonp2p.kinds.train.local.trial_messages import mistake_of
from axonp2p.sandbox.child import WorkerEnd
from axonp2p.training.messages import TaskFailed
from client_cli.train.trial import why_ended


def test_a_mistake_keeps_the_users_traceback_and_comes_with_what_mends_it() -> None:
    traceback = 'Traceback (most recent call last):\n  File "task.py", line 3, in loss\n    x\nNameError: x'
    error = mistake_of(TaskFailed(doing="loss()", traceback=traceback))
    assert error.message == "the task made a mistake in loss()"
    assert error.cause == traceback
    assert error.fix == "correct task.py, line 3, in loss()"


@pytest.mark.parametrize(
    ("limit", "fix"), [("memory", "under [need] (memory)"), ("disk", "below /tmp"), ("processes", "the same limit")]
)
def test_a_limit_is_named_with_what_helps(limit: str, fix: str) -> None:
    error = why_ended(WorkerEnd("used 1113 MiB of memory where 1024 MiB are allowed", limit, "printed\n"))
    assert isinstance(error, LimitReached)
    assert error.message == "the task used 1113 MiB of memory where 1024 MiB are allowed"
    assert error.cause == "printed"
    assert fix in error.fix


def test_a_process_that_ends_without_an_answer_is_no_limit() -> None:
    error = why_ended(WorkerEnd("ended with exit code 7", "", ""))
    assert type(error) is JobFailed
    assert error.message == "the task's process ended with exit code 7, without an answer"
