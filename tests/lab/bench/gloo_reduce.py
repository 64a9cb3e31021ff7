"""Baseline: gloo's all_reduce of a vector, several times. `python -m tests.lab.bench.gloo_reduce PART RANK VALUES`

Before each of them a member takes the same trivial step as a member of ours (`jobs.write_exchange`), and nobody waits
at a barrier: whoever is ready first waits inside, as in a training.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from tests.lab.bench.ddp import PORT
from tests.lab.bench.settings import Part


def main() -> None:
    part, rank, values = Part.read(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    os.environ |= {
        "MASTER_ADDR": part.addresses[0],
        "MASTER_PORT": str(PORT),
        "RANK": str(rank),
        "WORLD_SIZE": str(part.members),
        "GLOO_SOCKET_IFNAME": part.device,
    }
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    vector = torch.zeros(values, requires_grad=True)
    optimizer = torch.optim.SGD([vector], lr=1e-9)
    moments = []
    dist.barrier()
    for _ in range(part.steps):
        optimizer.zero_grad()
        (vector.sum() - 1).square().backward()
        optimizer.step()
        ready = time.monotonic()
        dist.all_reduce(vector.detach())
        moments.append((ready, time.monotonic()))
    dist.barrier()
    (Path(part.reports) / f"{rank}.json").write_text(json.dumps(moments))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
