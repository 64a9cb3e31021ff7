"""What any program of the owner may send to the socket, and what it hears."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from contextlib import suppress

import msgspec
import pytest

from axonp2p.errors import Busy, SettingsError
from peer_daemon.control import api
from peer_daemon.control.server import ControlDoor
from peer_daemon.control.socket_file import SOCKET_NAME
from peer_daemon.control.status import Status

ASK_EVENTS = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


async def error_of(answer):
    told = json.loads(await answer.read())["error"]
    assert set(told) == {"code", "message", "cause", "fix", "docs"}
    assert answer.content_type == "application/json"
    return told


async def test_status_is_json_with_every_field(line, ready):
    async with line.get("/status") as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert answer.headers["Cache-Control"] == "no-store"
        assert msgspec.json.decode(await answer.read(), type=Status) == ready


async def test_only_the_owner_can_open_it(door, tmp_path):
    assert stat.S_IMODE((tmp_path / SOCKET_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("since", ["yesterday", "nan", "-1", "inf", ""])
async def test_a_time_that_is_none(line, since):
    async with line.get("/history", params={"since": since}) as answer:
        assert answer.status == 400
        assert (await error_of(answer))["code"] == "AX-201"


async def test_history_is_from_the_beginning_unless_said_otherwise(line, daemon):
    async with line.get("/history") as answer:
        assert answer.status == 200
    assert daemon.heard == [("history", 0.0)]


async def test_a_pause_without_a_body_has_no_end(line, daemon):
    async with line.post("/pause") as answer:
        assert answer.status == 200
    assert daemon.heard == [("pause", None)]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/pause", b"{", 400),
        ("/pause", b'{"seconds": "long"}', 400),
        ("/pause", b"\xff\xfe", 400),
        ("/pause", b'{"seconds": 1e999}', 400),
        ("/pause", b'{"seconds": -1}', 422),
        ("/limits", b'{"corse": 2}', 400),
        ("/limits", b"[" * 10_000, 400),
        ("/limits", b" " * 17_000, 413),
    ],
)
async def test_what_cannot_be_meant_changes_nothing(line, daemon, path, body, status):
    async with line.post(path, data=body) as answer:
        assert answer.status == status
        assert (await error_of(answer))["message"]
    assert daemon.heard == []


async def test_a_small_body_that_would_unfold_is_not_unfolded(line, daemon):
    async with line.post("/limits", data=b" " * 10**6, compress=True) as answer:
        assert answer.status == 400
    assert daemon.heard == []


@pytest.mark.parametrize(
    ("ask", "path", "status", "code"), [("GET", "/nothing", 404, "AX-501"), ("GET", "/pause", 405, "AX-201")]
)
async def test_an_address_that_is_not_there(line, ask, path, status, code):
    async with line.request(ask, path) as answer:
        assert answer.status == status
        assert (await error_of(answer))["code"] == code


async def test_a_mistake_of_ours_fails_one_question_and_tells_no_secret(line, daemon):
    daemon.fails = RuntimeError("the token is 1234")
    async with line.post("/finish") as answer:
        assert answer.status == 500
        assert "1234" not in json.dumps(await error_of(answer))
    daemon.fails = Busy("later", wait_s=7)
    async with line.post("/finish") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
    daemon.fails = None
    async with line.post("/finish") as answer:
        assert answer.status == 200


async def next_event(stream):
    """The next status that is told; comments are passed over."""
    while (told := (await stream.content.readuntil(b"\r\n\r\n")).decode()).startswith(":"):
        pass
    name, data = told.strip().split("\r\n")
    assert name == "event: status"
    return msgspec.json.decode(data.removeprefix("data: "), type=Status)


async def eventually(condition):
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.01)


async def test_each_change_is_told_and_of_many_at_once_the_last(line, daemon, ready, monkeypatch):
    monkeypatch.setattr(api, "AT_MOST_EVERY_S", 0.3)
    async with line.get("/events") as stream:
        assert stream.content_type == "text/event-stream"
        assert await next_event(stream) == ready
        for seconds in range(1, 50):
            await daemon.pause(seconds)
        assert (await next_event(stream)).until == ready.now + 49
        await daemon.finish()
        assert (await next_event(stream)).state == "finishing"


async def test_a_quiet_stream_says_that_it_lives(line, monkeypatch):
    monkeypatch.setattr(api, "HEARTBEAT_S", 0.05)
    async with line.get("/events") as stream:
        await next_event(stream)
        assert (await stream.content.readuntil(b"\r\n\r\n")).startswith(b":")


async def test_readers_that_go_away_leave_nothing_behind(line, daemon, monkeypatch):
    monkeypatch.setattr(api, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(api, "AT_MOST_EVERY_S", 0.01)
    for _ in range(3):
        async with line.get("/events") as stream:
            await next_event(stream)
    await eventually(lambda: daemon.waiting == 0)


async def test_a_reader_that_takes_nothing_holds_nobody_up_and_is_let_go(door, daemon, ready, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "READ_WITHIN_S", 0.2)
    monkeypatch.setattr(api, "AT_MOST_EVERY_S", 0.0)
    daemon.sheet = msgspec.structs.replace(ready, sentence="long " * 200_000)
    with socket.socket(socket.AF_UNIX) as lazy:
        lazy.connect(str(tmp_path / SOCKET_NAME))
        lazy.sendall(ASK_EVENTS)
        # One status is more than the line holds: the stream waits for its reader, not for the next change.
        await asyncio.wait_for(daemon.finish(), 5)
        await eventually(lambda: not open_lines(door))
    assert daemon.waiting == 0


def open_lines(door):
    """Connections that the door has open."""
    return door._runner.server.connections


async def test_too_many_readers_are_told_so(line, monkeypatch):
    monkeypatch.setattr(api, "MOST_STREAMS", 1)
    async with line.get("/events") as stream:
        await next_event(stream)
        async with line.get("/events") as second:
            assert second.status == 503


async def test_a_door_that_closes_ends_its_streams_at_once(daemon, tmp_path):
    door = ControlDoor(daemon, tmp_path / SOCKET_NAME)
    await door.start()
    reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET_NAME)
    writer.write(ASK_EVENTS)
    await reader.readuntil(b"event: status")
    async with asyncio.timeout(5):
        await door.stop()
        await reader.read()
    writer.close()
    assert daemon.waiting == 0


async def test_a_daemon_that_fails_breaks_the_stream_off_and_tells_no_secret(line, daemon, monkeypatch):
    monkeypatch.setattr(api, "AT_MOST_EVERY_S", 0.0)
    async with line.get("/events") as stream:
        await next_event(stream)
        daemon.fails = RuntimeError("secret")
        await daemon.look()
        rest = await stream.content.read()
    assert b"secret" not in rest
    assert b"HTTP" not in rest


async def test_what_is_no_socket_is_not_removed(daemon, tmp_path):
    (tmp_path / SOCKET_NAME).write_text("mine")
    with pytest.raises(SettingsError, match="cannot open the control socket") as raised:
        await ControlDoor(daemon, tmp_path / SOCKET_NAME).start()
    assert "no socket" in raised.value.cause
    assert (tmp_path / SOCKET_NAME).read_text() == "mine"
    with pytest.raises(SettingsError, match="control socket"):
        await ControlDoor(daemon, tmp_path / "gone" / SOCKET_NAME).start()


async def test_bytes_that_are_no_http_harm_nobody(line, tmp_path):
    reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET_NAME)
    writer.write(b"\x16\x03\x01" + bytes(range(256)) * 300)
    async with asyncio.timeout(10):
        with suppress(ConnectionError):
            await reader.read()
    writer.close()
    async with line.get("/status") as answer:
        assert answer.status == 200
