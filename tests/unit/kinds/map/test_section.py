"""`[map]` of job.toml."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.bundle import collect
from axonp2p.jobs.spec import parse_spec
from axonp2p.kinds.map.messages import PrepareCalls
from axonp2p.kinds.map.section import MapJob, preparation_of, tree_of, why_not
from axonp2p.peers.capability import read_capability
from tests.fakes import make_offer


def parsed(lines: str) -> MapJob:
    spec = parse_spec(f'name = "bag"\nkind = "map"\n[map]\n{lines}', "job.toml")
    assert isinstance(spec, MapJob)
    return spec


def test_a_function_with_its_items(tmp_path: Any) -> None:
    spec = parsed('fn = "lib/work.py:Face.square"\nitems = "items.jsonl"\nmost-result = "2 MB"\nretries = 3')
    assert preparation_of(spec.map, None) == PrepareCalls(
        most_result=spec.map.most_result, fn="lib/work.py:Face.square", items="items.jsonl"
    )
    assert abs(spec.map.most_result - 2_000_000) < 2**20
    assert (spec.map.retries, spec.map.chunk) == (3, 0)
    (tmp_path / "lib").mkdir()
    for name in ("job.toml", "lib/work.py", "items.jsonl"):
        (tmp_path / name).write_text("x")
    assert [file.path for file in collect(tmp_path, spec).files] == ["job.toml", "lib/work.py", "items.jsonl"]


def test_items_may_be_numbers() -> None:
    assert preparation_of(parsed('fn = "work.py:f"\nitems = 12').map, None).items == ""


def test_results_may_be_merged(tmp_path: Any) -> None:
    spec = parsed('fn = "work.py:f"\nreduce = "lib/merge.py:join"\nitems = 870')
    tree = tree_of(spec, 870)
    assert tree
    assert (tree.items, tree.fold) == (870, 870 // (32 * spec.need.peers * spec.need.cores))
    assert preparation_of(spec.map, tree) == PrepareCalls(
        most_result=spec.map.most_result, fn="work.py:f", reduce="lib/merge.py:join", count=870, fold=tree.fold
    )
    mine = tree_of(parsed('fn = "work.py:f"\nreduce = "work.py:join"\nfold = 50\nitems = 870'), 870)
    assert mine
    assert mine.fold == 50
    assert tree_of(parsed('fn = "work.py:f"\nitems = 870'), 870) is None
    (tmp_path / "lib").mkdir()
    for name in ("job.toml", "lib/merge.py", "work.py"):
        (tmp_path / name).write_text("x")
    assert {file.path for file in collect(tmp_path, spec).files} == {"job.toml", "lib/merge.py", "work.py"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("items = 3", "needs a function"),
        ('fn = "work.py:f"', "needs items"),
        ('fn = "work.py"\nitems = 3', "does not name a file and a function"),
        ('fn = "../work.py:f"\nitems = 3', "no file of the job"),
        ('fn = "work.py:f"\nitems = 0', "expected 1 to"),
        ('fn = "work.py:f"\nitems = true', "expected the name of a file"),
        ('fn = "work.py:f"\nitems = "/etc/passwd"', "no file of the job"),
        ('fn = "work.py:f"\nitems = 3\nmost-result = "3 GiB"', "2 GiB"),
        ('fn = "work.py:f"\nitems = 3\nmost-result = "much"', "a size such as"),
        ('fn = "work.py:f"\nitems = 3\ncalls = true', "come from a program"),
        ('fn = "work.py:f"\nitems = 3\npython = "3.11"', "only calls that come from a program"),
        ('calls = true\npython = "2.7"', "expected a version"),
        ('fn = "work.py:f"\nitems = 3\nchunk = 0', "expected 1 to"),
        ('fn = "work.py:f"\nitems = 3\nreduce = "merge"', "does not name a file and a function"),
        ('fn = "work.py:f"\nitems = 3\nfold = 2', "only where results are merged"),
        ('calls = true\nreduce = "work.py:f"', "come from a program"),
        ('fn = "work.py:f"\nitems = 3\nquorum = 6', "expected 1 to 5"),
        ('fn = "work.py:f"\nitems = 3\nquorum = 5', "5 peers must give the same result, and only"),
        ('fn = "work.py:f"\nitems = 3\nagree = "nearly"', 'expected "exact", "close"'),
        ('fn = "work.py:f"\nitems = 3\nagree = "../compare.py:same"', "no file of the job"),
    ],
)
def test_a_mistake_is_told_with_its_line(lines: str, problem: str) -> None:
    with pytest.raises(JobFileWrong, match=problem) as told:
        parsed(lines)
    assert told.value.fix


def test_pickles_go_to_peers_with_the_same_minor_version_of_python() -> None:
    spec = parsed('calls = true\npython = "3.1"')
    offer = read_capability(make_offer(python="3.11.9"))
    assert "3.11.9" in why_not(spec, offer)
    assert why_not(spec, read_capability(make_offer(python="3.1.2"))) == ""
    assert why_not(parsed('fn = "work.py:f"\nitems = 1'), offer) == ""


def test_results_are_compared_as_it_says() -> None:
    usual = parsed('fn = "work.py:f"\nitems = 3')
    assert (usual.map.quorum, usual.map.agree) == (None, "exact")
    assert not usual.why_not_hosted
    own = parsed('fn = "work.py:f"\nitems = 3\nquorum = 2\nagree = "compare.py:same"')
    assert own.map.quorum == 2
    assert "compare.py:same" in own.why_not_hosted
    assert "no stranger's code" in own.why_not_hosted


def test_calls_of_a_program_are_not_hosted() -> None:
    assert "its calls come from a program on this computer" in parsed("calls = true").why_not_hosted
