"""Which job is meant by the beginning of an id, and what is said when none is, or several are. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from axonp2p.errors import Ambiguous, NotFound

SHOWN = 5
"""Names in one message."""


def matching(names: Collection[str], begun: str) -> list[str]:
    """Those that begin so; the one of that very name alone, where there is one."""
    if begun in names:
        return [begun]
    return sorted(name for name in names if begun and name.startswith(begun))


def several(begun: str, found: Collection[str]) -> Ambiguous:
    """More than one begins so; `found` names them."""
    names = sorted(found)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = ", ".join(names[:SHOWN]) if more else f"{', '.join(names[:-1])} and {names[-1]}"
    return Ambiguous(f"{begun} matches {shown}{more}", fix=f"give more of the id, such as {names[0].partition(' ')[0]}")


def no_such_job(begun: str, names: Collection[str]) -> NotFound:
    """None begins so; those that look alike are named."""
    alike = difflib.get_close_matches(begun, list(names), n=3, cutoff=0.5)
    cause = f"did you mean {' or '.join(alike)}?" if alike else ""
    return NotFound(f"no job matches {begun}", cause=cause, fix="axon jobs      (lists the jobs there are)")
