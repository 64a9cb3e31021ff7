"""How many files and connections this process may have open; Windows has no such limit to ask for."""

from __future__ import annotations

from contextlib import suppress

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def raise_descriptor_limit() -> None:
    """To what the system allows: a shell's usual 1,024 are soon used up by connections."""
    if resource is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int | None:
    """How many may be open now; None where nothing limits them."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
