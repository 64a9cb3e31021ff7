"""The worker that tries the attacks, each in a child of its own, and reports them: `python -m ... CHANNEL`."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from axonp2p.sandbox.attacks.attack import Attack, AttackHeld, AttackTarget, Tried
from axonp2p.sandbox.attacks.each_wall import ATTACKS, OPENED
from axonp2p.sandbox.attacks.with_gpu import GPU_ATTACKS
from axonp2p.sandbox.inside import begin_trial
from axonp2p.sandbox.messages import Control

ATTEMPT_S = 5.0
TARGET = "target.json"
"""In the job's folder."""
_SAID = 300
"""Characters of what an attack says that are reported."""


def report(attacks: Sequence[Attack], with_gpu: Sequence[Attack] = ()) -> None:
    """Take the limits as every worker does, try these attacks, and report; `with_gpu`: where it was given a GPU."""
    channel, start = begin_trial()
    more = with_gpu if start.devices else ()
    target = msgspec.json.decode(Path("/job", TARGET).read_bytes(), type=AttackTarget)
    channel.send(Control(), msgspec.json.encode([attempt(attack, target) for attack in (*attacks, *more)]))


def attempt(attack: Attack, target: AttackTarget) -> Tried:
    """Try it in a child, which a filter may end, and which takes with it what it changed of itself."""
    hear, tell = os.pipe()
    OPENED[:] = [hear, tell]
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
    report(ATTACKS, GPU_ATTACKS)
