"""Attacks by another entrance of the kernel than a filter may watch: 32-bit and x32 calls, on x86 machines."""

from __future__ import annotations

import os
import platform

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack
from axonp2p.sandbox.attacks.each_wall import call_by_int_0x80
from tests.system.sandbox.hostile.light.kernel import NUMBERS, REFUSALS, syscall

_X32 = 0x40000000
_I386_MOUNT = 21


@attack
def mount_32_bits(target: AttackTarget) -> str:
    """tries to mount by a 32-bit call, whose number is another one"""
    answer = call_by_int_0x80(_I386_MOUNT)
    if -answer in REFUSALS:
        raise OSError(-answer, os.strerror(-answer))
    return f"reached mount, which answered {answer}"


@attack
def call_x32(target: AttackTarget) -> str:
    """tries to reach the kernel by numbers of the x32 kind"""
    if platform.machine() != "x86_64":
        raise AttackHeld(f"{platform.machine()} has no such calls")
    answer = syscall(_X32 | 39)
    if answer == os.getpid():
        return "was told its number by an x32 call"
    raise OSError(-answer, os.strerror(-answer))


@attack
def trace_x32(target: AttackTarget) -> str:
    """tries to trace a process by the number that ptrace has in x32"""
    if platform.machine() != "x86_64":
        raise AttackHeld(f"{platform.machine()} has no such calls")
    answer = syscall(_X32 | 521, 0, 0, None, None)
    if -answer in REFUSALS:
        raise OSError(-answer, os.strerror(-answer))
    return f"reached ptrace, which answered {answer}"


@attack
def number_with_high_bits(target: AttackTarget) -> str:
    """tries to fool a filter with bits above a call's number"""
    if platform.machine() != "x86_64":
        raise AttackHeld("other machines ignore them")
    answer = syscall((1 << 32) | NUMBERS["unshare"][0], 0x10000000)
    if answer >= 0:
        return "made a user namespace"
    raise OSError(-answer, os.strerror(-answer))
