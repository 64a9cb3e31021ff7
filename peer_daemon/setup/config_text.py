"""The answers in config.toml, among what stands there already: comments, order and other settings stay."""

from __future__ import annotations

import tomlkit

from axonp2p.errors import SettingsError
from peer_daemon.setup.answers import Answers

_HEAD = "Written by axon-peer setup. Everything that can be set: docs/settings.md"


def is_answered(content: str) -> bool:
    """Whether it says anything of the peer already. Raises `SettingsError` for what is no TOML."""
    return bool(_parsed(content).get("peer"))


def with_answers(content: str, given: Answers) -> str:
    """`content` with the answers in it. Raises `SettingsError` for what is no TOML."""
    document = _parsed(content)
    if not content.strip():
        document.add(tomlkit.comment(_HEAD))
    peer = document.setdefault("peer", tomlkit.table())
    rows = {
        "cores": given.amounts.cores,
        "memory-mb": given.amounts.memory_mb,
        "disk-mb": given.amounts.disk_mb,
        "hours": list(given.times.hours),
        "on-battery": given.times.on_battery,
        "trackers": list(given.trackers),
    }
    for name, value in rows.items():
        if peer.get(name) != value:
            peer[name] = value
    return tomlkit.dumps(document)


def _parsed(content: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(content)
    except tomlkit.exceptions.TOMLKitError as error:
        raise SettingsError(f"config.toml: {error}", fix="mend it, or move it away") from error
