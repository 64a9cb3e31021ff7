"""The sensors that read files, each against a small tree of real ones."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from peer_daemon.idle.network import OthersTraffic, own_sockets
from peer_daemon.idle.power import Heat, Power
from peer_daemon.idle.programs import OthersCpu, Programs, named
from peer_daemon.idle.sensors import disk_free_mb, memory_free_mb, memory_pressure
from peer_daemon.idle.terminals import Terminals
from tests.unit.peer_daemon.idle.conftest import FakeRoot

# --- processor


def test_what_is_ours_is_not_counted(machine: FakeRoot) -> None:
    cpu = OthersCpu(machine.path / "proc")
    assert cpu.look(machine.now, 0.0, 0.0) == 0.0
    machine.passes(10, user=1.0, niced=10.0)  # a worker fills one core, the daemon uses a second
    assert cpu.look(machine.now, 1.0, 10.0) == pytest.approx(0.0)
    machine.passes(10, user=10.0, niced=10.0)
    assert cpu.look(machine.now, 1.0, 20.0) == pytest.approx(0.5)


def test_an_old_sample_of_the_workers_is_not_taken_for_another_program(machine: FakeRoot) -> None:
    cpu = OthersCpu(machine.path / "proc")
    sampled, shares = 0.0, []
    for look in range(40):
        machine.passes(0.5, niced=0.5)
        sampled += 1.0 if look % 2 else 0.0  # the sample is fresh at every other look only
        shares.append(cpu.look(machine.now, 0.0, sampled))
    assert max(shares[8:]) <= 0.15
    machine.passes(0.5, user=0.5, niced=0.5)
    assert cpu.look(machine.now, 0.0, sampled) >= 0.45


def test_a_worker_that_ends_is_not_taken_for_another_program(machine: FakeRoot) -> None:
    cpu = OthersCpu(machine.path / "proc")
    for seconds in range(1, 10):
        machine.passes(0.5, niced=0.5)
        cpu.look(machine.now, 0.0, seconds / 2)
    machine.passes(0.5, niced=0.4)
    assert cpu.look(machine.now, 0.0, 0.0) == pytest.approx(0.0)


def test_niced_programs_of_others_count(machine: FakeRoot) -> None:
    cpu = OthersCpu(machine.path / "proc")
    for _ in range(10):
        machine.passes(0.5, niced=1.0)
        share = cpu.look(machine.now, 0.0, 0.0)
    assert share == pytest.approx(1.0)


# --- programs


def test_the_busiest_programs_are_named_and_ours_are_not(machine: FakeRoot) -> None:
    programs = Programs(machine.path / "proc", lambda: [500])
    machine.process(500, "axon-peer", 1.0)
    machine.process(501, "bwrap", 1.0, parent=500)
    machine.process(502, "python", 1.0, parent=501)
    machine.process(10, "firefox", 50.0)
    machine.process(11, "sshd", 2.0)
    assert programs.walk(0.0) == ((), frozenset({"firefox", "sshd"}))
    machine.process(502, "python", 20.0, parent=501)
    machine.process(10, "firefox", 51.0)
    machine.process(11, "sshd", 2.01)
    for pid in range(20, 24):
        machine.process(pid, "cc1plus", 0.9)  # short-lived ones, together
    assert programs.walk(4.0)[0] == ("cc1plus", "firefox")


def test_names_with_brackets_and_spaces(machine: FakeRoot) -> None:
    machine.process(30, "Web) (Content", 1.0)
    assert "web) (content" in Programs(machine.path / "proc", list).walk(0.0)[1]


def test_programs_to_yield_to_are_known_by_the_fifteen_letters_that_the_kernel_keeps() -> None:
    wanted = frozenset({"blender", "a-very-long-program-name"})
    assert named(wanted, frozenset({"a-very-long-pro", "bash"})) == {"a-very-long-program-name"}


# --- memory and disk


def test_memory_and_disk(machine: FakeRoot) -> None:
    assert memory_free_mb(machine.path / "proc") == 8000
    assert memory_pressure(machine.path / "proc") == 3.5
    free = disk_free_mb(machine.path)
    assert free is not None
    assert free > 0


def test_what_the_kernel_does_not_tell(tmp_path: Path) -> None:
    assert memory_free_mb(tmp_path) is None
    assert memory_pressure(tmp_path) is None
    assert disk_free_mb(tmp_path / "gone") is None
    assert Power(tmp_path).read() == (None, None)
    assert Heat(tmp_path).read() is None
    assert OthersTraffic(tmp_path).look(1.0) is None
    assert Terminals(tmp_path).look(1.0, 1.0) is None


# --- power and heat


def supply(machine: FakeRoot, name: str, **files: str) -> None:
    for key, text in files.items():
        machine.write(f"sys/class/power_supply/{name}/{key}", f"{text}\n")


def test_a_laptop_on_the_mains_and_on_battery(machine: FakeRoot) -> None:
    supply(machine, "AC", type="Mains", online="1")
    supply(machine, "BAT0", type="Battery", status="Discharging", capacity="62")
    assert Power(machine.path).read() == (False, 62.0)
    supply(machine, "AC", online="0")
    assert Power(machine.path).read() == (True, 62.0)


def test_a_laptop_that_only_its_battery_tells_of(machine: FakeRoot) -> None:
    supply(machine, "BAT0", type="Battery", status="Discharging", capacity="40")
    supply(machine, "BAT1", type="Battery", status="Unknown", capacity="60")
    assert Power(machine.path).read() == (True, 50.0)


def test_the_battery_of_a_mouse_is_not_the_machines(machine: FakeRoot) -> None:
    supply(machine, "hidpp_battery_0", type="Battery", scope="Device", status="Discharging", capacity="5")
    assert Power(machine.path).read() == (False, None)


def test_the_hottest_sensor_of_the_processor_counts(machine: FakeRoot) -> None:
    machine.write("sys/class/hwmon/hwmon0/name", "nvme\n")
    machine.write("sys/class/hwmon/hwmon0/temp1_input", "99000\n")
    machine.write("sys/class/hwmon/hwmon1/name", "coretemp\n")
    machine.write("sys/class/hwmon/hwmon1/temp1_input", "71000\n")
    machine.write("sys/class/hwmon/hwmon1/temp2_input", "255000\n")  # a sensor that is broken
    machine.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    machine.write("sys/class/thermal/thermal_zone0/temp", "73500\n")
    assert Heat(machine.path).read() == 73.5


# --- network


def cards(machine: FakeRoot, **counts: int) -> None:
    lines = [f"  {name}: {count} 0 0 0 0 0 0 0 {count} 0 0 0 0 0 0 0" for name, count in counts.items()]
    machine.write("proc/net/dev", "\n".join(["Inter-|", " face |", *lines]) + "\n")


def test_traffic_over_real_cards_counts_once(machine: FakeRoot) -> None:
    machine.write("sys/class/net/eth0/device/vendor", "0x1\n")
    traffic = OthersTraffic(machine.path)
    cards(machine, lo=0, eth0=0, docker0=0)
    assert traffic.look(0.0) is None
    cards(machine, lo=9_000_000, eth0=1_000_000, docker0=1_000_000)
    assert traffic.look(2.0) == pytest.approx(8.0)


def test_connections_within_this_machine_are_not_counted_as_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as caller:
        accepted, _ = door.accept()
        with accepted:
            caller.sendall(b"x" * 1000)
            assert accepted.recv(1000)
            assert os.fstat(caller.fileno()).st_ino not in own_sockets()


# --- terminals


def terminal(machine: FakeRoot, name: str, read_at: float) -> None:
    os.utime(machine.write(f"dev/{name}", ""), (read_at, read_at))


def test_somebody_types_into_a_terminal(machine: FakeRoot) -> None:
    terminals = Terminals(machine.path)
    terminal(machine, "tty1", 1_000_000)
    terminal(machine, "pts/0", 1_000_400)
    terminal(machine, "pts/ptmx", 1_999_999)
    assert terminals.look(50.0, 1_000_500.0) == 100.0
    assert terminals.look(60.0, 1_000_510.0) == 110.0
    terminal(machine, "pts/0", 1_000_512)
    assert terminals.look(70.0, 1_000_520.0) == 0.0


def test_a_clock_that_is_set_makes_nobody_come_or_go(machine: FakeRoot) -> None:
    terminals = Terminals(machine.path)
    terminal(machine, "tty1", 1_000_000)
    assert terminals.look(50.0, 1_000_100.0) == 100.0
    assert terminals.look(60.0, 9_000_000.0) == 110.0
    assert terminals.look(70.0, 5.0) == 120.0


def test_whether_a_desktop_runs(machine: FakeRoot) -> None:
    terminals = Terminals(machine.path)
    assert not terminals.desktop_runs()
    machine.write("tmp/.X11-unix/X0", "")
    assert terminals.desktop_runs()
    machine.write("run/systemd/sessions/1", "CLASS=user\nTYPE=tty\n")
    os.mkfifo(machine.path / "run/systemd/sessions/1.ref")
    assert not terminals.desktop_runs()  # logind knows better
    machine.write("run/systemd/sessions/2", "CLASS=user\nTYPE=wayland\n")
    assert terminals.desktop_runs()
