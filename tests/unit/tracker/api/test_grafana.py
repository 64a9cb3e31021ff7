"""The dashboard and the alerts name metrics that a tracker has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.unit.tracker.conftest import Running

ROOT = Path(__file__).parent.parent.parent.parent.parent
_OF_PROMETHEUS = {"up"}


async def test_every_metric_that_is_drawn_or_watched_is_told(lab: Running) -> None:
    told = lab.tracker.metrics.page()[0].decode()
    known = set(re.findall(r"^# TYPE (\w+)", told, re.M))
    dashboard = json.loads((ROOT / "packaging" / "grafana" / "axon-tracker.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += re.findall(r"^ +expr: (.*)$", (ROOT / "docs" / "operate.md").read_text(), re.M)
    assert len(asked) > 20
    named = {name for text in asked for name in re.findall(r"\b(?:axon|process)_\w+", text)}
    for name in named:
        assert {name, name.removesuffix("_bucket"), name.removesuffix("_total")} & known, name
