"""The worker that a hostile job runs in: takes its limits like any other, hears a job's name, and runs that."""

from __future__ import annotations

from axonp2p.errors import Unreachable
from axonp2p.sandbox.inside import Inside, begin_trial
from axonp2p.sandbox.messages import Control
from tests.system.sandbox.hostile.all_jobs import JOBS

PEACEFUL = "peaceful"
"""The name of a job that sends back what it gets."""


def main() -> None:
    """Run the job that the daemon names."""
    channel, _ = begin_trial()
    _, payload = channel.receive()
    name = bytes(payload).decode()
    if name == PEACEFUL:
        send_back(channel)
    else:
        JOBS[name].how(channel)


def send_back(channel: Inside) -> None:
    """Until the daemon closes the channel."""
    try:
        while True:
            _, payload = channel.receive()
            channel.send(Control(), payload)
    except Unreachable:
        return


if __name__ == "__main__":
    main()
