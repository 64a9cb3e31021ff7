"""Logs: silent in a person's own program, until that sets logging up; without asyncio's noise in ours."""

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

CALLER_GONE_IN_THE_MIDDLE = """
import asyncio, contextlib, socket
from axonp2p.logs import configure_logs

class More(asyncio.Protocol):  # as TLS of the standard library does
    def connection_made(self, transport): self.transport = transport
    def resume_writing(self): self.transport.write(b"more")

async def main():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    ours.setblocking(False)
    transport, _ = await asyncio.get_running_loop().create_connection(More, sock=ours)
    transport.set_write_buffer_limits(high=1)
    while not transport.get_write_buffer_size():
        transport.write(bytes(1 << 16))
    caller.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        while caller.recv(1 << 20): pass
    caller.close()
    while not transport.is_closing():
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)

{setup}
asyncio.run(main())
"""


def said(setup: str, program: str = LIBRARY) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program.format(setup=setup)], capture_output=True, text=True, timeout=60, check=True
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


def test_a_caller_that_leaves_while_it_is_written_to_costs_no_traceback() -> None:
    assert said("configure_logs()", CALLER_GONE_IN_THE_MIDDLE) == ("", "")
    assert "_call_connection_lost" in said("", CALLER_GONE_IN_THE_MIDDLE)[1]  # Python's own fault, until it is mended
