"""From the job file to what the coordinator is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from axonp2p.client.events.events import RttsGuessed
from axonp2p.client.run.staffing import rtts_among
from axonp2p.jobs.spec import parse_spec
from axonp2p.kinds.train.section import TrainJob, TrainSpec
from axonp2p.peers.coordinates import Coordinate, write_coordinate
from axonp2p.training.options import StepOptions
from tests.fakes import key_of, make_row


def test_every_wish_arrives() -> None:
    spec = parse_spec(
        """name = "x"
[train]
compression = "2-bit"
density = 0.02
exchange-every = 5
seconds = 30
overlap = false
outer-learning-rate = 0.5
outer-momentum = 0.8
aggregation = "centred-clipping"
hostile = 0
""",
        "job.toml",
    )
    assert spec.train == TrainSpec(
        compression="2-bit", density=0.02, exchange_every=5, seconds=30.0, overlap=False, outer_learning_rate=0.5,
        outer_momentum=0.8, aggregation="centred-clipping", hostile=0,
    )  # fmt: skip


def test_what_a_step_is_to_be_told_arrives() -> None:
    text = 'name = "x"\n[train]\nmicro-batch = 8\nclip-gradients = 1.5\nautocast = "bf16"\nloader-workers = 2\n'
    spec = parse_spec(f'{text}step-timeout = "10 min"\n', "job.toml")
    assert isinstance(spec, TrainJob)
    assert spec.train.step_timeout == 600
    told = spec.train.step_options
    assert told == StepOptions(clip_gradients=1.5, micro_batch=8, autocast="bf16", loader_workers=2)


def hired(name: str, place: float | None) -> Any:
    """A lease, as far as its row tells where the peer stands: so many milliseconds along a line, 2 above it."""
    told = b"" if place is None else write_coordinate(Coordinate((place, 0.0, 0.0, 0.0), 2.0, 0.1))
    return SimpleNamespace(name=name, row=make_row(key_of(name), coordinate=told))


def test_how_far_peers_are_from_each_other_is_guessed_where_both_tell_their_place() -> None:
    found = rtts_among([hired("otter", 0), hired("heron", 30), hired("lynx", None), hired("wren", 40)])
    assert isinstance(found, RttsGuessed)
    told = {(one, other): round(s * 1000) for one, row in found.seconds.items() for other, s in row.items()}
    assert told == {("otter", "heron"): 34, ("otter", "wren"): 44, ("heron", "wren"): 14}
    assert rtts_among([hired("otter", None), hired("heron", 3)]) is None
