"""The form of an attack, and the facts that it is told about the machine outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec


class AttackTarget(msgspec.Struct, frozen=True):
    """The targets of an attacker who knows this machine well. All of it lies outside of the sandbox."""

    pid: int
    """Of the process that started the sandbox; it leads no group inside."""
    hostname: str
    home: str
    """The home folder of the person."""
    secret: str
    """A file that anyone may read."""
    port: int
    """On loopback, where somebody listens."""
    abstract: str
    """An abstract Unix socket where somebody listens, without the zero byte."""
    variables: tuple[str, ...]
    """Names of environment variables that only the process outside has."""
    gpu_nodes: tuple[str, ...] = ()
    """The nodes of the GPU that the attacker was given; none where it has no GPU."""


class AttackHeld(Exception):
    """The attack was stopped by something that is no error of the operating system; says by what."""


@dataclass(frozen=True)
class Attack:
    """One way to try the wall.

    `how` gives back what it got hold of; `OSError` and `AttackHeld` say that nothing was to be had.
    """

    name: str
    tries: str
    """Its attempt, for people: "tries to read the passwords of this machine"."""
    how: Callable[[AttackTarget], str]


def attack(how: Callable[[AttackTarget], str]) -> Attack:
    """Make a function an attack; its name and its docstring are those of the attack."""
    return Attack(how.__name__.replace("_", "-"), (how.__doc__ or "").strip(), how)


class Tried(msgspec.Struct, frozen=True):
    """How an attack went."""

    name: str
    tries: str
    held: bool
    """Whether the wall held."""
    said: str
    """The error that stopped the attack, or the thing that it got hold of."""
