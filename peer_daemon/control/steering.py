"""What the owner's doors, the control socket and the status page, may see and ask of the daemon."""

from __future__ import annotations

from typing import Protocol

from peer_daemon.control.status import HistoryTold, LimitsAsked, Status


class Steering(Protocol):
    """All of these answer an owner, so they may raise any `AxonError`: its cause and fix are told."""

    def status(self) -> Status:
        """As it is now; cheap, for it is asked every second."""
        ...

    async def pause(self, seconds: float | None) -> None:
        """Stop working for so long, or until `resume`; running jobs are handed back."""
        ...

    async def finish(self) -> None:
        """End the running rounds, then pause until `resume`."""
        ...

    async def resume(self) -> None:
        """Work again."""
        ...

    async def change_limits(self, asked: LimitsAsked) -> None:
        """Hold to these from now on, and after a restart."""
        ...

    async def history(self, since: float) -> HistoryTold:
        """What was kept since then, Unix seconds."""
        ...

    async def changed(self, after: int) -> int:
        """Wait until the number of changes of the status is more than `after`, and give it. It is never negative."""
        ...
