"""What a member's worker may say in numbers: nan and infinity would spoil what is summed over all members."""

from __future__ import annotations

import math

import msgpack
import pytest

from axonp2p.errors import MalformedMessage
from axonp2p.training.messages import FromWorkerTraining
from axonp2p.verification.claims import RoundDone
from axonp2p.wire.codec import decode, encode
from axonp2p.wire.frame import HEADER_LIMIT

DONE = RoundDone(
    round=0, attempt=0, state=bytes(32), loss=1.0, samples=40, flops=100, train_seconds=1.0,
    exchange_seconds=0.1, exchanges=1, left_out=[], kept_back=0, slices=[bytes(32)], sent_bytes=5, received_bytes=5,
    metrics={"accuracy": 0.5}, test_samples=10,
)  # fmt: skip


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["loss", "train_seconds", "exchange_seconds", "metrics"])
def test_a_report_holds_finite_numbers_only(field: str, number: float) -> None:
    assert decode(encode(DONE), FromWorkerTraining, HEADER_LIMIT) == DONE
    plain = msgpack.unpackb(encode(DONE))
    plain[field] = {"accuracy": number} if field == "metrics" else number
    with pytest.raises(MalformedMessage):
        decode(msgpack.packb(plain), FromWorkerTraining, HEADER_LIMIT)


def test_nobody_trains_for_less_than_no_time() -> None:
    plain = msgpack.unpackb(encode(DONE)) | {"train_seconds": -1.0}
    with pytest.raises(MalformedMessage):
        decode(msgpack.packb(plain), FromWorkerTraining, HEADER_LIMIT)
