"""Keys of job.toml that are given beside it: on the command line and in Python."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.overrides import Override, keywords, peers_option, set_words, with_overrides
from axonp2p.jobs.spec import parse_spec
from axonp2p.kinds.train.section import TrainJob

TEXT = """\
# what a person wrote
name = "digits"

[need]
min-peers = 2  # not fewer

[train]
rounds = 20
"""


def read(*overrides: Override) -> TrainJob:
    spec = parse_spec(TEXT, "job.toml", overrides)
    assert isinstance(spec, TrainJob)
    return spec


def test_what_is_given_wins_over_the_file() -> None:
    spec = read(*set_words(["train.rounds=5", "need.memory=2 GiB", "name=sweep-1", "train.overlap=false"]))
    assert (spec.train.rounds, spec.need.memory, spec.name, spec.train.overlap) == (5, 2048, "sweep-1", False)
    spec = read(*peers_option(3), *keywords({"rounds": 7, "need": {"max_rtt": "1 s"}, "data": ("a.csv",)}))
    assert (spec.need.peers, spec.train.rounds, spec.need.max_rtt, spec.data) == (3, 7, 1000, ["a.csv"])
    assert read(*keywords({"rounds": None, "peers": None})) == read()


def test_it_stands_in_the_job_s_own_file_beside_what_was_there() -> None:
    given = [*set_words(["train.rounds=5", "train.seed=3", "task=other.py"]), *keywords({"need": {"peers": 4}})]
    changed = with_overrides(TEXT, given)
    assert "# what a person wrote" in changed
    assert "# not fewer" in changed
    assert tomllib.loads(changed)["train"] == {"rounds": 5, "seed": 3}
    assert parse_spec(changed, "job.toml") == read(*given)
    assert with_overrides(TEXT, []) == TEXT


def test_a_section_that_the_file_lacks_is_added() -> None:
    changed = with_overrides('name = "x"\n', set_words(["need.peers=2", 'run.env={SEED = "1"}', "data=['a.csv']"]))
    assert tomllib.loads(changed) == {
        "name": "x", "need": {"peers": 2}, "run": {"env": {"SEED": "1"}}, "data": ["a.csv"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "message", "fix"),
    [
        ("train.rounds=0", "--set train.rounds=0: expected 1 to 1000000, got 0", "--set train.rounds=1"),
        ("train.rounds=many", 'expected int, got str ("many")', "--set train.rounds=20"),
        ("need.memory=2 lb", "expected a size such as", "--set 'need.memory=1 GiB'"),
        ("trian.rounds=1", "--set trian.rounds=1: unknown key. Did you mean [train]?", "write [train]"),
        ("rounds=1", "Did you mean rounds, in [train]?", "write rounds, in [train]"),
        ("train.lr=1", "the learning rate is that of the task's own optimiser", "in task.py:"),
        ("train.rounds", "it sets no key", "--set SECTION.KEY=VALUE"),
        ("=5", "it sets no key", "--set SECTION.KEY=VALUE"),
        ("train.rounds=2020-01-01", "expected int, got str", "--set train.rounds=20"),
        ("train.rounds=5\nseed = 3", "expected int, got str", "--set train.rounds=20"),
        ("train.rounds=" + "[" * 2000, "expected int, got str", "--set train.rounds=20"),
    ],
)
def test_a_mistake_on_the_command_line_is_named_as_it_was_typed(word: str, message: str, fix: str) -> None:
    with pytest.raises(JobFileWrong) as caught:
        read(*set_words([word]))
    assert message in caught.value.message
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        ({"rounds": 0}, "rounds=0: expected 1 to 1000000, got 0", "rounds=1"),
        ({"train": {"rounds": "x"}}, "train={'rounds': 'x'}: expected int", "train={'rounds': 20}"),
        ({"need": {"min_peers": 9}}, "need={'min_peers': 9}: 9 is more than peers", "need={'min_peers': 4}"),
        ({"name": "my job"}, "name='my job': expected at most 59 letters", "name='my-job'"),
        ({"lr": 0.1}, "lr=0.1: the learning rate is that of the task's own optimiser", "in task.py:"),
        ({"train": {"steps": object()}}, "expected int, got object", "train={'steps': 10}"),
    ],
)
def test_a_mistake_in_python_is_named_in_python(given: dict[str, Any], message: str, fix: str) -> None:
    with pytest.raises(JobFileWrong) as caught:
        read(*keywords(given))
    assert message in caught.value.message
    assert caught.value.fix.startswith(fix)


def test_where_the_file_and_what_is_given_do_not_fit_both_are_named() -> None:
    with pytest.raises(JobFileWrong, match="line 5: min-peers: 2 is more than peers, which is 1") as caught:
        read(*peers_option(1))
    assert caught.value.cause == "job.toml was read with --peers 1"


def test_a_file_without_a_name_and_a_section_that_is_none() -> None:
    with pytest.raises(JobFileWrong, match="expected a section"):
        parse_spec('name = "x"\nneed = 5\n', "job.toml", set_words(["need.peers=2"]))
    assert parse_spec("", "job.toml", keywords({"name": "x"})).name == "x"
