"""The worker that tries all attacks, each in a child of its own, and reports them: `python -m ... CHANNEL`."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path
from types import ModuleType

import msgspec

from axonp2p.sandbox.attacks import calls, descriptors, files, machine, machine_code, network, processes
from axonp2p.sandbox.attacks.attack import Attack, AttackHeld, AttackTarget, Tried
from axonp2p.sandbox.inside import Inside, apply_limits
from axonp2p.sandbox.messages import Control, Start, Started

ATTEMPT_S = 5.0
TARGET = "target.json"
"""In the job's folder."""
_SAID = 300
"""Characters of what an attack says that are reported."""


def _attacks_of(module: ModuleType) -> list[Attack]:
    return [value for value in vars(module).values() if isinstance(value, Attack)]


ATTACKS: tuple[Attack, ...] = (
    *_attacks_of(files),
    *_attacks_of(machine),
    *_attacks_of(network),
    *_attacks_of(processes),
    *_attacks_of(descriptors),
    *calls.ATTACKS,
    *_attacks_of(machine_code),
)
"""All of them, each harmless and a matter of milliseconds."""


def main() -> None:
    """Take the limits as every worker does, try, and report."""
    channel = Inside(int(sys.argv[1]))
    start, _ = channel.receive()
    assert isinstance(start, Start)
    apply_limits(start)
    channel.send(Started())
    channel.receive()
    target = msgspec.json.decode(Path("/job", TARGET).read_bytes(), type=AttackTarget)
    channel.send(Control(), msgspec.json.encode([attempt(attack, target) for attack in ATTACKS]))


def attempt(attack: Attack, target: AttackTarget) -> Tried:
    """Try it in a child, which a filter may end, and which takes with it what it changed of itself."""
    hear, tell = os.pipe()
    descriptors.OPENED[:] = [hear, tell]
    child = os.fork()
    if child == 0:
        try:
            os.write(tell, msgspec.json.encode(_go(attack, target)))
        finally:
            os._exit(0)
    os.close(tell)
    heard = b""
    if select.select([hear], [], [], ATTEMPT_S)[0]:
        heard = os.read(hear, 16 * 1024)
    os.close(hear)
    if not heard:
        # Also one that still waits is over now.
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if heard:
        return msgspec.json.decode(heard, type=Tried)
    return Tried(attack.name, attack.tries, True, _without_a_word(os.waitstatus_to_exitcode(status)))


def _without_a_word(code: int) -> str:
    if code == -signal.SIGKILL:
        return "it waited in vain"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _go(attack: Attack, target: AttackTarget) -> Tried:
    try:
        held, said = False, attack.how(target)
    except OSError as error:
        held, said = True, error.strerror or str(error)
    except AttackHeld as reason:
        held, said = True, str(reason)
    except Exception as mistake:  # the edge of an attempt: an attack that fails by itself proves nothing
        held, said = False, f"could not be tried: {mistake!r}"
    return Tried(attack.name, attack.tries, held, said[:_SAID])


if __name__ == "__main__":
    main()
