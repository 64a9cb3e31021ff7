"""The command line asks; the daemon answers, is not there, is somebody else's, or hangs."""

from __future__ import annotations

import asyncio
import os
import socket
import stat

import pytest

from axonp2p.errors import AxonError, Busy, NoDaemon, Refused, SettingsError, Unreachable, VersionMismatch
from peer_daemon.control import caller
from peer_daemon.control.server import ControlDoor
from peer_daemon.control.socket_file import SOCKET_NAME
from peer_daemon.control.status import LimitsAsked


async def test_every_question_and_every_order(door, daemon, ready, tmp_path):
    assert await caller.ask_status(tmp_path) == ready
    assert await caller.ask_history(tmp_path, 5.0) == daemon.kept
    paused = await caller.pause(tmp_path, 7200.0)
    assert (paused.state, paused.until) == ("paused", ready.now + 7200)
    assert (await caller.pause(tmp_path, None)).until is None
    assert (await caller.finish(tmp_path)).state == "finishing"
    assert (await caller.resume(tmp_path)).state == "ready"
    assert (await caller.change_limits(tmp_path, LimitsAsked(cores=3))).limits.cores == 3
    assert daemon.heard == [
        ("history", 5.0),
        ("pause", 7200.0),
        ("pause", None),
        "finish",
        "resume",
        LimitsAsked(cores=3),
    ]


async def test_what_the_daemon_refuses_is_said_in_its_own_words(door, tmp_path, daemon):
    with pytest.raises(SettingsError, match="a pause of -1 seconds") as refused:
        await caller.pause(tmp_path, -1)
    assert refused.value.fix == "axon-peer pause --for 2h"
    daemon.fails = Busy("it stops just now", cause="told to", fix="wait")
    with pytest.raises(Busy, match="stops") as busy:
        await caller.finish(tmp_path)
    assert (busy.value.cause, busy.value.fix) == ("told to", "wait")
    daemon.fails = KeyError("secret")
    with pytest.raises(AxonError, match="made a mistake: KeyError") as mistake:
        await caller.finish(tmp_path)
    assert "secret" not in str(mistake.value)


async def no_daemon(home):
    with pytest.raises(NoDaemon, match="no peer is running on this computer") as raised:
        await caller.ask_status(home)
    assert raised.value.fix.startswith("axon-peer run ")
    assert (raised.value.code, raised.value.exit_code) == ("AX-301", 3)


async def test_nobody_runs(tmp_path):
    await no_daemon(tmp_path)
    await no_daemon(tmp_path / "never" / "made")
    await no_daemon(tmp_path / ("never" * 30) / "made")


async def test_a_daemon_that_died_left_its_socket_which_the_next_one_replaces(tmp_path, daemon, ready):
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / SOCKET_NAME))
    dead.close()
    await no_daemon(tmp_path)
    door = ControlDoor(daemon, tmp_path / SOCKET_NAME)
    await door.start()
    assert await caller.ask_status(tmp_path) == ready
    await door.stop()
    assert not (tmp_path / SOCKET_NAME).exists()
    await no_daemon(tmp_path)


async def test_a_home_with_a_very_long_path(tmp_path, daemon, ready):
    home = tmp_path / ("a" * 120) / ("ö" * 60)
    home.mkdir(parents=True)
    await no_daemon(home)
    door = ControlDoor(daemon, home / SOCKET_NAME)
    await door.start()
    assert await caller.ask_status(home) == ready
    assert stat.S_IMODE((home / SOCKET_NAME).stat().st_mode) == 0o600
    await door.stop()
    await no_daemon(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a moment")
async def test_another_account_is_told_whose_daemon_it_is(tmp_path, daemon):
    home = tmp_path / "home"
    home.mkdir()
    for folder in (home, *home.parents[:3]):
        folder.chmod(0o755)
    door = ControlDoor(daemon, home / SOCKET_NAME)
    await door.start()
    os.seteuid(65534)
    try:
        with pytest.raises(Refused, match="is root's") as raised:
            await caller.ask_status(home)
    finally:
        os.seteuid(0)
        await door.stop()
    assert "sudo -u root" in raised.value.fix


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", VersionMismatch),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xff", VersionMismatch),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}", Unreachable),
        (b'HTTP/1.1 500 Oh\r\nContent-Length: 12\r\n\r\n{"error": 3}', Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{}", Unreachable),
        (b"SSH-2.0\r\n", Unreachable),
        (b"", Unreachable),
    ],
)
async def test_whatever_answers_there_the_command_ends_with_a_sentence(tmp_path, content, error):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(content)
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / SOCKET_NAME):
        with pytest.raises(error):
            await caller.ask_status(tmp_path)


async def test_a_daemon_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(caller, "PATIENCE_S", 0.2)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(tmp_path / SOCKET_NAME))
        hung.listen()
        with pytest.raises(Unreachable, match="does not answer") as raised:
            await caller.ask_status(tmp_path)
    assert not isinstance(raised.value, NoDaemon)
    assert raised.value.cause == "no answer in time"
