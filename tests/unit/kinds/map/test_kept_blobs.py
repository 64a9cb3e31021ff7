"""Blobs that a map worker keeps for its calls."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from axonp2p.kinds.map.worker import kept_blobs
from axonp2p.kinds.map.worker.kept_blobs import KeptBlobs, open_kept


def test_a_blob_that_the_daemon_shows_again_can_be_opened_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_blobs, "BROUGHT", tmp_path)
    (tmp_path / "file").write_bytes(b"array")
    blobs = KeptBlobs(tmp_path / "kept")
    blobs.use("name", "file")
    showing = threading.Thread(target=lambda: [blobs.use("name", "file") for _ in range(2000)])
    showing.start()
    while showing.is_alive():
        assert bytes(open_kept(blobs.folder, "name")) == b"array"
        assert blobs.lacking(["name"]) == []
    showing.join()
