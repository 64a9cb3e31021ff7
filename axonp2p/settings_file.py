"""config.toml is changed: the person's comments and order stay, and what is wrong never gets there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from axonp2p.settings import CONFIG, parse_settings

Changes = Mapping[str, Mapping[str, Any]]
"""By section ("peer", "peer.in-use") and key; None takes a key out."""


def rewritten(text: str, changes: Changes, *, head: str = "") -> str:
    """The file's `text` with `changes` in it (pure); an empty one begins with the comment `head`.

    Raises `SettingsError` for what is no TOML.
    """
    import tomlkit  # only for this: an idle daemon does without

    try:
        document = tomlkit.parse(text)
    except tomlkit.exceptions.TOMLKitError as error:
        raise SettingsError(f"{CONFIG}: {error}", fix="correct it, or move it away") from error
    if head and not text.strip():
        document.add(tomlkit.comment(head))
    for path, keys in changes.items():
        section: Any = document
        for name in path.split("."):
            # A section within one that is written in a line is written in that line.
            inline = isinstance(section, tomlkit.items.InlineTable)
            if name not in section and all(value is None for value in keys.values()):
                break
            section = section.setdefault(name, tomlkit.inline_table() if inline else tomlkit.table())
        else:
            for key, value in keys.items():
                if value is None:
                    section.pop(key, None)
                elif section.get(key) != value:
                    section[key] = value
    return tomlkit.dumps(document)


def change_settings(home: Path, changes: Changes, *, called: str = "the settings") -> Path:
    """Write `changes` to `home/config.toml`, whole or not at all; the file. Blocks on the disk.

    Raises `SettingsError` for a value that cannot be meant, a file that is wrong already, and a disk that takes
    nothing; nothing is changed then.
    """
    # A link to where somebody keeps such files stays one.
    path = (home / CONFIG).resolve()
    try:
        before = path.read_bytes() if path.exists() else b""
        parse_settings(before, path, {})
        after = rewritten(before.decode(), changes).encode()
        parse_settings(after, path, {})
        if after != before:
            write_whole(path, after)
    except OSError as error:
        raise SettingsError(
            f"{called} cannot be written to {path}",
            cause=error.strerror or str(error),
            fix=f"see that the disk is not full and that {path.parent} can be written",
        ) from error
    return path
