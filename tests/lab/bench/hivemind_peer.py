"""Baseline: hivemind averages the gradients of every step. `python -m tests.lab.bench.hivemind_peer PART RANK`

Its averager is stepped by hand, with the group's size known and each line's rate declared: no waiting for a group that
might still grow, and none for the progress tracker of its Optimizer. That is the fastest that it can be had. Now and
then a group is not found, or does not end: its members then go on with their own gradients, and count it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import hivemind
import torch
from hivemind.compression import NoCompression, Uniform8BitQuantization

from tests.lab.bench.member import Member, meet
from tests.lab.bench.settings import Part


def main() -> None:
    part, rank = Part.read(sys.argv[1]), int(sys.argv[2])
    member = Member(part, rank)
    dht = join(part, rank)
    values = [parameter for parameter in member.model.parameters() if parameter.requires_grad]
    averager = hivemind.DecentralizedAverager(
        [torch.zeros_like(value) for value in values],
        dht,
        prefix="bench",
        target_group_size=part.members,
        min_group_size=part.members,
        bandwidth=part.bandwidth[rank] if part.bandwidth else None,
        compression=Uniform8BitQuantization() if part.bits == 8 else NoCompression(),
        start=True,
    )
    meet(part, rank, "ready")
    member.report(0)
    for step in range(part.steps):
        member.gradients(member.model, step)
        member.failed += not _average(averager, values, part.patience)
        member.take_step()
        member.after_step(step)
    meet(part, rank, "done")
    averager.shutdown()
    dht.shutdown()


def _average(averager: Any, values: list[torch.nn.Parameter], patience: float) -> bool:
    with averager.get_tensors() as tensors, torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value.grad)
    try:
        averager.step(timeout=patience)
    except Exception as error:  # of whatever kind hivemind has for it
        print("not averaged:", repr(error), flush=True)
        return False
    with averager.get_tensors() as tensors, torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            value.grad.copy_(tensor)
    return True


def join(part: Part, rank: int) -> Any:
    """A DHT of all members, which they find by a file of the first one's."""
    door = Path(part.reports) / "door.json"
    listen = [f"/ip4/{part.addresses[rank]}/tcp/0"]
    if rank == 0:
        dht = hivemind.DHT(host_maddrs=listen, start=True)
        door.with_suffix(".new").write_text(json.dumps([str(address) for address in dht.get_visible_maddrs()]))
        os.rename(door.with_suffix(".new"), door)
        return dht
    while not door.exists():
        time.sleep(0.1)
    return hivemind.DHT(host_maddrs=listen, initial_peers=json.loads(door.read_text()), start=True)


if __name__ == "__main__":
    main()
