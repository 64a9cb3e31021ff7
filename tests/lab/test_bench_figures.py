"""What the contest makes of reports, events and chance, without running any of it."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.lab.bench.curve import Curve, NoSteps, Point, read_reports
from tests.lab.bench.departures import changes
from tests.lab.bench.floor import Floor, measure
from tests.lab.bench.ours import curve_of
from tests.lab.bench.settings import Lines, Trial
from tests.lab.bench.show_dense import Case, as_text
from tests.lab.bench.show_training import aims, rows


def write(folder: Path, rank: int, *lines: dict[str, float]) -> None:
    (folder / f"{rank}.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")


def two_members(folder: Path) -> None:
    write(
        folder,
        0,
        {"steps": 0, "at": 10.0, "passed": 100},
        {"steps": 1, "at": 14.0, "passed": 300},
        {"steps": 2, "at": 15.0, "passed": 500, "loss": 2.0, "windows": 3},
    )
    write(
        folder,
        1,
        {"steps": 0, "at": 10.5, "passed": 100},
        {"steps": 1, "at": 14.5, "passed": 310},
        {"steps": 2, "at": 15.5, "passed": 520, "loss": 4.0, "windows": 1},
    )


def test_a_curve_is_what_all_members_reported(tmp_path: Path) -> None:
    two_members(tmp_path)
    curve = read_reports("it", tmp_path, 2, bare=False, warm_up=1)
    assert curve.points == [Point(2, 5.0, 820, 2.5)]
    assert (curve.steps, curve.seconds_a_step, curve.passed_a_step) == (1, 1.0, 410)


def test_over_loopback_each_member_counts_the_bytes_of_all(tmp_path: Path) -> None:
    two_members(tmp_path)
    assert read_reports("it", tmp_path, 2, bare=True).points[0].passed == 420


def test_a_member_that_did_less_is_no_curve(tmp_path: Path) -> None:
    two_members(tmp_path)
    write(tmp_path, 1, {"steps": 0, "at": 10.5, "passed": 100})
    with pytest.raises(NoSteps, match="it: members took 0 steps before they hung"):
        read_reports("it", tmp_path, 2, bare=False)
    with pytest.raises(NoSteps, match="it: no report of member 2"):
        read_reports("it", tmp_path, 3, bare=False)


def test_a_curve_at_another_pace_keeps_its_losses_and_says_so() -> None:
    whole = Curve("loopback", 4, [Point(30, 3.0, 1e6, 2.5), Point(60, 6.0, 2e6, 2.0)], 60, 0.1, 1e6 / 30)
    line = Curve("line", 4, [], 5, 2.0, 5e5)
    found = whole.at_the_pace_of(line, "DDP")
    assert found.points == [Point(30, 60.0, 1.5e7, 2.5), Point(60, 120.0, 3e7, 2.0)]
    assert "over 5 steps" in found.note
    assert Curve.of_data(json.loads(json.dumps(found.as_data()))) == found


def test_our_clock_starts_when_the_last_worker_is_ready() -> None:
    events: list[dict[str, Any]] = [
        {"event": "peer_ready", "at": 5.0},
        {"event": "peer_ready", "at": 7.0},
        {"event": "round_finished", "at": 9.0, "round": 0, "metrics": {"loss": 3.0}},
        {"event": "peer_ready", "at": 10.0},
        {"event": "round_finished", "at": 12.0, "round": 1, "metrics": {"loss": 2.5}},
    ]
    counter = iter([10, 20, 70, 100])
    curve = curve_of(events, "Axon", Trial(steps=30), lambda: next(counter))
    assert curve.points == [Point(30, 2.0, 50, 3.0), Point(60, 5.0, 80, 2.5)]


def test_contestants_stand_beside_the_limit_and_beside_ddp() -> None:
    def curve(name: str, seconds: float, passed: float, loss: float) -> Curve:
        return Curve(name, 4, [Point(900, seconds, passed, loss)], 900, seconds / 900, passed / 900)

    curves = [
        curve("DDP, loopback", 100, 4e8, 1.50),
        curve("DDP", 2000, 4e8, 1.50),
        curve("hivemind, 8 bits", 900, 1e8, 1.51),
        curve("Axon, auto", 125, 2e6, 1.60),
    ]
    row = rows(curves)[-1]
    assert row["fewer_bytes_than_ddp"] == 200
    assert row["mb_a_member"] == 0.5
    assert row["faster_than_ddp"] == 16
    assert [aim["met"] for aim in aims(curves, Trial())] == [False, True, True, True, True]


def test_the_last_member_is_the_slow_one() -> None:
    lines = Lines(up=20, down=100, slowest=0.1)
    assert [lines.of(member, 3) for member in range(3)] == [(20, 100), (20, 100), (2, 10)]


def test_an_exchange_takes_at_best_what_its_values_take() -> None:
    assert Case(10, 4, 20.0).ideal_s == pytest.approx(1.5 * 40 * 8 / 20)


def test_of_each_exchange_it_is_told_what_the_lines_and_what_gloo_would_have_taken() -> None:
    row = {"millions": 10, "members": 4, "mbit": 100.0, "ideal": 4.8, "gloo": 5.0, "axon": 4.9, "axon_longest": 5.2}
    bare = row | {"mbit": None, "ideal": 0.0}
    text = as_text({"rows": [row | {"tls_and_hash": 0.2}, bare | {"tls_and_hash": 10.0}], "rtt_ms": 10.0})
    first, second = text.splitlines()[3:5]
    assert " ".join(first.split()) == "10 M 4 100 5.000 4.900 (5.200) 0.96 0.98 (0.92) 0.98 x 0.04 x"
    assert " ".join(second.split()) == "10 M 4 loopback 5.000 4.900 (5.200) 0.98 x 2.00 x"


def test_what_tls_and_hashes_alone_take_is_measured_and_grows_with_the_bytes() -> None:
    found = measure()
    assert 0 < found.tls < 1e-6
    assert 0 < found.hash < 1e-6
    assert Floor(tls=1.0, hash=0.5).exchange_s(10, 4, cores=2) == (6 * 40 * 1.0 + 4 * 40 * 0.5) / 2
    assert Floor(tls=1.0, hash=0.5).exchange_s(10, 2, cores=16) == (2 * 40 * 1.0 + 2 * 40 * 0.5) / 2


def test_half_of_the_machines_are_gone_after_a_half_life_and_others_come() -> None:
    found = list(itertools.takewhile(lambda change: change.at < 100, changes(random.Random(1), 1000, 100.0, 25.0)))
    first = {}
    for change in found:
        first.setdefault(change.line, change)
    assert 0.45 < len(first) / 1000 < 0.55
    assert not any(change.comes for change in first.values())
    assert [change.at for change in found] == sorted(change.at for change in found)
