"""One look at a machine made of files."""

from __future__ import annotations

import os
from dataclasses import replace

from peer_daemon.idle.desktop import Desktop, DesktopNews
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.idle.sensors import Sensors
from tests.fakes import ManualClock
from tests.unit.peer_daemon.idle.conftest import FakeRoot


class ToldDesktop(Desktop):
    """A desktop that has told this."""

    told = DesktopNews()

    def news(self, now: float) -> DesktopNews:
        return self.told


class Looker:
    """Sensors on a machine of files, whose clock goes with the files."""

    def __init__(self, machine: FakeRoot, settings: IdleSettings) -> None:
        self.machine = machine
        self.clock = ManualClock()
        self.desktop = ToldDesktop({}, machine.path)
        self.sensors = Sensors(
            settings, machine.path, lambda: [os.getpid()], desktop=self.desktop, clock=self.clock, root=machine.path
        )
        self.sensors.read(0.0, 0)

    def passes(self, seconds: float, user: float = 0.0) -> None:
        self.machine.passes(seconds, user=user)
        self.clock.time += seconds


def test_a_look_tells_everything(machine: FakeRoot) -> None:
    machine.write("sys/class/power_supply/BAT0/type", "Battery\n")
    machine.write("sys/class/power_supply/BAT0/status", "Discharging\n")
    machine.write("sys/class/power_supply/BAT0/capacity", "62\n")
    looker = Looker(machine, IdleSettings())
    looker.desktop.told = DesktopNews(input_idle_s=7.0, full_screen=False, metered=True)
    looker.passes(10, user=0.2)
    seen = looker.sensors.read(0.0, 300)
    assert seen.others_cpu < 0.05
    assert (seen.memory_free_mb, seen.memory_pressure, seen.workers_memory_mb) == (8000, 3.5, 300)
    assert (seen.on_battery, seen.battery_percent) == (True, 62.0)
    assert (seen.input_idle_s, seen.full_screen, seen.metered) == (7.0, False, True)
    assert (seen.busiest, seen.programs, seen.others_mbit) == ((), frozenset(), None)


def test_who_is_busy_is_known_at_the_second_look(machine: FakeRoot) -> None:
    looker = Looker(machine, IdleSettings())
    machine.process(10, "firefox", 50.0)
    looker.passes(0.5, user=0.9)
    assert looker.sensors.read(0.0, 0).busiest == ()
    machine.process(10, "firefox", 50.5)
    looker.passes(0.5, user=0.9)
    assert looker.sensors.read(0.0, 0).busiest == ("firefox",)
    looker.passes(0.5)
    assert looker.sensors.read(0.0, 0).busiest == ()


def test_programs_to_yield_to_are_looked_for_every_second(machine: FakeRoot) -> None:
    looker = Looker(machine, IdleSettings(yield_to=frozenset({"blender"})))
    machine.process(10, "Blender", 0.0)
    looker.passes(0.5)
    assert looker.sensors.read(0.0, 0).programs == frozenset()
    looker.passes(0.5)
    assert looker.sensors.read(0.0, 0).programs == {"blender"}
    looker.sensors.settings = replace(looker.sensors.settings, yield_to=frozenset())
    assert looker.sensors.read(0.0, 0).programs == frozenset()


def idle_of(looker: Looker) -> float | None:
    looker.passes(10)
    return looker.sensors.read(0.0, 0).input_idle_s


def test_a_terminal_tells_of_somebody_and_only_without_a_desktop_of_nobody(machine: FakeRoot) -> None:
    looker = Looker(machine, IdleSettings())
    assert idle_of(looker) is None  # no terminal, no desktop: it does not tell
    typed = looker.clock.now()
    os.utime(machine.write("dev/pts/0", ""), (typed, typed))
    assert idle_of(looker) == 10.0
    looker.passes(600)
    assert idle_of(looker) == 620.0  # a server
    machine.write("tmp/.X11-unix/X0", "")
    assert idle_of(looker) is None  # they may sit at the screen
    looker.desktop.told = DesktopNews(input_idle_s=5.0)
    assert idle_of(looker) == 5.0


def test_what_can_be_read_is_told_in_words(machine: FakeRoot) -> None:
    looker = Looker(machine, IdleSettings())
    told = {name: (here, sentence) for name, here, sentence in looker.sensors.what_can_be_read()}
    assert told["memory"] == (True, "7.81 GiB free")
    assert told["power"] == (False, "this machine does not tell; it counts as on the mains")
    assert told["keyboard and mouse"] == (
        False,
        "there is no desktop session and no system bus; the machine counts as in use, and CPU load tells the rest",
    )
    looker.desktop.told = DesktopNews(input_idle_s=7.0, input_from="GNOME", full_screen=True, metered=False)
    told = {name: (here, sentence) for name, here, sentence in looker.sensors.what_can_be_read()}
    assert told["keyboard and mouse"] == (True, "untouched for 7 s, says GNOME")
    assert told["screen"] == (True, "a program keeps it for itself")
    assert told["metered network"] == (True, "this network does not cost by the byte")
