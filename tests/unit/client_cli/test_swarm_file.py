"""Only processes that we started are ours: id and time of creation must both fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from axonp2p.errors import SettingsError
from client_cli.demo.local_swarm import friendly_names, memory_share_mb, stop_process, stop_swarm
from client_cli.swarm_file import SwarmProcess, SwarmRecord, read_record, remove_record, running, write_record


def myself(started: float | None = None) -> SwarmProcess:
    created = psutil.Process().create_time() if started is None else started
    return SwarmProcess(name="me", pid=os.getpid(), started=created, home="/nowhere")


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    record = SwarmRecord(trackers=["https://127.0.0.1:1#x"], processes=[myself()])
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record
    remove_record(tmp_path)
    assert read_record(tmp_path) is None
    remove_record(tmp_path)


@pytest.mark.parametrize("text", ["", "{", '{"trackers": 1}', '{"trackers": [], "processes": [{"pid": "x"}]}'])
def test_a_broken_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "swarm.json").write_text(text)
    with pytest.raises(SettingsError, match=r"swarm\.json cannot be read"):
        read_record(tmp_path)


def test_a_living_process_is_recognised() -> None:
    found = running(myself())
    assert found is not None
    assert found.pid == os.getpid()


def test_the_same_id_of_another_process_is_not_ours_and_gets_no_signal() -> None:
    stranger = myself(started=psutil.Process().create_time() - 60)
    assert running(stranger) is None
    assert not stop_process(stranger, 9)  # this test would not live to see it


def test_stopping_a_swarm_leaves_a_stranger_with_the_same_id_alone(tmp_path: Path) -> None:
    stranger = myself(started=psutil.Process().create_time() - 60)
    write_record(tmp_path, SwarmRecord(trackers=[], processes=[stranger, stranger]))
    assert stop_swarm(tmp_path) == []
    assert read_record(tmp_path) is None


def test_a_process_that_ended_is_not_running_even_before_its_parent_has_heard_of_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ours = SwarmProcess(name="x", pid=child.pid, started=psutil.Process(child.pid).create_time(), home="/nowhere")
    assert running(ours) is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert running(ours) is None
    child.communicate()
    assert running(ours) is None


def test_names_are_all_different() -> None:
    names = friendly_names(64)
    assert len(set(names)) == 64
    assert names[:4] == ["otter", "heron", "lynx", "wren"]
    assert names[20] == "otter-2"


def test_memory_is_shared_but_a_small_job_always_fits() -> None:
    assert memory_share_mb(4, 20 * 2**30) == 4096
    assert memory_share_mb(64, 2 * 2**30) == 1024
