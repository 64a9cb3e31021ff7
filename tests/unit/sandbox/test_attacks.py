"""The attacks on the wall are real ones: where there is no wall, those that harm nothing get through."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from axonp2p.sandbox.attacks import run
from axonp2p.sandbox.attacks.attack import Attack, AttackHeld, AttackTarget
from axonp2p.sandbox.attacks.inside import attempt
from axonp2p.sandbox.child import WorkerEnd
from axonp2p.wire.codec import Message
from tests.system.sandbox.hostile.light.inside import ATTACKS

GET_THROUGH = """
    home-folder secret-file other-job link-to-the-outside variables-of-the-daemon mount-table
    list-of-processes devices-of-the-kernel name-of-the-machine loopback unix-socket abstract-socket
    signal-to-the-daemon limits-of-the-daemon user-of-the-daemon left-rights laid-limits descriptor-folder
    daemon-behind-the-channel shared-memory shared-zeros program-in-memory
""".split()  # noqa: SIM905


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttackTarget]:
    (tmp_path / "neighbour").mkdir()
    (tmp_path / "secret").write_text("not for strangers\n")
    monkeypatch.setenv("AXON_SECRET", "swordfish")
    channel, other_end = socket.socketpair()
    monkeypatch.setattr("sys.argv", ["attacks", str(channel.fileno())])
    abstract = f"axon-test-{os.getpid()}"
    with (
        channel,
        other_end,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as nameless,
    ):
        local.bind(str(tmp_path / "socket"))
        nameless.bind(f"\0{abstract}")
        local.listen()
        nameless.listen()
        yield AttackTarget(
            pid=os.getpid(),
            hostname=socket.gethostname(),
            home=str(Path.home()),
            secret=str(tmp_path / "secret"),
            port=tcp.getsockname()[1],
            abstract=abstract,
            variables=("AXON_SECRET",),
        )


@pytest.mark.parametrize("name", GET_THROUGH)
def test_without_a_wall_it_gets_through(target: AttackTarget, name: str) -> None:
    tried = attempt(next(attack for attack in ATTACKS if attack.name == name), target)
    assert not tried.held, tried.said


def held(target: AttackTarget) -> str:
    raise AttackHeld("a wall")


def refused(target: AttackTarget) -> str:
    raise PermissionError(1, "Operation not permitted")


def mistaken(target: AttackTarget) -> str:
    raise ValueError("a mistake")


def ended(target: AttackTarget) -> str:
    os.kill(os.getpid(), 31)
    return "not reached"


def test_what_stopped_an_attack_is_told_and_a_mistake_of_its_own_proves_nothing(target: AttackTarget) -> None:
    told = [attempt(Attack(how.__name__, "tries it", how), target) for how in (held, refused, mistaken, ended)]
    assert [(tried.held, tried.said) for tried in told] == [
        (True, "a wall"),
        (True, "Operation not permitted"),
        (False, "could not be tried: ValueError('a mistake')"),
        (True, "ended by SIGSYS"),
    ]


class _Starved:
    """A worker that never has its turn."""

    def __init__(self) -> None:
        self.channel = self

    async def send(self, message: Message) -> None:
        pass

    async def receive(self) -> None:
        await asyncio.Event().wait()

    async def kill(self) -> WorkerEnd:
        return WorkerEnd("was ended by this peer", "", "")


async def test_an_attacker_that_a_busy_computer_gives_no_turn_is_said_to_be_one(monkeypatch):
    monkeypatch.setattr(run, "_WAIT_S", 0.01)
    (tried,) = await run.hear(_Starved(), ATTACKS[:1])
    assert not tried.held
    assert "nothing came of it in 0.01 s: this computer is busy" in tried.said
