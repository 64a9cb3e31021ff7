"""Where the task's code is while it takes long, told in the job's log: another thread looks at the one that trains."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from axonp2p.jobs.file_names import WHEELS_FOLDER

TOLD_AFTER_S = 10.0
"""Of one such piece; and again after twice, four times, ... as long."""
_LOOK_S = 1.0


class LongSteps:
    """Of one training thread, whose task lies in `folder`. `clock` gives monotonic seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder.resolve()
        self._clock = clock
        self._since: float | None = None
        self._told = TOLD_AFTER_S
        self._over = threading.Event()

    def watch(self, thread: threading.Thread) -> None:
        """Look at this one from now on, until `close`."""
        threading.Thread(target=self._run, args=[thread], name="long steps", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def begins(self) -> None:
        """The task's code runs: it is loaded, builds its model, takes its next step, or evaluates."""
        self._told, self._since = TOLD_AFTER_S, self._clock()

    def ends(self) -> None:
        """It does not."""
        self._since = None

    def due(self, frame: FrameType | None, now: float) -> str:
        """The sentence now on a thread that is there; empty when there is none."""
        since = self._since
        if since is None or now - since < self._told:
            return ""
        self._told *= 2
        return f"a piece of the task has taken {now - since:.0f} s: {place_of(frame, self._folder)}"

    def _run(self, thread: threading.Thread) -> None:
        while thread.is_alive() and not self._over.wait(_LOOK_S):
            frames = sys._current_frames()
            if said := self.due(frames.get(thread.ident or 0), self._clock()):
                print(said, file=sys.stderr, flush=True)


def place_of(frame: FrameType | None, folder: Path) -> str:
    """The innermost line of the task's own files that a thread is at, in words."""
    for one, line in traceback.walk_stack(frame) if frame else ():  # the innermost comes first
        path = Path(one.f_code.co_filename)
        if path.is_relative_to(folder) and not path.is_relative_to(folder / WHEELS_FOLDER):
            return f"it is at {path.relative_to(folder)}, line {line}, in {one.f_code.co_name}"
    return "it is at no line of the task's own files"
