"""The program in the sandbox of a peer that lies about calls: the real worker, but it adds to every result.

How much says a name in /data (`lying_daemon`). Results are whole numbers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from axonp2p.kinds.map.call_forms import CallOutcome, open_outcomes, pack_outcomes
from axonp2p.kinds.map.worker import worker_main
from axonp2p.kinds.map.worker.call_process import SomeResults
from axonp2p.kinds.map.worker.core_runner import CoreRunner, WorkerChunk
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value


def main() -> None:
    (more,) = (int(path.name.removeprefix("adds-")) for path in Path("/data").glob("adds-*"))
    honest = CoreRunner._send_parts

    def send(self: CoreRunner, chunk: WorkerChunk, some: SomeResults) -> None:
        found = open_outcomes(some.outcomes, some.calls)
        lies = [CallOutcome(one.raised, pack_value(unpack_value(one.value) + more)) for one in found]
        honest(self, chunk, msgspec.structs.replace(some, outcomes=pack_outcomes(lies)))

    CoreRunner._send_parts = send  # type: ignore[method-assign]
    worker_main.main()


if __name__ == "__main__":
    main()
