"""Curves as pictures: held-out loss over samples, over bytes, over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab.bench.curve import Curve
from tests.lab.bench.settings import Trial

MEGA = 1e6


def draw(file: Path, found: dict[str, Any], trial: Trial) -> None:
    """Three panels side by side; needs matplotlib (the [plot] extra)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "axon"  # the same curves make the same file
    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4.2), sharey=True)
    for number, data in enumerate(found["curves"]):
        curve = Curve.of_data(data)
        losses = [point.loss for point in curve.points]
        across = (
            [point.steps * trial.a_step for point in curve.points],
            [point.passed / curve.members / MEGA for point in curve.points],
            [point.seconds for point in curve.points],
        )
        style = {"color": f"C{number}", "linestyle": "--" if number == 0 else "-", "label": curve.name}
        for panel, values in zip(panels, across, strict=True):
            panel.plot(values, losses, **style)
    names = ("samples", "MB on a member's line", "seconds")
    for panel, name in zip(panels, names, strict=True):
        panel.set_xlabel(name)
        panel.grid(alpha=0.3)
        if name != "samples":
            panel.set_xscale("log")
    panels[0].set_ylabel("held-out loss, nats a byte")
    panels[0].legend(fontsize="small")
    lines = trial.lines
    figure.suptitle(f"{trial.millions} M parameters, {lines.up:g}/{lines.down:g} Mbit/s, {lines.rtt_ms:g} ms")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)
