"""The numbers behind the pictures of a training. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axonp2p.plain_text import bytes_text
from client_cli.report.lanes import Doing, Lane
from client_cli.report.lanes_picture import sums_of
from client_cli.report.rtt_picture import rtt_text
from client_cli.report.tables import ROWS_SHOWN, Cell, Table, state_word
from client_cli.text.render import credits_text, duration_text, metric_text, rate_text
from client_cli.train.story import TrainStory


def rounds(story: TrainStory) -> Table:
    """A line a round: loss, held-out metrics, speed."""
    metrics = sorted({name for one in story.rounds for name in one.metrics})
    planned = max(story.rounds_planned, story.done, 1)
    shown = story.rounds[-ROWS_SHOWN:][::-1]
    return Table(
        "rounds",
        ["Round", "Loss", *(f"Held-out {name}" for name in metrics), "Samples", "Time", "Peers"],
        [
            [
                f"{one.round + 1}", f"{one.loss:.4g}",
                *(_metric(name, one.metrics.get(name)) for name in metrics),
                f"{one.samples:,}", duration_text(one.seconds), f"{len(one.samples_per_second)}",
            ]
            for one in shown
        ],
        ["round", "at", "loss", *(f"held_out_{name}" for name in metrics), "samples", "seconds", "peers"],
        [
            [one.round + 1, one.at, one.loss, *(one.metrics.get(name) for name in metrics), one.samples,
             round(one.seconds, 4), len(one.samples_per_second)]
            for one in story.rounds
        ],
        [(one.round + 1) / planned for one in shown],
    )  # fmt: skip


def _metric(name: str, value: float | None) -> str:
    return "-" if value is None else metric_text(name, value).removeprefix(f"{name} ")


def bytes_a_round(story: TrainStory) -> Table:
    """A line a round: bytes among the peers, and those of a dense exchange."""
    planned = max(story.rounds_planned, story.done, 1)
    shown = story.rounds[-ROWS_SHOWN:][::-1]
    return Table(
        "bytes",
        ["Round", "Among the peers", "Dense exchange", "Fewer"],
        [
            [
                f"{one.round + 1}",
                bytes_text(one.round_bytes),
                bytes_text(one.dense_bytes),
                _fewer(one.round_bytes, one.dense_bytes),
            ]
            for one in shown
        ],
        ["round", "round_bytes", "dense_bytes", "wire_bytes_so_far"],
        [[one.round + 1, one.round_bytes, one.dense_bytes, one.wire_bytes] for one in story.rounds],
        [(one.round + 1) / planned for one in shown],
    )


def _fewer(sent: int, dense: int) -> str:
    return f"{dense / sent:.3g} times" if sent and dense else "-"


TOLD: tuple[Doing, ...] = ("train", "exchange", "wait", "paused", "behind", "lost")


def work(story: TrainStory, lanes: Sequence[Lane]) -> Table:
    """A line a peer to read: what it did with its time; a line for every peer's round in the CSV."""
    texts = []
    for lane in lanes:
        sums = sums_of(lane)
        texts.append([lane.peer, *(duration_text(sums[doing]) if sums.get(doing) else "-" for doing in TOLD)])
    columns = ["round", "peer", "train_seconds", "exchange_seconds", "round_seconds", "exchanges", "samples",
               "sent_bytes", "received_bytes", "kept_back"]  # fmt: skip
    rows: list[list[Cell]] = [
        [one.round + 1, name, round(share.train_seconds, 4), round(share.exchange_seconds, 4), round(one.seconds, 4),
         share.exchanges, share.samples, share.sent_bytes, share.received_bytes, share.kept_back]
        for one in story.rounds for name, share in one.peers.items()
    ]  # fmt: skip
    return Table("work", ["Peer", "Train", "Exchange", "Wait", "Paused", "Behind", "Lost"], texts, columns, rows)


def peers(story: TrainStory, credits: Mapping[str, float], over: bool) -> Table:
    """A line a peer: distance, speed, bytes, credits."""
    sums = {name: [0, 0, 0, 0] for name in story.peers}
    for one in story.rounds:
        for name, share in one.peers.items():
            for place, amount in enumerate((1, share.samples, share.sent_bytes, share.received_bytes)):
                sums[name][place] += amount
    texts, rows = [], list[list[Cell]]()
    for peer in story.peers.values():
        done, samples, sent, received = sums[peer.name]
        word = state_word(peer, over=over)
        earned = credits.get(peer.name, 0.0)
        speed = "-" if peer.samples_per_second is None or over else f"{rate_text(peer.samples_per_second)}/s"
        distance = "-" if peer.rtt_s is None else rtt_text(peer.rtt_s)
        texts.append([peer.name, word, distance, f"{done:,}", f"{samples:,}", speed, bytes_text(sent),
                      bytes_text(received), credits_text(earned), peer.why])  # fmt: skip
        rows.append(
            [peer.name, word, peer.rtt_s, done, samples, peer.samples_per_second, sent, received, earned, peer.why]
        )
    heads = ["Peer", "State", "RTT", "Rounds", "Samples", "Speed", "Sent", "Received", "Credits", "Why"]
    columns = ["peer", "state", "rtt_seconds", "rounds", "samples", "samples_per_second", "sent_bytes",
               "received_bytes", "credits", "why"]  # fmt: skip
    return Table("peers", heads, texts, columns, rows)
