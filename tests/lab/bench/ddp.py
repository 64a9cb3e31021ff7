"""Baseline: torch's DistributedDataParallel over gloo. `python -m tests.lab.bench.ddp PART RANK`"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.lab.bench.member import Member
from tests.lab.bench.settings import Part

PORT = 29500


def main() -> None:
    part, rank = Part.read(sys.argv[1]), int(sys.argv[2])
    os.environ |= {
        "MASTER_ADDR": part.addresses[0],
        "MASTER_PORT": str(PORT),
        "RANK": str(rank),
        "WORLD_SIZE": str(part.members),
        "GLOO_SOCKET_IFNAME": part.device,
    }
    member = Member(part, rank)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    model = DistributedDataParallel(member.model)
    dist.barrier()
    member.report(0)
    for step in range(part.steps):
        member.gradients(model, step)
        member.optimizer.step()
        member.after_step(step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
