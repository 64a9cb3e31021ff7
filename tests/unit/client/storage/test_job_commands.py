"""Words from one program to another, through the job's folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from axonp2p.client.storage import job_commands
from axonp2p.client.storage.job_commands import JobCommand, listen, say, take
from axonp2p.errors import SettingsError


def test_a_wish_is_taken_once(tmp_path: Path) -> None:
    assert take(tmp_path) is None
    say(tmp_path, JobCommand.PAUSE)
    say(tmp_path, JobCommand.CANCEL)
    assert take(tmp_path) is JobCommand.CANCEL
    assert take(tmp_path) is None
    (tmp_path / ".wish").write_text("fly")
    assert take(tmp_path) is None


async def test_what_was_said_to_a_dead_program_is_not_heard_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_commands, "LOOK_S", 0.0)
    say(tmp_path, JobCommand.CANCEL)
    heard: asyncio.Queue[JobCommand] = asyncio.Queue()
    listening = asyncio.create_task(listen(tmp_path, heard.put_nowait))
    await asyncio.sleep(0)
    assert not (tmp_path / ".wish").exists()
    say(tmp_path, JobCommand.PAUSE)
    async with asyncio.timeout(10):
        assert await heard.get() is JobCommand.PAUSE
    listening.cancel()


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        say(tmp_path / "gone", JobCommand.PAUSE)
