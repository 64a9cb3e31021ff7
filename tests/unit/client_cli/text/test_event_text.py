"""What a job's events say to people, on a terminal and without one."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
import pytest
from rich.console import Console

from axonp2p.client.events import events
from axonp2p.kinds.run import events as run_events
from axonp2p.kinds.train import check_events
from axonp2p.kinds.train import events as train_events
from client_cli.text.event_text import JobLines, doing_now, line_of, line_without_bar, standing_still
from client_cli.text.event_text import after as after_of_kind
from client_cli.text.kind_text import Shown, text_of
from client_cli.watching.bar import Bar, picture
from client_cli.watching.progress import PlainLines, progress_on

SUBMITTED = events.JobSubmitted(job="digits-7f3a", folder="digits", peers=4, rounds=20, bundle_bytes=410_000)
MIDWAY = train_events.RoundProgress(
    round=2, rounds=20, fraction=0.5, loss=1.4, samples_per_second={"otter": 210.0, "heron": 99.5}, eta_s=31.0
)
FINISHED_ROUND = train_events.RoundFinished(
    round=2, rounds=20, loss=1.412, metrics={"accuracy": 0.91, "loss": 0.3}, samples=1280,
    samples_per_second={"otter": 210.0}, seconds=0.5, wire_bytes=310_000, credits=0.00172, eta_s=30.6,
)  # fmt: skip
LOST = events.PeerLost(peer="wren", round=10, reason="the line was cut", left=3)
CHOSEN = train_events.ExchangeChosen(
    round=0, exchange_every=8, bits=2, overlap=True, density={"otter": 1.0, "wren": 1 / 16}, outer_learning_rate=1.0,
    outer_momentum=0.0, round_bytes=1000, dense_bytes=124_000, why="an exchange takes about 1.2 s",
)  # fmt: skip
PAUSED = events.PeerPaused(peer="otter", reason="another program uses 87 % CPU")
DONE = events.JobFinished(
    job="digits-7f3a", folder="/h/jobs/digits-7f3a", rounds=20, loss=0.1, metrics={"accuracy": 0.967}, samples=25600,
    seconds=9.8, first_step_s=2.0, wire_bytes=3_100_000, credits={"otter": 0.001, "heron": 0.001}, receipts=80,
    peers=["otter", "heron"], lost=["wren"],
)  # fmt: skip


def after(shown: Shown, event: events.Event) -> Shown:
    return after_of_kind(shown, event, "train")


def test_a_finished_round_is_one_line_of_pairs() -> None:
    line = line_without_bar(FINISHED_ROUND, "train")
    assert line == (
        "round=3/20 loss=1.412 held_out_accuracy=0.91 held_out_loss=0.3"
        " samples/s=210 bytes=310000 credits=0.00172 eta=31s"
    )
    assert dict(pair.split("=") for pair in line.split())["round"] == "3/20"


def checked(outcome: str, convicted: Sequence[str] = ()) -> check_events.WorkChecked:
    return check_events.WorkChecked(
        peer="wren", by=["otter", "lynx"], round=2, first=8, last=16, outcome=outcome, distance=0.0, step=0.1,
        convicted=list(convicted), flops=10,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SUBMITTED, "submitted digits-7f3a: 20 rounds on up to 4 peers, bundle 410 KB"),
        (LOST, "wren left in round 11: the line was cut. Its shards go to the 3 peers left."),
        (events.PeerRefused(peer="otter", reason="busy"), "otter was not hired: busy"),
        (PAUSED, "otter paused: another program uses 87 % CPU"),
        (events.PeerResumed(peer="otter"), "otter continues"),
        (
            events.BundleSent(peers=["otter", "wren"], bytes=50_000_000, member_bytes=50_000_000, seconds=23.0),
            "sent the bundle to otter wren: 50.0 MB in 23 s, 50.0 MB passed on among them; their workers start",
        ),
        (
            events.BundleSent(peers=["otter"], bytes=410_000, seconds=2.0),
            "sent the bundle to otter: 410 KB in 2.0 s; its worker starts",
        ),
        (
            events.PeerHelped(peer="wren"),
            "no other peer passes pieces on to wren: they are sent from here",
        ),
        (
            events.PieceWrong(peer="lynx", told_by="wren", piece=4),
            "warning: lynx passed a wrong piece on to wren, who asks others for it",
        ),
        (
            events.PeerHandedBack(peer="otter", reason="memory is short", round=4),
            "otter is wanted back by its owner in round 5: memory is short",
        ),
        (events.JobWaiting(peers=["otter", "wren"]), "the job waits for otter, wren, without which it cannot continue"),
        (events.JobGoesOn(), "the job continues"),
        (
            train_events.RoundRedone(round=1, attempt=1, reason="otter and wren cannot reach each other: timed out"),
            "round 2 starts again from the last accepted weights: otter and wren cannot reach each other: timed out",
        ),
        (
            CHOSEN,
            "exchange from round 1 on: 2 bits a value every 8 steps, computing meanwhile;"
            " wren sends 6.2 % of its values, to send 124 times fewer bytes than dense (an exchange takes about 1.2 s)",
        ),
        (
            msgspec.structs.replace(CHOSEN, density={}, overlap=False, aggregation="multi-krum", hostile=2),
            "exchange from round 1 on: 2 bits a value every 8 steps; multi-krum bears 2 liars,"
            " to send 124 times fewer bytes than dense (an exchange takes about 1.2 s)",
        ),
        (
            train_events.ValuesLate(round=2, values={"wren": 9, "otter": 4}),
            "round 3 continued without some values of otter, wren: they follow later",
        ),
        (checked("passed"), ""),
        (
            checked("convicted", convicted=["wren"]),
            "warning: wren's steps 9 to 16 of round 3 were done again by otter and lynx:"
            " the result is not what wren said, and wren lied",
        ),
        (
            checked("passed", convicted=["otter"]),
            "warning: wren's steps 9 to 16 of round 3 were done again by otter and lynx:"
            " the result is what wren said, and otter lied",
        ),
        (
            checked("withheld"),
            "warning: wren did not hand over what otter and lynx needed to do wren's steps 9 to 16 of round 3 again",
        ),
        (check_events.ChecksAwaited(checks=1), "all rounds are trained; waits for 1 check of the last one"),
        (
            check_events.ChecksUnended(checks=2, reason="they took too long"),
            "2 checks of the last round did not end: they took too long",
        ),
        (
            check_events.NothingLearnt(round=1, legs={"wren": 2, "otter": 1}),
            "warning: the local steps of otter and wren in round 2 changed no weight at all: is the learning rate 0, "
            "is all of it frozen, does loss() use another model?",
        ),
        (check_events.ChecksOff(reason="a reason"), "warning: nobody's work is checked in this job: a reason"),
        (
            check_events.PeerUnchecked(peer="wren", reason="a reason"),
            "warning: nobody checks the work of wren: a reason",
        ),
        (
            train_events.PeerLeftBehind(peer="wren", round=2, reason="paused: a game", left=3),
            "wren fell behind in round 3: paused: a game. The 3 others continue until it has caught up.",
        ),
        (train_events.PeerJoined(peer="wren", round=4), "wren takes part from round 5 on"),
        (events.RttMeasured(seconds={"otter": 0.001}, too_far=[], unreachable={}), ""),
        (
            events.PeersAwaited(there=1, needed=2, seconds=300, reason="1 of them is busy"),
            "waits up to 5 min 0 s for peers: 1 of at least 2 peers there (1 of them is busy)",
        ),
        (train_events.StateFound(round=12, rounds=40), "continues after round 12 of 40"),
        (
            train_events.StateFound(round=12, rounds=40, waiting=["otter", "lynx", "wren"]),
            "continues after round 12 of 40; otter, lynx and wren waited with it",
        ),
        (
            train_events.StateDamaged(round=12, file="states/x.damaged"),
            "warning: the state after round 12 is damaged, so the one before is used (states/x.damaged)",
        ),
        (
            events.FileDamaged(name="metrics.csv", file="jobs/x/metrics.csv.damaged"),
            "warning: metrics.csv was damaged (put aside as jobs/x/metrics.csv.damaged), and is made again from what is"
            " known",
        ),
        (train_events.TrainingStops(rounds=7), "the job ends after round 7: its owner stopped it"),
        (
            train_events.TrainingStops(rounds=12, metric="accuracy", best_round=6, best=0.93),
            "the job ends after round 12: for 5 rounds none was better (after round 7 it was accuracy 93.0 %)",
        ),
        (
            train_events.BestUnknown(metric="accuracy", given=["error", "recall"]),
            "warning: no round can be the best: evaluate() gives error, recall, and no accuracy",
        ),
        (train_events.RoundsLost(first=3, last=3), "warning: round 4 is lost: no later state is left"),
        (
            train_events.RoundsLost(first=3, last=7),
            "warning: rounds 4 to 8 are lost: no later state is left",
        ),
        (MIDWAY, ""),
        (FINISHED_ROUND, ""),
    ],
)
def test_lines_that_stay(event: events.Event, said: str) -> None:
    assert line_of(event, "train") == said


def test_the_bar_fills_with_rounds_and_the_fraction_of_the_one_that_runs() -> None:
    shown = after(after(Shown(), SUBMITTED), MIDWAY)
    assert (shown.done, shown.units, shown.doing) == (2.5, 20, "round 3/20")
    assert shown.headline == "loss 1.4  ETA 31 s"
    assert shown.peers == "heron 100 samples/s   otter 210 samples/s"


def test_a_round_that_is_told_while_the_next_one_runs_does_not_turn_the_bar_back() -> None:
    shown = after(after(after(Shown(), SUBMITTED), MIDWAY), FINISHED_ROUND)
    assert shown.done == max(2.5, FINISHED_ROUND.round + 1)
    assert after(shown, train_events.StateFound(round=1, rounds=20)).done == 1.0


def test_what_changes_once_a_round_stays_during_the_next() -> None:
    shown = after(after(Shown(), FINISHED_ROUND), MIDWAY)
    assert shown.facts == "held-out accuracy 91.0 %   held-out loss 0.3   310 KB on the wire   0.00172 credits"


def test_the_picture_has_no_line_wider_than_the_terminal() -> None:
    shown = after(after(Shown(), FINISHED_ROUND), MIDWAY)
    console = Console(width=60, file=io.StringIO(), force_terminal=True)
    lines = [
        "".join(segment.text for segment in line) for line in console.render_lines(picture(shown, 0.0, 60), pad=False)
    ]
    assert all(len(line) <= 60 for line in lines)
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_time_left_and_the_facts_are_whole_on_any_terminal(width: int) -> None:
    slow = msgspec.structs.replace(MIDWAY, round=11, eta_s=339.0)
    exchanged = msgspec.structs.replace(FINISHED_ROUND, round_bytes=1_200_000, dense_bytes=149_000_000)
    shown = after(after(Shown(), exchanged), slow)
    console = Console(width=width, file=io.StringIO(), force_terminal=True)
    lines = [
        "".join(segment.text for segment in line).rstrip()
        for line in console.render_lines(picture(shown, 0.0, width), pad=False)
    ]
    assert lines[0].endswith("ETA 5 min 39 s")
    for fact in ("held-out accuracy 91.0 %", "0.00172 credits", "otter 210 samples/s"):
        assert any(fact in line for line in lines), fact
    if width >= 60:
        assert "124 times fewer bytes than dense" in " ".join(" ".join(lines).split())
        assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_whose_workers_are_waited_for_is_not_cut_off_while_the_bar_has_room_to_give(width: int) -> None:
    shown = Shown(doing="sending the bundle", units=15, starting=("lynx", "otter"), sent_at=1000.0)
    console = Console(width=width, file=io.StringIO(), force_terminal=True)
    (line,) = console.render_lines(picture(shown, 1062.0, width), pad=False)
    assert "waits for the workers of lynx, otter: 1 min 2 s"[: width - 1] in "".join(part.text for part in line)


def test_a_choice_of_the_exchange_is_said_once_and_then_where_somebody_cares() -> None:
    def choice(number: int, **others: object) -> train_events.ExchangeChosen:
        return msgspec.structs.replace(CHOSEN, round=number, round_bytes=1_000_000, dense_bytes=124_000_000, **others)

    for bar in (True, False):
        lines = JobLines("train", bar=bar)
        assert lines.after(choice(0)).startswith("exchange from round 1 on: 2 bits a value every 8 steps")
        assert lines.after(choice(3, bits=4, exchange_every=10)) == ""
        halved = msgspec.structs.replace(choice(6), round_bytes=400_000)
        assert lines.after(halved) == "exchange from round 7 on: 400 KB a round, before 1.0 MB"
        assert len(lines.after(msgspec.structs.replace(halved, aggregation="multi-krum", hostile=2))) <= 60
        assert lines.after(LOST) == lines.after(LOST) != ""  # all else is said as often as it happens


def test_a_summary_says_what_a_job_came_to() -> None:
    text = text_of("train").end.summary(DONE, [])
    assert "accuracy 96.7 %" in text
    assert "1 peer lost (wren)" in text
    assert "0.00200 in all; 80 receipts" in text


def test_without_a_terminal_there_is_a_line_a_round_and_one_for_what_changes_the_course() -> None:
    stream = io.StringIO()
    with progress_on(stream, "train") as progress:
        for event in (SUBMITTED, MIDWAY, FINISHED_ROUND, LOST):
            progress.show(event)
    assert stream.getvalue().splitlines() == [
        line_of(SUBMITTED, "train"),
        line_without_bar(FINISHED_ROUND, "train"),
        line_of(LOST, "train"),
    ]


def test_a_name_cannot_steer_the_terminal() -> None:
    stream = io.StringIO()
    PlainLines(stream, "train").show(events.PeerRefused(peer="otter", reason="\x1b]0;mine\x07no"))
    assert "\x1b" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()


def test_no_stream_is_silence() -> None:
    with progress_on(None, "train") as progress:
        progress.show(SUBMITTED)
        with progress.paused():
            pass


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_bar_and_it_comes_back_after_a_question() -> None:
    stream = _Terminal()
    with progress_on(stream, "train") as progress:
        assert isinstance(progress, Bar)
        progress.show(SUBMITTED)
        with progress.paused():
            stream.write("question?")
        progress.show(LOST)
        progress.show(MIDWAY)
        progress.say("[not markup]")
    shown = stream.getvalue()
    assert shown.index("submitted digits-7f3a") < shown.index("question?") < shown.index("wren left in round 11")
    assert "[not markup]" in shown


def test_below_the_bar_stands_who_is_paused_until_it_goes_on_or_leaves() -> None:
    shown = after(Shown(), PAUSED)
    assert standing_still(shown) == "otter paused: another program uses 87 % CPU"
    waiting = after(shown, events.JobWaiting(peers=["otter"]))
    assert standing_still(waiting) == "the job waits: otter paused: another program uses 87 % CPU"
    assert standing_still(after(waiting, events.JobGoesOn())) == standing_still(shown)
    for gone in (events.PeerResumed(peer="otter"), events.PeerLost(peer="otter", round=0, reason="x", left=1)):
        assert standing_still(after(shown, gone)) == ""


def test_the_bundle_on_its_way_is_in_the_bar() -> None:
    moved = events.BundleProgress(bytes=10_000_000, member_bytes=60_000_000, fraction=0.175)
    assert after(Shown(), moved).doing == "sending the bundle (18 %, 10.0 MB sent, 60.0 MB passed on)"


def found(hired: int) -> events.PeersFound:
    return events.PeersFound(
        sources=["tracker lab:7070", "dht"], alive=4, fitting=4, looked_at=4, hired=hired, wanted=4
    )


def test_another_look_at_the_table_says_why_and_leaves_the_bar_to_what_is_waited_for() -> None:
    assert line_of(found(0), "train") == "tracker lab:7070 and dht know 4 peers, 4 fit this job"
    assert line_of(found(3), "train").startswith("3 of 4 peers hired, looking for one more: tracker lab:7070")
    assert line_of(found(2), "train").startswith("2 of 4 peers hired, looking for 2 more")
    shown = after(Shown(), SUBMITTED)
    assert after(shown, found(0)).doing == "measuring round-trip times"
    for name in ("otter", "heron"):
        shown = after(shown, events.PeerHired(peer=name, rank=0, cores=1, memory_mb=1024))
    measured = events.RttMeasured(seconds={"wren": 0.1}, too_far=[], unreachable={})
    for event in (found(2), measured):
        shown = after(shown, event)
        assert shown.doing == "sending the bundle"
    assert shown.search == "2 of 4 peers hired, looking for 2 more"


def test_while_workers_start_the_bar_says_whose_and_for_how_long() -> None:
    shown = after(Shown(), SUBMITTED)
    for name in ("otter", "heron"):
        shown = after(shown, events.PeerHired(peer=name, rank=0, cores=1, memory_mb=1024))
    sent = msgspec.structs.replace(events.BundleSent(peers=["otter", "heron"], bytes=1, seconds=1.0), at=100.0)
    shown = after(shown, sent)
    assert doing_now(shown, 100.2) == "waits for the workers of otter, heron"
    assert doing_now(shown, 112.0) == "waits for the workers of otter, heron: 12 s"
    assert doing_now(after(shown, found(2)), 131.0) == "waits for the workers of otter, heron: 31 s"
    slow = after(shown, train_events.PeersStarting(loading=["heron"], building=[], seconds=12.0))
    assert "heron still loads torch" in slow.slow
    shown = after(slow, train_events.PeerReady(peer="otter", rank=0, parameters=1))
    assert doing_now(shown, 113.0) == "waits for the worker of heron: 13 s"
    shown = after(shown, events.PeerLost(peer="heron", round=0, reason="x", left=1))
    assert doing_now(shown, 114.0) == "taking the first steps"
    assert doing_now(after(shown, MIDWAY), 115.0) == "round 3/20"


def test_a_peer_that_comes_late_does_not_hide_the_round() -> None:
    shown = after(after(Shown(), SUBMITTED), MIDWAY)
    shown = after(after(shown, events.PeerHired(peer="ibex", rank=4, cores=1, memory_mb=1024)), MIDWAY)
    assert doing_now(shown, 1.0) == "round 3/20"


def test_copies_too_begin_with_workers_that_start() -> None:
    shown = Shown()
    hired = events.PeerHired(peer="otter", rank=0, cores=1, memory_mb=1024)
    sent = msgspec.structs.replace(events.BundleSent(peers=["otter"], bytes=1, seconds=1.0), at=100.0)
    for event in (SUBMITTED, hired, sent):
        shown = after_of_kind(shown, event, "run")
    assert doing_now(shown, 105.0) == "waits for the worker of otter: 5.0 s"
    shown = after_of_kind(shown, run_events.CopyBegun(index=0, attempt=0, peer="otter"), "run")
    assert doing_now(shown, 106.0) == "0 of 20 copies"
