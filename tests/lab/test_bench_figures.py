"""What the contest makes of reports, events and chance, without running any of it."""

from __future__ import annotations

import itertools
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.bench import show_training
from tests.lab.bench.curve import Curve, NoSteps, Point, read_reports
from tests.lab.bench.departures import changes
from tests.lab.bench.floor import Floor, measure
from tests.lab.bench.jobs import write_exchange, write_text
from tests.lab.bench.kept import Kept
from tests.lab.bench.member import Member
from tests.lab.bench.ours import curve_of
from tests.lab.bench.samples import write_orders
from tests.lab.bench.settings import Lines, Part, Trial
from tests.lab.bench.show_dense import Case, as_text, common_intervals, said_moments
from tests.lab.bench.show_training import aims, rows
from tests.lab.bench.task_file import load_task


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
    found = whole.at_the_pace_of(line, "DDP", "its own loss")
    assert found.points == [Point(30, 60.0, 1.5e7, 2.5), Point(60, 120.0, 3e7, 2.0)]
    assert found.note.startswith("its own loss; ")
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
    row = rows([curves])[-1]
    assert row["fewer_bytes_than_ddp"] == 200
    assert row["mb_a_member"] == 0.5
    assert row["faster_than_ddp"] == 16
    assert [aim["met"] for aim in aims([curves], Trial())] == [False, True, True, True, True]


def test_the_last_member_is_the_slow_one() -> None:
    lines = Lines(up=20, down=100, slowest=0.1)
    assert [lines.of(member, 3) for member in range(3)] == [(20, 100), (20, 100), (2, 10)]


def test_an_exchange_takes_at_best_what_its_values_take() -> None:
    assert Case(10, 4, 20.0).ideal_s == pytest.approx(1.5 * 40 * 8 / 20)


def test_rounds_in_which_workers_try_their_own_work_are_not_counted_where_that_would_show() -> None:
    assert [Case(10, 4, rate).warm_up for rate in (20.0, 100.0, None)] == [1, 4, 4]


def test_of_each_exchange_it_is_told_what_the_lines_and_what_gloo_would_have_taken() -> None:
    row = {"millions": 10, "members": 4, "mbit": 100.0, "ideal": 4.8, "gloo": 5.0, "axon": 5.2}
    bare = row | {"mbit": None, "ideal": 0.0}
    text = as_text({"rows": [row | {"tls_and_hash": 0.2}, bare | {"tls_and_hash": 10.0}], "rtt_ms": 10.0})
    first, second = text.splitlines()[3:5]
    assert " ".join(first.split()) == "10 M 4 100 5.000 5.200 0.96 0.92 1.04 x 0.04 x"
    assert " ".join(second.split()) == "10 M 4 loopback 5.000 5.200 1.04 x 2.00 x"


def test_an_exchange_lasts_from_the_first_member_that_is_ready_to_the_last_that_has_the_weights() -> None:
    first = [(10.0, 12.0), (20.0, 23.0)]
    second = [(10.5, 12.5), (19.0, 21.0)]
    assert common_intervals([first, second]) == [2.5, 4.0]


def test_a_member_of_ours_says_both_moments_itself() -> None:
    lines = ["lynx  READY 10.5", "something else", "lynx  NEW 12.25", "READY 20.0", "NEW 21.0"]
    assert said_moments(lines) == [(10.5, 12.25), (20.0, 21.0)]
    with pytest.raises(ValueError, match="ready 2 times, and had new weights 1 times"):
        said_moments(lines[:-1])


def test_the_job_that_only_exchanges_says_when_its_step_is_done_and_when_it_is_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = load_task(write_exchange(tmp_path / "job", 10, 2, 1) / "task.py")
    model = task.model()
    optimizer = task.optimizer(model)
    task.loss(model, task.data("train", 0, 2).tensors).backward()
    optimizer.step()
    model.eval()
    task.loss(model, task.data("test", 0, 2).tensors)
    assert len(said_moments(capsys.readouterr().out.splitlines())) == 1


def test_jobs_keep_their_state_at_the_client_as_users_jobs_do(tmp_path: Path) -> None:
    assert "checkpoint" not in (write_text(tmp_path / "job", Trial()) / "job.toml").read_text()


