"""The worker that makes all light attacks, those of `axon-peer doctor` and those that are for tests alone."""

from __future__ import annotations

from types import ModuleType

from axonp2p.sandbox.attacks import each_wall, with_gpu
from axonp2p.sandbox.attacks.attack import Attack
from axonp2p.sandbox.attacks.inside import report
from tests.system.sandbox.hostile.light import calls, descriptors, files, machine, machine_code, network, processes


def _attacks_of(module: ModuleType) -> list[Attack]:
    return [value for value in vars(module).values() if isinstance(value, Attack)]


ATTACKS: tuple[Attack, ...] = (
    *each_wall.ATTACKS,
    *with_gpu.GPU_ATTACKS,
    *(attack for module in (files, machine, network, processes, descriptors) for attack in _attacks_of(module)),
    *calls.ATTACKS,
    *_attacks_of(machine_code),
)
"""All of them, each harmless and a matter of milliseconds."""

if __name__ == "__main__":
    report(ATTACKS)
