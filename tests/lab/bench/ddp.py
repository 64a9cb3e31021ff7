"""Baseline: torch's DistributedDataParallel over gloo, as it is or with a communication hook of torch's own.

`python -m tests.lab.bench.ddp PART RANK`
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from tests.lab.bench.member import Member
from tests.lab.bench.settings import Part

PORT = 29500
FP16, POWERSGD = "fp16", "powersgd"
WHOLE_MB = 1000
RANK, DENSE_STEPS = 4, 2
"""PowerSGD's rank, and after how many dense steps it begins: the fewest that it allows."""


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
    # The hook of PowerSGD begins the second exchange of a bucket in a callback. Over gloo those of two buckets come in
    # another order at each member, which ends the program: so it has one bucket.
    model = DistributedDataParallel(member.model, bucket_cap_mb=WHOLE_MB if part.hook == POWERSGD else None)
    _compress(model, part.hook)
    dist.barrier()
    member.report(0)
    for step in range(part.steps):
        member.gradients(model, step)
        member.take_step()
        member.after_step(step)
    dist.barrier()
    dist.destroy_process_group()


def _compress(model: DistributedDataParallel, hook: str) -> None:
    if hook == FP16:
        # torch refuses bf16_compress_hook where there is no NCCL. This one sends as many bytes, over gloo too.
        model.register_comm_hook(None, fp16_compress_hook)
    elif hook == POWERSGD:
        state = PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=DENSE_STEPS)
        model.register_comm_hook(state, powerSGD_hook)


if __name__ == "__main__":
    main()
