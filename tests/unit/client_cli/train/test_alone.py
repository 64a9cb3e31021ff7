"""What a job's task in a process of its own answered."""

from __future__ import annotations

import json

import pytest

from axonp2p.errors import JobFailed, JobFileWrong, TaskMistake
from client_cli.train.alone import read_answer


def test_the_answer_is_the_last_line_after_what_the_task_printed() -> None:
    assert read_answer('hello\n{"no": 1}\n{"accuracy": 0.5}\n', "") == {"accuracy": 0.5}


def test_a_mistake_of_the_task_keeps_the_users_traceback() -> None:
    told = json.dumps({"error": {"doing": "loss()", "traceback": "Traceback:\n  task.py line 3\nValueError: x"}})
    with pytest.raises(TaskMistake) as caught:
        read_answer(f"printed\n{told}\n", "")
    assert "loss()" in caught.value.message
    assert caught.value.cause.endswith("ValueError: x")


def test_a_wrong_file_comes_back_as_its_own_class() -> None:
    told = json.dumps({"error": {"code": "AX-901", "message": "no such file", "fix": "put it there"}})
    with pytest.raises(JobFileWrong, match="no such file"):
        read_answer(told, "")


@pytest.mark.parametrize("out", ["", "the task printed this and then called exit()\n", "[1]\n", '"text"\n'])
def test_a_process_that_ended_without_an_answer_is_the_tasks_failure(out: str) -> None:
    with pytest.raises(JobFailed, match="ended its process"):
        read_answer(out, "MemoryError\n")
