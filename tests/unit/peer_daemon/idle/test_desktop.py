"""A real bus with small services on it, as GNOME, KDE, logind and NetworkManager have them."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from peer_daemon.idle.desktop import Desktop, DesktopNews, bus_address

if importlib.util.find_spec("dbus_fast") is None:
    pytest.skip("dbus-fast is missing: pip install 'axonp2p[desktop]'", allow_module_level=True)
if shutil.which("dbus-daemon") is None:
    pytest.skip("dbus-daemon is missing: apt install dbus", allow_module_level=True)

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

Answers = dict[str, tuple[str, object]]
"""Member, or property, and what is answered: its kind and its value."""


@pytest.fixture
def bus() -> Iterator[str]:
    """The address of a bus of our own."""
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    yield daemon.stdout.readline().strip()
    daemon.terminate()
    daemon.wait()
    daemon.stdout.close()


@asynccontextmanager
async def service(address: str, name: str, answers: Answers) -> AsyncIterator[MessageBus]:
    """Somebody of this name who answers so, and whatever else is asked with an error."""
    connection = await MessageBus(bus_address=address).connect()

    def answer(message: Message) -> Message | None:
        asked = message.body[1] if message.member == "Get" else message.member
        if message.message_type is not MessageType.METHOD_CALL or asked not in answers:
            return None
        kind, value = answers[asked]
        if message.member == "Get":
            kind, value = "v", Variant(kind, value)
        return Message.new_method_return(message, kind, [value])

    connection.add_message_handler(answer)
    await connection.request_name(name)
    try:
        yield connection
    finally:
        connection.disconnect()


@asynccontextmanager
async def desktop_on(address: str) -> AsyncIterator[Desktop]:
    """A desktop that was asked once."""
    desktop = Desktop({"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address})
    desktop.start()
    await asyncio.to_thread(desktop.wait_for_news, 20.0)
    try:
        yield desktop
    finally:
        await asyncio.to_thread(desktop.stop)


async def news_from(address: str) -> DesktopNews:
    async with desktop_on(address) as desktop:
        return desktop.news(time.monotonic())


async def test_gnome_tells_when_somebody_touched_it(bus: str) -> None:
    async with service(bus, "org.gnome.Mutter.IdleMonitor", {"GetIdletime": ("t", 241_000)}):
        news = await news_from(bus)
    assert news.input_idle_s is not None
    assert 241 <= news.input_idle_s < 300
    assert news.input_from == "GNOME"
    assert (news.full_screen, news.metered) == (None, None)


async def test_the_first_touch_is_heard_without_asking(bus: str) -> None:
    gnome: Answers = {"GetIdletime": ("t", 241_000), "AddUserActiveWatch": ("u", 1)}
    async with service(bus, "org.gnome.Mutter.IdleMonitor", gnome) as mutter, desktop_on(bus) as desktop:
        touched = Message.new_signal(
            "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor", "WatchFired", "u", [1]
        )
        await mutter.send(touched)
        async with asyncio.timeout(4):  # the next question would come only after five seconds
            while (desktop.news(time.monotonic()).input_idle_s or 0) > 200:
                await asyncio.to_thread(time.monotonic)


async def test_kde_on_x11_tells_through_its_screen_saver(bus: str) -> None:
    async with service(bus, "org.freedesktop.ScreenSaver", {"GetSessionIdleTime": ("u", 5_000)}):
        news = await news_from(bus)
    assert news.input_from == "the screen saver"


async def test_of_logind_only_a_yes_is_believed(bus: str) -> None:
    async with service(bus, "org.freedesktop.login1", {"IdleHint": ("b", False)}):
        assert (await news_from(bus)).input_idle_s is None
    since = max(0, round((time.monotonic() - 600) * 1e6))
    yes: Answers = {"IdleHint": ("b", True), "IdleSinceHintMonotonic": ("t", since)}
    async with service(bus, "org.freedesktop.login1", yes):
        news = await news_from(bus)
    assert news.input_idle_s is not None
    assert news.input_from == "logind"


@pytest.mark.parametrize(("told", "metered"), [(0, None), (1, True), (2, False), (3, True), (4, False)])
async def test_network_manager_tells_whether_bytes_cost(bus: str, told: int, metered: bool | None) -> None:
    async with service(bus, "org.freedesktop.NetworkManager", {"Metered": ("u", told)}):
        assert (await news_from(bus)).metered is metered


async def test_a_program_keeps_the_screen(bus: str) -> None:
    async with service(bus, "org.gnome.SessionManager", {"IsInhibited": ("b", True)}):
        assert (await news_from(bus)).full_screen is True


async def test_old_news_are_no_news(bus: str) -> None:
    async with service(bus, "org.gnome.SessionManager", {"IsInhibited": ("b", True)}), desktop_on(bus) as desktop:
        assert desktop.news(time.monotonic() + 60) == DesktopNews()


async def test_an_empty_bus_tells_nothing(bus: str) -> None:
    news = await news_from(bus)
    assert (news.input_idle_s, news.full_screen, news.metered) == (None, None, None)


def test_without_any_bus_no_thread_begins(tmp_path: Path) -> None:
    desktop = Desktop({}, tmp_path)
    desktop.start()
    assert desktop.why_not == "there is no desktop session and no system bus"
    assert desktop.news(0.0) == DesktopNews()
    desktop.stop()


def test_a_bus_that_is_not_there_harms_nobody(tmp_path: Path) -> None:
    desktop = Desktop({"DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path}/gone"}, tmp_path)
    desktop.start()
    desktop.wait_for_news(20.0)
    desktop.stop()
    assert desktop.news(time.monotonic()).input_idle_s is None


def test_where_the_session_talks(tmp_path: Path) -> None:
    assert bus_address({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}, tmp_path) == "unix:path=/x"
    assert bus_address({}, tmp_path) == ""
