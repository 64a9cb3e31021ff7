"""Which leases lived when the daemon was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.identity.keys import PrivateKey
from peer_daemon.lending.lease_file import interrupted_leases, keep_leases
from peer_daemon.lending.leases import Interrupted, LentSlot

CLIENT, PEER = (PrivateKey(letter * 32).peer_id for letter in (b"c", b"p"))


def test_a_lease_comes_back_with_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    lease = LentSlot(
        "uuid", PEER, PEER, CLIENT, "digits", "train", until=99, cores=1, memory_mb=1, disk_mb=1, token=b"t"
    )
    keep_leases(path, [lease])
    assert interrupted_leases(path) == [Interrupted("uuid", CLIENT, "train", 99)]


@pytest.mark.parametrize("content", [b"", b"{}", b'[{"reservation": "r", "client": "c", "until": 9}]'])
def test_a_damaged_file_keeps_no_slot(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "leases.json"
    path.write_bytes(content)
    assert interrupted_leases(path) == []
