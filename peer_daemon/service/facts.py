"""What the service's texts are made from (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InstallationFacts:
    """Of this installation."""

    python: str
    """The interpreter's path."""
    home: str
    """The peer's folder."""
    user: str
    """Who runs it."""

    @property
    def command(self) -> list[str]:
        """What is to be run. `-P`: a folder that happens to be the current one is nothing to import from."""
        return [self.python, "-P", "-m", "peer_daemon.main", "run", "--home", self.home]
