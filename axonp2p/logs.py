"""Logs: one event a line, as a sentence at a terminal, with key=value pairs in a file, as JSON for machines.

One logger a module (`log = get_logger(__name__)`), few lines, short peer names, never a secret. They are loggers of the
standard library, below `axonp2p`: a program of ours shows them (`configure_logs`); in a person's own program they are
silent until that sets logging up for itself.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import ModuleType
from typing import cast

# structlog loads all of rich, 5 MB, for tracebacks that it would draw; a daemon draws none.
_rich = sys.modules.pop("rich", None)
sys.modules["rich"] = cast(ModuleType, None)
import structlog  # noqa: E402

from axonp2p.log_sentences import sentence_of  # noqa: E402

del sys.modules["rich"]
if _rich is not None:
    sys.modules["rich"] = _rich

FILE_BYTES = 5_000_000
OLD_FILES = 2
_SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
]
logging.getLogger("axonp2p").addHandler(logging.NullHandler())


class _Line(dict[str, object]):
    """The content of one call: a mapping for our own formatters, and text for anybody else's."""

    def __str__(self) -> str:
        more = (f"{name}={value!r}" for name, value in self.items() if name not in ("event", "level", "exc_info"))
        return " ".join([str(self.get("event", "")), *more])


def _as_line(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return cast(structlog.typing.EventDict, _Line(event))


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of one module. structlog's own settings are left to whoever else uses it in the same program."""
    return cast(
        structlog.stdlib.BoundLogger,
        structlog.wrap_logger(
            logging.getLogger(name),
            processors=[
                structlog.stdlib.filter_by_level,
                *_SHARED,
                _as_line,
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
        ),
    )


def configure_logs(
    *,
    level: str = "info",
    as_json: bool = False,
    file: Path | None = None,
    sentences: Mapping[str, str] | None = None,
) -> None:
    """Send all logs to stderr, the standard library's (aiohttp's) too; and to `file`, with dates and without colour.

    With `sentences` (templates by event) a person at a terminal reads those; `debug` shows every fact.
    Called once, by a program's main. The file is begun anew when it is full; `OLD_FILES` full ones are kept beside it.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    terminal = sys.stderr.isatty()
    plain = terminal and not as_json and level != "debug"
    told = sentences if plain else None
    handlers[0].setFormatter(_formatter(as_json, "%H:%M:%S", colours=terminal, sentences=told))
    if file is not None:
        handlers.append(_LogFile(file, maxBytes=FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8", delay=True))
        handlers[1].setFormatter(_formatter(as_json, "%Y-%m-%d %H:%M:%S", colours=False))
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(level.upper())
    logging.getLogger("aiohttp.access").setLevel("WARNING")
    logging.getLogger("asyncio").addFilter(_is_no_second_end)
    if level != "debug":
        # It tells, with a traceback each, of strangers who do not speak HTTP. Our own errors never get that far.
        logging.getLogger("aiohttp.server").setLevel("CRITICAL")
        # The ids of DHT nodes as long numbers mean nothing to people; our own lines say what matters.
        logging.getLogger("kademlia").setLevel("WARNING")


def _is_no_second_end(record: logging.LogRecord) -> bool:
    """False for asyncio's traceback of a connection that ends a second time, which a stranger can cause at will.

    A caller that closes while our writing to it is paused makes the rest go out, TLS write more within the same call,
    and that fail: asyncio (3.11 to 3.14) ends the connection at once and once more in the loop's next step, when
    nothing is left of it. Only the traceback comes of it: all is closed by then.
    """
    error = record.exc_info[1] if record.exc_info else None
    ended_twice = isinstance(error, AttributeError) and error.obj is None
    return not (ended_twice and "._call_connection_lost(" in record.getMessage())


class _Sentences:
    def __init__(self, templates: Mapping[str, str]) -> None:
        self._templates = templates

    def __call__(self, _: object, __: str, event: structlog.typing.EventDict) -> str:
        return sentence_of(event, self._templates)


class _LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- its name there
        """On a full disk a line is lost here, and stands on stderr all the same; a traceback a line helps nobody."""


def _formatter(
    as_json: bool, time: str, *, colours: bool, sentences: Mapping[str, str] | None = None
) -> logging.Formatter:
    renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=24)
    if as_json:
        renderer = structlog.processors.JSONRenderer()
    elif sentences is not None:
        renderer = _Sentences(sentences)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.TimeStamper(fmt="iso" if as_json else time, utc=as_json),
            structlog.processors.format_exc_info,
            renderer,
        ],
    )
