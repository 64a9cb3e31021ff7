"""Baseline: Flower's FedAvg. Each round its clients take local steps from the server's weights and send theirs back.

A client keeps its AdamW from round to round in a file, as Axon's members keep theirs; Flower itself keeps nothing
between two messages. Clients evaluate at a round's start what the last round led to, so at the end they are sent the
last weights once more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from tests.lab.bench.member import Member
from tests.lab.bench.settings import Part

server = ServerApp()
client = ClientApp()


def _part() -> Part:
    return Part.read(os.environ["BENCH_PART"])


@server.main()
def serve(grid: Grid, context: Context) -> None:
    """All rounds."""
    part = _part()
    everybody: dict[str, Any] = {"min_train_nodes": part.members, "min_available_nodes": part.members}
    first = ArrayRecord(Member(part, 0).model.state_dict())
    rounds = part.steps // part.local_steps
    training = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, **everybody)
    found = training.start(grid=grid, initial_arrays=first, num_rounds=rounds, timeout=3600)
    everybody["min_evaluate_nodes"] = part.members
    end = FedAvg(fraction_train=0.0, fraction_evaluate=1.0, **everybody)
    end.start(grid=grid, initial_arrays=found.arrays, num_rounds=1, timeout=3600)


@client.train()
def train(message: Message, context: Context) -> Message:
    """One round's local steps of one client."""
    part = _part()
    member = _member(part, message, context)
    done = (int(message.content["config"]["server-round"]) - 1) * part.local_steps
    member.report(done, evaluate=done > 0)
    kept = Path(part.reports) / f"optimizer-{member.rank}.pt"
    if kept.exists():
        member.optimizer.load_state_dict(torch.load(kept))
    for step in range(done, done + part.local_steps):
        member.gradients(member.model, step)
        member.take_step()
    torch.save(member.optimizer.state_dict(), kept)
    metrics = MetricRecord({"num-examples": part.local_steps * part.batch})
    content = RecordDict({"arrays": ArrayRecord(member.model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


@client.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Of the last weights."""
    part = _part()
    _member(part, message, context).report(part.steps, evaluate=True)
    return Message(content=RecordDict({"metrics": MetricRecord({"num-examples": 1})}), reply_to=message)


def _member(part: Part, message: Message, context: Context) -> Member:
    """With the weights that the server sent."""
    member = Member(part, int(context.node_config["partition-id"]))
    member.model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return member
