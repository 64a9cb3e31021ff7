"""What the machine must have, and what a worker gets from it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from axonp2p.errors import SandboxMissing
from axonp2p.sandbox.child import start_worker, why_no_sandbox
from axonp2p.sandbox.limits import Limits


def test_without_bubblewrap_there_is_no_worker_and_the_mending_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sudo apt install bubblewrap" in why_no_sandbox()
    with pytest.raises(SandboxMissing) as caught:
        asyncio.run(start_worker(tmp_path, Limits(cores=1, memory_mb=200, scratch_mb=16), program="probe"))
    assert "apt install bubblewrap" in caught.value.fix


def test_a_bubblewrap_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: Creating new namespace failed: Operation not permitted' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "Creating new namespace failed" in why_no_sandbox()
    with pytest.raises(SandboxMissing) as caught:
        asyncio.run(start_worker(tmp_path, Limits(cores=1, memory_mb=200, scratch_mb=16), program="probe"))
    assert "Creating new namespace failed" in caught.value.cause


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user already: all tests here show it")
def test_it_works_for_an_ordinary_user(start_daemon: Any) -> None:
    ordinary = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin")
    if subprocess.run([*ordinary, sys.executable, "-c", "import axonp2p"], capture_output=True).returncode != 0:
        pytest.skip(f"an ordinary user may not read {Path(sys.executable).resolve()}")
    _, first = start_daemon("working", ordinary)
    assert psutil.Process(first).uids().real == 54321
    assert psutil.Process(first).nice() == 19


async def test_torch_trains_inside(sandboxed: Any) -> None:
    task = """
        import torch
        from torch.utils.flop_counter import FlopCounterMode
        model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        optimizer = torch.optim.Adam(model.parameters())
        with FlopCounterMode(display=False) as counter:
            loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 64)), torch.randint(0, 10, (8,)))
            loss.backward()
        optimizer.step()
        capability = torch.backends.cpu.get_cpu_capability()
        answer([loss.item(), counter.get_total_flops(), torch.get_num_threads(), capability])
    """
    loss, flops, threads, capability = await sandboxed.answer(task, Limits(cores=1, memory_mb=1024, scratch_mb=16))
    assert 0 < loss < 10
    assert flops > 0
    assert threads == 1
    # Without /proc/cpuinfo it would use the slowest instructions.
    assert capability == torch.backends.cpu.get_cpu_capability()


def session_of(pid: int) -> str:
    """The group of processes that this one is weighed with, and its nice value."""
    return Path(f"/proc/{pid}/autogroup").read_text().strip()


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel does not group by session")
async def test_a_job_stays_behind_also_in_a_session_of_its_own(sandboxed: Any) -> None:
    task = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        answer("two sessions")
        time.sleep(600)
    """
    sandboxed.priority = "idle"
    async with sandboxed.worker(task) as worker, asyncio.timeout(60):
        await worker.channel.receive()
        while True:
            found = psutil.Process(worker.pid).children(recursive=True)
            groups = {session_of(process.pid) for process in found}
            if len(groups) >= 2 and all(group.endswith(" nice 19") for group in groups):
                break
            await asyncio.sleep(0.05)
    assert not session_of(os.getpid()).endswith(" nice 19")
