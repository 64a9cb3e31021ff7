"""/out: the folder into which a task writes what shall come home to its author.

In a sandbox /out is a link to /tmp/out, and that is a link of ours: to this member's own files, and to a folder that
is thrown away while steps of another member are taken again. The member's own steps wait meanwhile, so each of them
finds its own files by the same name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PLACE = Path("/out")


class OutFolder:
    """The one of this worker; `scratch` is where its processes may write."""

    def __init__(self, scratch: Path) -> None:
        self.own = scratch / ".out"
        """Where the member's own files lie."""
        self._link = scratch / "out"

    def make(self) -> None:
        """Before the task is loaded; AXON_OUT names it from now on. Raises `OSError`."""
        self.own.mkdir()
        self._lead_to(self.own)
        here = PLACE if PLACE.is_symlink() and PLACE.resolve() == self.own.resolve() else self._link
        os.environ["AXON_OUT"] = str(here)

    @contextlib.contextmanager
    def elsewhere(self, folder: Path) -> Iterator[None]:
        """Meanwhile what is written there lies in `folder`. A task that has put something else there keeps that."""
        with contextlib.suppress(OSError):
            self._lead_to(folder)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._lead_to(self.own)

    def _lead_to(self, folder: Path) -> None:
        # Beside its place, then into it: there is no moment without it.
        new = self._link.with_name(".out-next")
        new.unlink(missing_ok=True)
        new.symlink_to(folder)
        new.replace(self._link)
