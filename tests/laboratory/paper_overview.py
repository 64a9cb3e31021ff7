"""What an operator's page shows in each state, on paper; no tracker runs."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from tracker.api.status import OtherState
from tracker.page.overview import Disk, Overview, RelayNow, RequestCounts, Sample
from tracker.table.table_index import PeerCounts

NOON = 1_760_011_200.0
"""Of 9 October 2025, UTC."""
ATTIC = OtherState(
    address="https://attic.example:7070#77aa",
    tracker="attic" + "a" * 47,
    standing="configured",
    lives=True,
    failures=0,
    answered_s_ago=3.0,
    lag_s=0.4,
    equal_s_ago=20.0,
    fetched=12,
    pushed=40,
    log="88019 entries",
    bytes_sent=1,
    bytes_received=2,
)
SILENT = OtherState(
    address="https://cellar.example:7070#88bb",
    tracker="",
    standing="learnt",
    lives=False,
    failures=9,
    answered_s_ago=7300.0,
    lag_s=None,
    equal_s_ago=None,
    fetched=0,
    pushed=0,
    log="",
    bytes_sent=1,
    bytes_received=2,
)
FORKED = msgspec.structs.replace(
    ATTIC,
    address="https://barn.example:7070#99cc",
    tracker="barn" + "a" * 48,
    lag_s=41.2,
    log="FALSE: it signed two logs of 88019 entries, of which one lacks receipts that the other has",
)
DAY = tuple(
    Sample(
        at=NOON - 60 * ago,
        alive=200 + (ago % 37),
        announces=(1440 - ago) * 41,
        queries=(1440 - ago) ** 2 // 900,
        refusals=(1440 - ago) // 90,
        receipts=80_000 + 5 * (1440 - ago),
        relay_bytes=(1440 - ago) * 1_300_000,
    )
    for ago in range(1200, -1, -1)
)
BUSY = Overview(
    tracker="lab" + "a" * 49,
    address="https://lab.example:7070#" + "a" * 52,
    version="0.1.0",
    started=NOON - 20 * 3600,
    now=NOON,
    trouble="",
    peers=PeerCounts(ready=61, busy=132, unreachable=9, gone=40),
    traffic=RequestCounts(
        {"/v1/announce": 59_000, "/v1/query": 1_777, "/v1/receipts": 800, "other": 3},
        {"AX-407": 12, "AX-501": 3},
        1.7,
        10.0,
    ),
    trackers=[ATTIC, SILENT],
    receipts=87_200,
    convictions=2,
    disk=Disk(212_000_000, 41_000_000_000),
    relay=RelayNow(peers=20, streams=5, bytes=1_872_000_000, refused=4),
    hosted_jobs=1,
    samples=DAY,
)
EMPTY = replace(
    BUSY,
    started=NOON - 2,
    peers=PeerCounts(),
    traffic=RequestCounts(),
    trackers=[],
    receipts=0,
    convictions=0,
    relay=None,
    hosted_jobs=0,
    samples=(Sample(NOON, 0, 0, 0, 0, 0, 0),),
)
OVERVIEWS: dict[str, Overview] = {
    "busy": BUSY,
    "empty": EMPTY,
    "others dead": replace(BUSY, trackers=[SILENT]),
    "other log false": replace(BUSY, trackers=[ATTIC, FORKED, SILENT]),
    "disk almost full": replace(BUSY, disk=Disk(212_000_000, 912_000_000)),
    "disk damaged": replace(
        BUSY, trouble="it cannot store anything: the disk is full", disk=Disk(212_000_000, 12_000_000)
    ),
}


class PaperRecorder:
    """What `tracker.page.recorder` collects, written down."""

    def __init__(self, overview: Overview) -> None:
        self.sheet = overview

    async def overview(self) -> Overview:
        return self.sheet
