"""Logs in a person's own program: silent, until that sets logging up."""

from __future__ import annotations

import subprocess
import sys

LIBRARY = """
import logging
from axonp2p.logs import get_logger

log = get_logger("axonp2p.client.x")
log.debug("worker started", peer="otter")
log.error("a lease failed", peer="otter")
{setup}
log.info("worker started", peer="otter", seconds=3.43)
"""


def said(setup: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", LIBRARY.format(setup=setup)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout, done.stderr


def test_a_program_that_says_nothing_of_logs_sees_none() -> None:
    assert said("") == ("", "")


def test_whoever_sets_logging_up_sees_a_line_of_text() -> None:
    setup = 'logging.basicConfig(level="INFO", format="%(name)s %(levelname)s %(message)s")'
    assert said(setup) == ("", "axonp2p.client.x INFO worker started peer='otter' seconds=3.43\n")


def test_what_another_library_sets_for_structlog_is_left_alone() -> None:
    setup = "import structlog; structlog.configure(processors=[structlog.processors.JSONRenderer()])"
    assert said(setup) == ("", "")
