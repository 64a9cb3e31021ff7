"""Axon: train PyTorch models on machines that people lend.

    import axonp2p

    with axonp2p.Swarm(trackers=["https://..."]) as swarm:
        job = swarm.submit("my-job/")
        for event in job.events():
            print(event)
        weights = job.fetch()

Rooms, from the ground up: errors, clock | identity, settings, logs | wire | transport | table, peers, reservation,
jobs, ledger, sandbox | tensors | training | client. Imports only go down; nothing below tensors imports torch.
"""

__version__ = "0.1.0"