def test_steps_can_sleep_until_a_faster_machine_would_be_done(tmp_path: Path) -> None:
    trial = Trial(batch=2, context=32, step_ms=30.0)
    task = load_task(write_text(tmp_path / "job", trial) / "task.py")
    model, batch = task.model(), [task.data("train", 0, 4).tensors[0][:2]]
    began = time.monotonic()
    task.loss(model, batch).backward()
    assert time.monotonic() - began >= 0.03 / 3
    assert batch[0].shape == (2, 33)


def test_over_several_seeds_each_is_compared_with_its_own_reference() -> None:
    def run(of_reference: float, of_ours: float) -> list[Curve]:
        names = {"DDP, loopback": of_reference, "DDP": of_reference, "Axon, auto": of_ours}
        return [Curve(name, 4, [Point(480, 100.0, 1e6, loss)], 480, 1.0, 1.0) for name, loss in names.items()]

    found = {"seeds": [0, 1], "rows": rows([run(2.0, 2.2), run(1.0, 1.2)]), "aims": []}
    ours = found["rows"][-1]
    assert ours["losses_over_reference"] == [1.1, 1.2]
    line = show_training.as_text(found, Trial()).splitlines()[-1]
    assert " ".join(line.split()).startswith("Axon, auto 1.700 (1.200 to 2.200) +15.0% (+10.0% to +20.0%) 100.0 1.0x")


def test_losses_by_muon_are_compared_with_dense_training_by_muon() -> None:
    losses = {"DDP, loopback": 2.0, "DDP": 2.0, "DDP, Muon": 1.5, "Axon, line": 2.04, "Axon, line, Muon": 1.6}
    curves = [Curve(name, 4, [Point(480, 100.0, 1e6, loss)], 480, 1.0, 1.0) for name, loss in losses.items()]
    found = {row["name"]: row for row in rows([curves])}
    assert found["Axon, line"]["losses_over_reference"] == [pytest.approx(1.02)]
    assert found["DDP, Muon"]["losses_over_reference"] == [1.0]
    assert found["Axon, line, Muon"]["losses_over_reference"] == [pytest.approx(1.6 / 1.5)]
    assert found["Axon, line, Muon"]["note"] == "its loss is compared with that of DDP, Muon"
    assert [aim["met"] for aim in aims([curves], Trial())] == [True, True, False, True]
    without = [curve for curve in curves if curve.name != "DDP, Muon"]
    assert len(aims([without], Trial())) == 2
    assert rows([without])[-1]["note"] == "its loss is compared with that of DDP, loopback"


def test_a_member_of_a_baseline_takes_steps_by_all_optimisers_of_the_task(tmp_path: Path) -> None:
    trial = Trial(members=1, rounds=1, steps=1, batch=2, context=32, windows=1, muon=True)
    task = write_text(tmp_path / "job", trial) / "task.py"
    write_orders(task, trial, tmp_path)
    member = Member(Part(str(task), 1, 1, 0, trial.batch, 0, "lo", ["127.0.0.1"], str(tmp_path)), 0)
    before = [one.detach().clone() for one in member.model.parameters()]
    member.gradients(member.model, 0)
    member.take_step()
    assert [type(one).__name__ for one in member.optimizers] == ["Muon", "AdamW"]
    assert not any(one.equal(was) for one, was in zip(member.model.parameters(), before, strict=True))


def test_without_muon_all_take_the_steps_of_adamw(tmp_path: Path) -> None:
    text = (write_text(tmp_path / "job", Trial()) / "task.py").read_text()
    assert "axonp2p" not in text
    assert "torch.optim.AdamW" in text


def test_a_reference_that_has_hardly_learnt_is_no_evidence() -> None:
    curves = [
        Curve(name, 4, [Point(60, 100.0, 1e6, 2.79)], 60, 1.0, 1.0) for name in ("DDP, loopback", "DDP", "Axon, auto")
    ]
    found = {"seeds": [0], "rows": rows([curves]), "aims": aims([curves], Trial(millions=10))}
    text = show_training.as_text(found, Trial(millions=10))
    assert text.count("no evidence") == 4
    assert found["aims"][0]["met"] is None


def test_what_is_kept_is_found_for_the_same_settings_alone(tmp_path: Path) -> None:
    kept, curve = Kept(tmp_path), Curve("DDP", 4, [Point(30, 3.0, 1e6, 2.5)], 30, 0.1, 1e6)
    kept.keep("DDP", Trial(), curve)
    assert kept.find("DDP", Trial()) == curve
    assert kept.find("DDP", Trial(seed=1)) is None
    assert kept.find("Flower", Trial()) is None


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
