"""What members say of the model's file: refused when it does not hold all of the weights, or more than it may."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.errors import MessageTooLarge, PeerMisbehaved
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.messages import FileLayout, TensorInfo
from axonp2p.training.state_transfer.model_layout import FILE_SLACK, MOST_BYTES, pack_layout, read_layout
from axonp2p.wire.codec import encode

MODEL = Model(parameters=10, values=10)


def tensor(name: str = "a", **said: Any) -> TensorInfo:
    return TensorInfo(**{"name": name, "dtype": "F32", "shape": [2, 5], "coding": "values", "begin": 0} | said)


def test_what_is_said_is_read() -> None:
    said = FileLayout(tensors=[tensor("b", shape=[4]), tensor("tied", shape=[4]), tensor(shape=[6], begin=4)])
    assert read_layout(pack_layout(said, MODEL), MODEL) == said


WRONG = {
    "nothing": [],
    "a hole": [tensor(shape=[4]), tensor("b", shape=[5], begin=5)],
    "too few": [tensor(shape=[9])],
    "too many": [tensor(shape=[11])],
    "far away": [tensor(), tensor("b", shape=[1], begin=2**53)],
    "huge": [tensor(shape=[2**53] * 64)],
    "a name twice": [tensor(), tensor()],
    "metadata": [tensor(), tensor("__metadata__")],
    "wide halves": [tensor(dtype="BF16", coding="wide", shape=[2], apart=5)],
    "wide beyond the end": [tensor(dtype="F64", coding="wide", shape=[5], apart=5)],
    "integers as bits": [tensor(dtype="I32", coding="bits", shape=[5])],
    "plain float64": [tensor(dtype="F64")],
}


@pytest.mark.parametrize("tensors", WRONG.values(), ids=WRONG)
def test_what_is_not_all_of_the_weights_is_no_layout(tensors: list[TensorInfo]) -> None:
    said = FileLayout(tensors=tensors)
    with pytest.raises(PeerMisbehaved, match="no layout of the model's file"):
        read_layout(encode(said), MODEL)
    with pytest.raises(ValueError, match="no file can be written"):
        pack_layout(said, MODEL)


def test_tied_tensors_make_no_file_that_is_larger_by_far() -> None:
    values = FILE_SLACK // 16
    names = [tensor(str(number), shape=[values]) for number in range(9)]
    with pytest.raises(PeerMisbehaved, match="are the most"):
        read_layout(encode(FileLayout(tensors=names)), Model(values, values))
    assert read_layout(encode(FileLayout(tensors=names[:8])), Model(values, values))


@pytest.mark.parametrize("junk", [b"", b"x", b"\xff" * 64, b"\x91" * 100_000, b"\x81\xa7tensors\xdd\xff\xff\xff\xff"])
def test_junk_is_no_layout(junk: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        read_layout(junk, MODEL)


def test_more_than_fits_a_frame_is_said_by_nobody() -> None:
    said = FileLayout(tensors=[tensor(f"{number:0400}", shape=[10]) for number in range(3000)])
    with pytest.raises(ValueError, match=r"3000 tensors take .* bytes"):
        pack_layout(said, MODEL)
    with pytest.raises(MessageTooLarge):
        read_layout(b"\0" * (MOST_BYTES + 1), MODEL)
