"""The worker that a hostile job runs in: takes its limits like any other, hears a job's name, and runs that."""

from __future__ import annotations

import sys

from axonp2p.errors import Unreachable
from axonp2p.sandbox.inside import Inside, apply_limits
from axonp2p.sandbox.messages import Control, Start, Started
from tests.system.sandbox.hostile.all_jobs import JOBS

PEACEFUL = "peaceful"
"""The name of a job that sends back what it gets."""


def main() -> None:
    """Run the job that the daemon names."""
    channel = Inside(int(sys.argv[1]))
    start, _ = channel.receive()
    assert isinstance(start, Start)
    apply_limits(start)
    channel.send(Started())
    channel.receive()
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
