"""How a program ends: errors in one fixed shape on stderr, the exit code from their class, never a bare traceback.

    error AX-602: port 7070 is taken          what happened
    cause: another program listens there      why, when it is known
    fix: axon-tracker run --listen ...        always last: what to do next

Text from strangers may stand in it, so control characters never reach the terminal.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axonp2p.errors import AxonError
from axonp2p.files import raise_descriptor_limit
from axonp2p.missing_modules import error_of

INTERRUPTED_EXIT = 130
CLOSED_PIPE_EXIT = 141
DOCS = "docs/errors.md#codes"


def run_program(
    body: Callable[[], int | None], *, debug: bool, as_json: bool = False, report_folder: Path | None = None
) -> int:
    """Run a program's body and give the exit code it should end with; print what went wrong to stderr.

    An unexpected error is a bug of ours: its traceback goes to a file in `report_folder` (the folder for temporary
    files by default) and to the terminal only with `debug`. `SystemExit` passes through.
    """
    raise_descriptor_limit()
    try:
        return body() or 0
    except AxonError as error:
        if debug:
            traceback.print_exc()
        print_error(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    except BrokenPipeError:
        # The reader of our output left (`axon peers | head`): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE_EXIT
    except Exception as error:  # the top of a program: whatever comes here is a bug, or not installed
        if debug:
            traceback.print_exc()
        missing = error_of((error.name or "").partition(".")[0]) if isinstance(error, ModuleNotFoundError) else None
        told = missing or _as_bug(error, report_folder or Path(tempfile.gettempdir()))
        print_error(told, as_json=as_json)
        return told.exit_code


def print_answer(text: str, data: Any, *, as_json: bool) -> None:
    """A command's answer on stdout: `text` for people, or `data` as one JSON object for programs."""
    print(json.dumps(data) if as_json else printable(text), flush=True)


def print_error(error: AxonError, *, as_json: bool = False) -> None:
    """Write `error` to stderr, as text or as one JSON object."""
    print(error_json(error) if as_json else error_text(error), file=sys.stderr, flush=True)


def error_text(error: AxonError) -> str:
    """The fixed shape: `error CODE: message`, then `cause:` and `fix:` where there is one."""
    lines = [f"error {error.code}: {error.message}"]
    if error.cause:
        lines.append(f"cause: {error.cause}")
    if error.fix:
        lines.append(f"fix: {error.fix}")
    return printable("\n".join(lines))


def error_json(error: AxonError) -> str:
    """`{"error": {"code", "message", "cause", "fix", "docs"}}` in one line; a job's has its `job` and `folder` too."""
    told = {
        "code": error.code,
        "message": error.message,
        "cause": error.cause,
        "fix": error.fix,
        "docs": DOCS,
        **error.facts,
    }
    return json.dumps({"error": told})


def printable(text: str) -> str:
    """`text` without what could move the cursor, colour or retitle a terminal; lines and tabs stay."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _as_bug(error: Exception, folder: Path) -> AxonError:
    kind = type(error).__name__
    try:
        report = _write_report(error, folder)
    except OSError as trouble:
        return AxonError(
            f"axon made a mistake: {kind}: {error}",
            cause=f"this is a bug; no report could be written to {folder} ({trouble.strerror})",
            fix="run it again with --debug and report what it prints",
        )
    return AxonError(
        f"axon made a mistake: {kind}: {error}",
        cause=f"this is a bug; its details are in {report}",
        fix="read that file, then report it with the bug; --debug prints it here",
    )


def _write_report(error: Exception, folder: Path) -> Path:
    # Only its owner may read it: paths and values of this machine stand in it. The command line is left out.
    descriptor, path = tempfile.mkstemp(prefix="axon-report-", suffix=".txt", dir=folder)
    with os.fdopen(descriptor, "w") as file:
        file.write(
            f"{time.strftime('%Y-%m-%d %H:%M:%S %z')} Python {platform.python_version()} {platform.platform()}\n\n"
        )
        file.writelines(traceback.format_exception(error))
    return Path(path)
