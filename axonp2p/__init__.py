"""Axon: train PyTorch models on machines that people lend.

    import axonp2p

    with axonp2p.Swarm(trackers=["https://..."]) as swarm:
        job = swarm.submit("my-job/")
        for event in job.events():
            print(event)
        weights = job.fetch()

docs/python.md has more of it; `axonp2p.events` has the classes of events.
Rooms, from the ground up: errors, clock | identity, settings, logs | wire | transport | table, peers, reservation,
jobs, ledger, sandbox | tensors | training | client. Imports only go down; nothing below tensors imports torch.
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonp2p import events as events
    from axonp2p.client.swarm import Swarm as Swarm
    from axonp2p.errors import TaskError as TaskError
    from axonp2p.kinds.map.calls.executor import Executor as Executor
    from axonp2p.loggers.opening import open_logger as open_logger
    from axonp2p.training.muon import muon as muon
    from axonp2p.training.trainer.weights import load_weights as load_weights


_OF_CALLS = {
    "Executor": "axonp2p.kinds.map.calls.executor:Executor",
    "TaskError": "axonp2p.errors:TaskError",
}


def __getattr__(name: str) -> Any:
    # Only when it is asked for (PEP 562): a tracker or a daemon that imports a room must not load the client with it.
    if name == "Swarm":
        from axonp2p.client.swarm import Swarm

        return Swarm
    if name in _OF_CALLS:
        from axonp2p.jobs.kinds import load

        return load(_OF_CALLS[name])
    if name == "load_weights":
        from axonp2p.jobs.kinds import load

        return load("axonp2p.training.trainer.weights:load_weights")
    if name == "muon":
        from axonp2p.jobs.kinds import load

        return load("axonp2p.training.muon:muon")
    if name == "open_logger":
        from axonp2p.loggers.opening import open_logger

        return open_logger
    if name == "events":
        import importlib

        return importlib.import_module("axonp2p.events")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
