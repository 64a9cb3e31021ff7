"""What a hostile job is: what it does inside, and which ends of it are as they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axonp2p.sandbox.inside import Inside

ALIVE = "alive"
"""It never ends by itself: the kernel holds it back, and the daemon ends it when it wants."""
BY_ITSELF = ""
"""It ends without having gone over a limit, as a program that was refused what it wanted."""


@dataclass(frozen=True)
class HostileJob:
    """One hostile job."""

    name: str
    tries: str
    how: Callable[[Inside], None]
    ends: tuple[str, ...]
    """Names of limits, `ALIVE`, `BY_ITSELF`: how it may end."""
    heard: tuple[str, ...] = ()
    """What may come of listening to it: names of messages, or of the error that ends the channel; "": nothing at all.

    It is not listened to when this is empty.
    """
    sent_to: bool = False
    """Whether the daemon sends to it as much as it can."""
    log: str = ""
    """Stands in what is kept of its log."""
    limits: dict[str, Any] = field(default_factory=dict)
    """Limits other than the usual ones."""


def hostile(*ends: str, **rest: Any) -> Callable[[Callable[[Inside], None]], HostileJob]:
    """Make a function a hostile job; its name and its docstring are those of the job."""

    def make(how: Callable[[Inside], None]) -> HostileJob:
        return HostileJob(how.__name__.replace("_", "-"), (how.__doc__ or "").strip(), how, ends, **rest)

    return make


def named(*modules: Any) -> dict[str, HostileJob]:
    """All hostile jobs in the modules, by name."""
    found = [value for module in modules for value in vars(module).values() if isinstance(value, HostileJob)]
    return {job.name: job for job in found}
