"""Curves that are kept between two calls: a long contest may be stopped, and goes on where it was."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.lab.bench.curve import Curve
from tests.lab.bench.settings import Trial
from tests.lab.laboratory import ROOT


class OutOfTime(Exception):
    """The next contestant would begin after the minutes that were given."""


class Kept:
    """A file for each contestant and trial, named after both, with the commit that made it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    def find(self, name: str, trial: Trial) -> Curve | None:
        """The curve of an earlier call with exactly these settings; its note says of which commit it is."""
        path = self._path(name, trial)
        if not path.exists():
            return None
        found: dict[str, Any] = json.loads(path.read_text())
        curve = Curve.of_data(found["curve"])
        if found["commit"] == self._commit:
            return curve
        note = "; ".join(part for part in (curve.note, f"made by {found['commit']}") if part)
        return Curve.of_data(curve.as_data() | {"note": note})

    def keep(self, name: str, trial: Trial, curve: Curve) -> None:
        """For `find`."""
        text = json.dumps({"commit": self._commit, "trial": asdict(trial), "curve": curve.as_data()})
        self._path(name, trial).write_text(text)

    def _path(self, name: str, trial: Trial) -> Path:
        which = hashlib.sha256(json.dumps([name, asdict(trial)], sort_keys=True).encode()).hexdigest()[:8]
        words = "-".join(re.findall(r"[A-Za-z0-9]+", name.lower()))
        return self._folder / f"{words}-{trial.millions}m-{trial.all_steps}-seed{trial.seed}-{which}.json"
