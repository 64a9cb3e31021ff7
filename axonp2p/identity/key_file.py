"""The key on disk: 64 hexadecimal digits in a file that only its owner may read."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from axonp2p.errors import KeyFileUnsafe
from axonp2p.files import NO_FOLLOW
from axonp2p.identity.keys import PrivateKey

# Windows has none: there a person's own folders are closed to others by their access lists.
_HAS_MODES = sys.platform != "win32"


def load_or_create_key(path: Path) -> PrivateKey:
    """The key in `path`, made there first if there is none.

    Raises `KeyFileUnsafe` when others may read the file or when it holds no key.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW)
    except FileNotFoundError:
        return _create(path)
    except OSError as error:
        raise KeyFileUnsafe(f"cannot read the key {path}: {error.strerror}") from error
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        if _HAS_MODES and os.fstat(descriptor).st_mode & 0o077:
            raise KeyFileUnsafe(f"the key {path} can be read by others", fix=f"chmod 600 {path}")
        text = file.read(200).strip()
    try:
        return PrivateKey(bytes.fromhex(text))
    except ValueError as error:
        raise KeyFileUnsafe(
            f"{path} does not hold a key",
            cause="a key is 64 hexadecimal digits",
            fix=f"put your copy back, or move {path} away to start with a new identity",
        ) from error


def _create(path: Path) -> PrivateKey:
    key = PrivateKey.generate()
    # Written whole beside its place and linked into it: a crash leaves no half key, a race leaves one key.
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(key.seed.hex() + "\n")
            file.flush()
            os.fsync(descriptor)
        os.link(fresh, path)
    except FileExistsError:
        return load_or_create_key(path)
    except OSError as error:
        raise KeyFileUnsafe(f"cannot write the key {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            fresh.unlink()
    return key
