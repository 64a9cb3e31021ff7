"""A worker that was given a card, and cannot compute on one, ends and says what mends it."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys

import pytest
import torch

from axonp2p.sandbox.messages import Start
from axonp2p.wire.frame import pack_frame

IN_A_FOLDER = """
import sys
from pathlib import Path
from axonp2p.sandbox import inside
from axonp2p.training.worker import worker_main
inside.apply_limits = lambda start: None  # what they keep from it are folders that a sandbox has elsewhere
worker_main.BUNDLE = worker_main.SCRATCH = Path(sys.argv[2])
worker_main.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is built with CUDA")
def test_it_is_named_in_the_jobs_log(tmp_path):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        start = pack_frame(Start(cores=1, memory_mb=2**14, processes=64, open_files=256, file_mb=64))
        ours.sendall(struct.pack(">I", len(start)) + start)
        done = subprocess.run(
            [sys.executable, "-s", "-P", "-c", IN_A_FOLDER, str(theirs.fileno()), str(tmp_path)],
            env={**os.environ, "AXON_DEVICE": "cuda"}, pass_fds=[theirs.fileno()], capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
    assert done.returncode == 3
    assert f"the worker ends: this worker was given a card, and its torch ({torch.__version__})" in done.stderr
    assert "fix: rm .venv/installed; scripts/install" in done.stderr
