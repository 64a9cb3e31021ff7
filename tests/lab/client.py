"""A client's program that prints a job's events. `python -m tests.lab.client submit|resume JOB TRACKER HOME`"""

from __future__ import annotations

import json
import sys
import time

import axonp2p
from axonp2p.client.events.event import Event
from axonp2p.client.events.events import as_line
from axonp2p.errors import AxonError
from axonp2p.logs import configure_logs


def tell(event: Event) -> None:
    """A line of JSON, at once."""
    print(json.dumps(json.loads(as_line(event)) | {"at": time.monotonic()}), flush=True)


def main() -> None:
    configure_logs()
    what, job, tracker, home = sys.argv[1:]
    with axonp2p.Swarm(trackers=[tracker], home=home) as swarm:
        running = swarm.submit(job) if what == "submit" else swarm.resume(job)
        try:
            for event in running.events():
                tell(event)
        except AxonError as error:
            sys.exit(f"{error!r}: {error.cause}")


if __name__ == "__main__":
    main()
