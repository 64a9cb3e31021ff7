"""Names that come from the other side, and what of a folder is copied when."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.hosting.folder_files import GROWING_LIMIT, SMALL_STATE, Kind, check_listing, kind_of, to_copy
from axonp2p.hosting.messages import FolderFile

STATE = f"states/000012-{'ab' * 32}.safetensors"

ARABIC = "\N{ARABIC-INDIC DIGIT ZERO}" * 6


def files(**sizes: int) -> list[FolderFile]:
    names = {"events": "events.jsonl", "metrics": "metrics.csv", "model": "model.safetensors", "state": STATE}
    return [FolderFile(name=names.get(name, f"logs/{name}.log"), size=size) for name, size in sizes.items()]


def test_the_files_of_a_job() -> None:
    assert kind_of("events.jsonl") is Kind.GROWING
    assert kind_of("logs/otter.log") is Kind.GROWING
    assert kind_of("results.csv") is Kind.GROWING
    assert kind_of("model.safetensors") is kind_of("best.safetensors") is Kind.FIXED
    assert kind_of("model.layout") is Kind.GROWING
    assert kind_of(STATE) is Kind.FIXED
    assert kind_of("out/0") is kind_of("out/9999") is Kind.FOLDER


@pytest.mark.parametrize(
    "name",
    [
        "", "job.json", "hosted.json", "leases.json", "../events.jsonl", "/etc/passwd", "logs/../x.log", "logs/.log",
        "logs/..log", "logs/a/b.log", "logs/otter.log\n", "events.jsonl\x00", "bundle/task.py", "states/1.safetensors",
        "logs/ötter.log", "LOGS/otter.log", f"states/{ARABIC}-{'ab' * 32}.safetensors",
        "logs//otter.log", "./metrics.csv", "out", "out/", "out/../x", "out/3/a", "out/.otter", "out/ötter", "out/3\n",
    ],
)  # fmt: skip
def test_no_other_name_is_known(name: str) -> None:
    assert kind_of(name) is None


ODD = st.sampled_from(
    ["..", "/", "logs", "states", "out", "3", ".log", "otter", "\n", "\x00", "-", "0", ".safetensors", "~"]
)


@given(st.one_of(st.text(max_size=40), st.lists(ODD, max_size=8).map("".join)))
def test_whatever_is_known_lies_in_the_folder(name: str) -> None:
    if kind_of(name) is not None:
        parts = PurePosixPath(name).parts
        assert not PurePosixPath(name).is_absolute()
        assert ".." not in parts
        assert "/".join(parts) == name
        assert name.isprintable()
        assert len(parts) <= 2


def test_a_listing_that_cannot_be_is_refused() -> None:
    check_listing(files(events=10, metrics=5, otter=3, model=10**9))
    for wrong in (
        [FolderFile(name="../x", size=1)],
        files(events=1) * 2,
        files(events=GROWING_LIMIT + 1),
        files(model=2**41),
        [FolderFile(name="out/3", size=1)],
    ):
        with pytest.raises(MalformedMessage):
            check_listing(wrong)


def on_disk(**sizes: int) -> dict[str, FolderFile]:
    return {file.name: file for file in files(**sizes)}


def names(listing: list[FolderFile]) -> list[str]:
    return [file.name for file in listing]


def test_while_it_runs_what_grew_is_copied_and_what_is_large_is_not() -> None:
    there = files(state=800, metrics=20, events=100, otter=5)
    assert names(to_copy(there, {}, result=False)) == ["events.jsonl", "logs/otter.log", "metrics.csv"]
    here = on_disk(events=60, metrics=20, otter=5)
    assert names(to_copy(there, here, result=False)) == ["events.jsonl"]


def test_when_it_has_finished_the_weights_come_and_last() -> None:
    there = files(model=800, state=900, events=100)
    here = on_disk(events=60)
    assert names(to_copy(there, here, result=True)) == ["events.jsonl", "model.safetensors"]
    assert to_copy(there, on_disk(events=100, model=800), result=True) == []
    best = FolderFile(name="best.safetensors", size=800)
    come = names(to_copy([*there, best], here, result=True))
    assert come == ["events.jsonl", "best.safetensors", "model.safetensors"]  # with the weights all are here
    assert names(to_copy([*there, best], here, result=False)) == ["events.jsonl"]


def test_without_weights_the_states_come() -> None:
    assert names(to_copy(files(events=1, state=9), on_disk(events=1), result=True)) == [STATE]


def test_the_newest_state_comes_while_the_job_runs_unless_it_is_large() -> None:
    states = [FolderFile(name=f"states/{number:06d}-{'a' * 64}.safetensors", size=9) for number in (9, 10, 8)]
    assert names(to_copy(states, {}, result=False, state=True)) == [states[1].name]
    assert to_copy(states, {states[1].name: states[1]}, result=False, state=True) == []
    assert to_copy(states, {}, result=False) == []
    frozen = FolderFile(name=f"states/frozen-{'f' * 64}.safetensors", size=9)
    assert names(to_copy([*states, frozen], {}, result=False, state=True)) == [frozen.name, states[1].name]
    assert to_copy([*states, frozen], {frozen.name: frozen, states[1].name: states[1]}, result=False, state=True) == []
    large = [FolderFile(name=states[0].name, size=SMALL_STATE + 1)]
    assert to_copy(large, {}, result=False, state=True) == []
    assert names(to_copy([*states, *files(model=1)], {}, result=True, state=True)) == ["model.safetensors"]


def test_what_was_written_anew_is_copied_however_long_it_is() -> None:
    assert names(to_copy(files(metrics=10), on_disk(metrics=30), result=False)) == ["metrics.csv"]
    other = FolderFile(name="metrics.csv", size=30, last=b"other")
    assert names(to_copy([other], on_disk(metrics=30), result=False)) == ["metrics.csv"]
