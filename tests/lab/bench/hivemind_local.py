"""Baseline: hivemind's own Optimizer with local updates and delayed averaging.

`python -m tests.lab.bench.hivemind_local PART RANK`

Each member takes its own steps; once all together have taken `part.local_steps` each, their weights are averaged in the
background, in 32 bits, while they go on. All other settings are hivemind's own, but for the time in which a member
looks for its group: 3 s, as its documentation advises for few peers. One that finds none goes on with its own weights.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

import hivemind

from tests.lab.bench.hivemind_peer import join
from tests.lab.bench.member import Member, meet
from tests.lab.bench.settings import Part

MATCHMAKING_S = 3.0


def main() -> None:
    part, rank = Part.read(sys.argv[1]), int(sys.argv[2])
    member = Member(part, rank)
    dht = join(part, rank)
    optimizer = hivemind.Optimizer(
        dht=dht,
        run_id="bench",
        target_batch_size=part.members * part.batch * part.local_steps,
        batch_size_per_step=part.batch,
        optimizer=member.optimizer,
        use_local_updates=True,
        delay_state_averaging=True,
        matchmaking_time=MATCHMAKING_S,
        averaging_timeout=part.patience,
        averager_opts={"bandwidth": part.bandwidth[rank] if part.bandwidth else None},
    )
    meet(part, rank, "ready")
    member.report(0)
    for step in range(part.steps):
        member.gradients(member.model, step)
        optimizer.step()
        member.after_step(step)
    meet(part, rank, "done")
    for child in multiprocessing.active_children():  # its own shutdown waits for ever now and then
        child.kill()


if __name__ == "__main__":
    main()
    os._exit(0)
