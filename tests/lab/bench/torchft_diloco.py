"""Baseline: torchft's DiLoCo, whose lighthouse runs at the server. `python -m tests.lab.bench.torchft_diloco PART RANK`

H = `part.local_steps` inner steps of the task's own AdamW, then the members' differences are averaged in float32 over
gloo, and the outer optimiser of the paper (arXiv 2311.08105) takes a step: SGD, Nesterov, 0.7 and 0.9.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torchft import Manager, ProcessGroupGloo
from torchft.local_sgd import DiLoCo

from tests.lab.bench.member import Member, meet
from tests.lab.bench.settings import Part

OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9
LONGEST = timedelta(minutes=10)


def main() -> None:
    part, rank = Part.read(sys.argv[1]), int(sys.argv[2])
    os.environ["GLOO_SOCKET_IFNAME"] = part.device
    own = part.addresses[rank]
    socket.gethostname = lambda: own  # by it torchft tells others where it is; a host of the laboratory has no name
    member = Member(part, rank)
    store = dist.TCPStore(own, 0, is_master=True, wait_for_workers=False)
    outer = torch.optim.SGD(member.model.parameters(), lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True)

    def load_state_dict(kept: dict[str, Any]) -> None:
        member.model.load_state_dict(kept["model"])
        member.optimizer.load_state_dict(kept["inner"])
        outer.load_state_dict(kept["outer"])

    def state_dict() -> dict[str, Any]:
        states = {"inner": member.optimizer.state_dict(), "outer": outer.state_dict()}
        return {"model": member.model.state_dict()} | states

    manager = Manager(
        pg=ProcessGroupGloo(timeout=LONGEST),
        load_state_dict=load_state_dict,
        state_dict=state_dict,
        min_replica_size=part.members,
        use_async_quorum=False,
        timeout=LONGEST,
        quorum_timeout=LONGEST,
        connect_timeout=LONGEST,
        rank=0,
        world_size=1,
        store_addr=own,
        store_port=store.port,
        lighthouse_addr=part.server,
        replica_id=f"member-{rank}",
        hostname=own,
        init_sync=False,  # all begin with the same weights, as everybody's members do
    )
    meet(part, rank, "ready")
    with DiLoCo(manager, [member.model], member.optimizer, outer, sync_every=part.local_steps, pin_memory=False):
        member.report(0)
        for step in range(part.steps):
            member.gradients(member.model, step)
            member.optimizer.step()  # every H-th one exchanges, in torchft's hook
            member.after_step(step)
    meet(part, rank, "done")
    manager.shutdown(wait=False)


if __name__ == "__main__":
    main()
    os._exit(0)  # torchft's threads would hold the process
