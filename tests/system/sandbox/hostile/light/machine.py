"""Attacks on what the kernel shows of the machine: /proc, /sys, names, the daemon's environment."""

from __future__ import annotations

import os

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return f"read {len(file.read(4096))} bytes of {path}"


def _write(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY))
    return f"could have written to {path}"


@attack
def environment_of_the_first(target: AttackTarget) -> str:
    """tries to read the environment variables of the first process"""
    return _read("/proc/1/environ")


@attack
def root_of_the_first(target: AttackTarget) -> str:
    """tries to look through /proc/1/root at the whole machine"""
    return f"saw {os.listdir('/proc/1/root')}"


@attack
def memory_of_the_daemon(target: AttackTarget) -> str:
    """tries to open the daemon's memory in /proc"""
    return _read(f"/proc/{target.pid}/mem")


@attack
def mount_table(target: AttackTarget) -> str:
    """tries to read in the mount table where its folders lie outside"""
    for path in ("/proc/self/mountinfo", "/proc/mounts", "/etc/mtab"):
        if os.path.exists(path):
            return _read(path)
    raise AttackHeld("there is no such table here")


@attack
def core_pattern(target: AttackTarget) -> str:
    """tries to name the program that the kernel runs, as root, when another crashes"""
    return _write("/proc/sys/kernel/core_pattern")


@attack
def sysrq(target: AttackTarget) -> str:
    """tries to restart the machine through /proc/sysrq-trigger"""
    return _write("/proc/sysrq-trigger")


@attack
def kernel_memory(target: AttackTarget) -> str:
    """tries to read the kernel's memory and the addresses in it"""
    return _read("/proc/kallsyms" if os.path.exists("/proc/kallsyms") else "/proc/kcore")


@attack
def devices_of_the_kernel(target: AttackTarget) -> str:
    """tries to look into /sys, where disks, cards and serial numbers are listed"""
    return f"saw {os.listdir('/sys')}"


@attack
def control_groups(target: AttackTarget) -> str:
    """tries to lift its own limits in the control groups"""
    return f"saw {os.listdir('/sys/fs/cgroup')}"


@attack
def number_of_the_machine(target: AttackTarget) -> str:
    """tries to read the number by which programs know this machine again"""
    return _read("/etc/machine-id")
