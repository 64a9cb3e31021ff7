from __future__ import annotations

import hashlib

import pytest

from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.messages import PART_BYTES
from axonp2p.training.messages import FilePart
from axonp2p.training.state_transfer.file_parts import Assembly, cut

DATA = bytes(range(256)) * (PART_BYTES // 256) + b"and some more"
HASH = hashlib.sha256(DATA).digest()


def test_a_file_travels_in_parts():
    assembly = Assembly("rank 1", len(DATA), HASH)
    sizes = []
    for part, payload in cut(DATA, HASH):
        assert not assembly.complete
        assembly.add(part, bytes(payload))
        sizes.append(len(payload))
    assert sizes == [PART_BYTES, 13]
    assert assembly.complete
    assert assembly.file() == DATA


def test_a_file_with_another_hash_is_not_given_out():
    other = hashlib.sha256(b"something else").digest()
    assembly = Assembly("rank 1", len(DATA), other)
    for part, payload in cut(DATA, other):
        assembly.add(part, payload)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent a file that does not have the hash"):
        assembly.file()


@pytest.mark.parametrize(
    ("change", "payload"),
    [
        ({"offset": 1}, b"abc"),
        ({"total": 11}, b"abc"),
        ({"sha256": bytes(32)}, b"abc"),
        ({}, b""),
        ({}, b"more than ten bytes"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, payload):
    assembly = Assembly("rank 1", 10, HASH)
    plain = {"offset": 0, "total": 10, "sha256": HASH}
    with pytest.raises(PeerMisbehaved, match="does not fit"):
        assembly.add(FilePart(**(plain | change)), payload)
