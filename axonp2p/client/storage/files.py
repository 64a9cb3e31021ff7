"""What to say of a disk that takes no more."""

from __future__ import annotations

from pathlib import Path

from axonp2p.disk_errors import fix_of
from axonp2p.errors import SettingsError


def not_writable(path: Path, error: OSError) -> SettingsError:
    """What to tell of a disk that takes no more, or a folder that is not ours."""
    return SettingsError(
        f"cannot write to {error.filename or path}: {error.strerror or error}",
        fix=fix_of(error, Path(error.filename or path)),
    )
