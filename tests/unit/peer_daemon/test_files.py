from __future__ import annotations

import os

import pytest

from axonp2p.errors import AlreadyRunning
from peer_daemon.files import lock_home, remove_leftovers, write_whole


def test_a_home_is_locked_until_its_holder_is_gone(tmp_path):
    held = lock_home(tmp_path)
    with pytest.raises(AlreadyRunning, match=str(os.getpid())):
        lock_home(tmp_path)
    os.close(held)
    os.close(lock_home(tmp_path))


def test_a_file_is_replaced_whole(tmp_path):
    for content in (b"a long first content", b"short"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_leftovers_are_removed(tmp_path):
    jobs = tmp_path / "jobs"
    (jobs / "lease" / "bundle").mkdir(parents=True)
    (jobs / "lease" / "bundle" / "file").write_text("x")
    remove_leftovers(jobs)
    remove_leftovers(jobs)
    assert list(jobs.iterdir()) == []
