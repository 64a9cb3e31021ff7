"""Logs: one event a line with key=value pairs, for people on a terminal and as JSON for machines.

One logger a module (`log = get_logger(__name__)`), few lines, short peer names, never a secret.
"""

from __future__ import annotations

import logging
import sys
from typing import cast

import structlog


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of one module."""
    return cast(structlog.stdlib.BoundLogger, structlog.get_logger(name))


def configure_logs(*, level: str = "info", as_json: bool = False) -> None:
    """Send all logs to stderr, the standard library's (aiohttp's) too. Called once, by a program's main."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=as_json),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24)
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("aiohttp.access").setLevel("WARNING")
    if level != "debug":
        # It tells, with a traceback each, of strangers who do not speak HTTP. Our own errors never get that far.
        logging.getLogger("aiohttp.server").setLevel("CRITICAL")
        # The ids of DHT nodes as long numbers mean nothing to people; our own lines say what matters.
        logging.getLogger("kademlia").setLevel("WARNING")
