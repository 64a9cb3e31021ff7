"""The secret that allows changes through the page, and the address that carries it to the owner's browser.

It stands behind the `#` of the address: browsers keep that part to themselves, so no server and no log sees it. The
file is made once and kept, so that an open page goes on working when the daemon starts anew.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from axonp2p.errors import NotFound, SettingsError

TOKEN_BYTES = 32
TOKEN_FILE = "page.token"  # noqa: S105 -- the file's name
_ADDRESS = re.compile(r"http://\S+/#token=([0-9a-f]{64})\n?", re.ASCII)


def kept_token(file: Path) -> str:
    """The token in `file`, or a fresh one when there is none that only its owner could read."""
    try:
        with file.open("rb") as opened:
            private = not os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            found = _ADDRESS.fullmatch(opened.read(512).decode("ascii", errors="replace"))
    except OSError:
        found, private = None, False
    return found[1] if found and private else secrets.token_hex(TOKEN_BYTES)


def write_address(file: Path, url: str, token: str) -> None:
    """Leave `url` with the token in `file`, for its owner alone. Raises `SettingsError`."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{url}#token={token}\n")
        fresh.replace(file)
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise SettingsError(message, fix="choose another folder with --home DIR") from error


def page_address(home: Path) -> str:
    """The page's address with the token: whoever has it may change limits and pause. Raises `NotFound`."""
    try:
        text = (home / TOKEN_FILE).read_text(errors="replace").strip()
    except OSError as error:
        raise NotFound(
            "this peer has no status page yet",
            cause=f"no {home / TOKEN_FILE}",
            fix="axon-peer run   (page = in config.toml)",
        ) from error
    if not _ADDRESS.fullmatch(text):
        raise NotFound(f"{home / TOKEN_FILE} holds no address of a page", fix="start the peer again: axon-peer run")
    return text
