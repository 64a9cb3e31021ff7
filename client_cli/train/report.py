"""A training on the page and in the report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.kinds.train.record import TrainRecord
from client_cli.report.kind_report import KindReport
from client_cli.report.lanes import Lane
from client_cli.report.tables import Table
from client_cli.text.render import metric_text
from client_cli.train import curves_picture, lanes, story, tables
from client_cli.train.story import TrainStory


def _tables(told: TrainStory, drawn: Sequence[Lane]) -> list[Table]:
    return [tables.rounds(told), tables.work(told, drawn), tables.bytes_a_round(told)]


def _facts(record: JobRecord, told: TrainStory) -> list[tuple[str, str]]:
    assert isinstance(record, TrainRecord)
    found = [("loss", f"{record.loss:.4g}")] if record.loss is not None else []
    found += [(f"held-out {name}", metric_text(name, value).removeprefix(f"{name} "))
              for name, value in list(record.metrics.items())[:3]]  # fmt: skip
    sent, dense = curves_picture.total_bytes(told)
    if sent and dense:
        found.append(("exchange, against dense", f"{dense / sent:,.3g} times fewer bytes"))
    return found


def _to_go(told: TrainStory) -> float:
    return told.newest.eta_s if told.newest else 0.0


def _panels(told: TrainStory) -> dict[str, Any]:
    return {
        "loss": curves_picture.loss(told),
        "metrics": curves_picture.metrics(told),
        "marks": curves_picture.legend_of_marks(told),
        "pace": lanes.pace_setter(told),
        "bytes": curves_picture.bytes_a_round(told),
        "bytes_said": curves_picture.bytes_said(told),
        "compared": curves_picture.total_bytes(told),
    }


REPORT = KindReport(
    story=TrainStory,
    take=story.take,
    marks=story.MARKS,
    lanes=lanes.lanes,
    looks={
        "train": "train",
        "exchange": "exchange",
        "wait": "wait",
        "paused": "paused by its owner",
        "behind": "left behind, catching up",
        "lost": "lost: done in vain",
        "ready": "hired, not in a round yet",
        "now": "the round that runs",
    },
    tables=_tables,
    peers=tables.peers,
    facts=_facts,
    to_go=_to_go,
    panels=_panels,
    shortfall=lambda told, job, command: None,
    templates=("train_curves.html",),
    beside_map="train_bytes.html",
)
"""The part of the page and the report that a training adds."""
