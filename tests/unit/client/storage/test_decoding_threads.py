"""Records and events are read by several threads of a client, which may be the first ones to do so."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRIAL = """
import sys, threading
import {module} as module
from axonp2p.wire.json_form import decode_json
from msgspec import DecodeError

sys.setswitchinterval(1e-6)  # each thread is interrupted within whatever it does
together = threading.Barrier(6)

def decode():
    together.wait()
    try:
        decode_json(b"{{}}", {kind})
    except DecodeError:
        pass

threads = [threading.Thread(target=decode) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("axonp2p.kinds.train.record", "module.TrainRecord"),
        ("axonp2p.kinds.run.record", "module.RunRecord"),
        ("axonp2p.client.events.events", "module.any_event()"),
        ("axonp2p.client.leasing.kept_leases", "list[module.KeptLease]"),
    ],
)
def test_threads_that_begin_to_decode_together_come_to_an_end(module: str, kind: str) -> None:
    """Without `ready_to_decode` four of five ended by a signal."""
    trial = TRIAL.format(module=module, kind=kind)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", trial], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
