"""From the job file to what the coordinator is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.client.events.events import RttsGuessed
from axonp2p.client.run.training_plan import rtts_among, wishes_of
from axonp2p.jobs.job_file_keys import COMPRESSIONS
from axonp2p.jobs.spec import TrainSpec, parse_spec
from axonp2p.peers.coordinates import Coordinate, write_coordinate
from axonp2p.training import wishes
from axonp2p.training.wishes import ExchangeSettings
from tests.fakes import key_of, make_row


def test_a_job_that_wishes_nothing_leaves_everything_to_be_chosen() -> None:
    assert wishes_of(TrainSpec()) == ExchangeSettings()


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
error-feedback = 0.95
momentum-correction = 0.9
clip = 2
warm-up-rounds = 4
aggregation = "centred-clipping"
hostile = 0
""",
        "job.toml",
    )
    assert wishes_of(spec.train) == ExchangeSettings(
        bits=2, density=0.02, exchange_every=5, seconds=30.0, overlap=False, outer_learning_rate=0.5,
        outer_momentum=0.8, error_feedback=0.95, momentum_correction=0.9, clip=2.0, warm_up_rounds=4,
        aggregation="centred-clipping", hostile=0,
    )  # fmt: skip


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_every_name_of_a_compression_is_understood(name: str) -> None:
    assert wishes_of(TrainSpec(compression=name)).bits == wishes.COMPRESSIONS[name]
    assert set(COMPRESSIONS) == set(wishes.COMPRESSIONS)


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
