"""What a terminal says of calls: how many are done, and when they will be."""

from __future__ import annotations

import msgspec

from axonp2p.client.events import events
from axonp2p.client.events.event import Event
from axonp2p.kinds.map.events import ChunkDone
from client_cli.text.event_text import JobLines, after
from client_cli.text.kind_text import Shown


def chunk(at: float, done: int, failed: int = 0) -> Event:
    event = ChunkDone(
        chunk=1, peer="otter", calls=10, first=0, seconds=1.0, done=done, items=1000, failed=failed
    )  # fmt: skip
    return msgspec.structs.replace(event, at=at)


def test_without_a_bar_there_is_a_line_every_10_seconds_and_at_the_end() -> None:
    lines = JobLines("map", bar=False)
    told = [lines.after(chunk(1000.0 + second, 100 + 10 * second, failed=2)) for second in range(91)]
    said = [line for line in told if line]
    assert said[:2] == [
        "100 of 1,000 calls done, 2 failed",
        "200 of 1,000 calls done, 2 failed, about 1 min 20 s to go",
    ]
    assert said[-1] == "1,000 of 1,000 calls done, 2 failed"
    assert len(said) == 10


def test_calls_that_are_not_counted_yet_have_no_number() -> None:
    event = events.JobSubmitted(job="pi", folder="/s", peers=2, rounds=0, bundle_bytes=300)
    assert JobLines("map", bar=False).after(event) == "submitted pi: calls on up to 2 peers, bundle 300 B"


def test_the_bar_says_when_it_will_be_done_by_what_this_life_of_the_job_did() -> None:
    shown = Shown()
    sent = msgspec.structs.replace(events.BundleSent(peers=["otter"], bytes=3, seconds=0.1), at=1000.0)
    for event in (
        events.JobSubmitted(job="pi", folder="/s", peers=1, rounds=1000, bundle_bytes=3, resumed_from_round=400),
        sent,
        chunk(1010.0, 500),
    ):
        shown = after(shown, event, "map")
    assert (shown.done, shown.units, shown.doing) == (500.0, 1000, "500 of 1,000 calls")
    assert shown.headline == "about 50 s to go"
