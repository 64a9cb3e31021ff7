"""A daemon on paper: it tells what a test wrote down, and does to it what the owner orders; no machine is touched."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from axonp2p.errors import SettingsError
from peer_daemon.control.status import (
    CreditsNow,
    DoneNow,
    HappeningTold,
    HistoryTold,
    JobEarned,
    JobNow,
    LedgerNow,
    LimitsAsked,
    LimitsNow,
    LogNow,
    MachineNow,
    NetworkNow,
    SpanTold,
    Status,
    TrackerNow,
)

NOON = 1_760_011_200.0
"""Of 9 October 2025, UTC."""
HOUR = 3600.0

DIGITS = JobNow(
    job="digits-7f3a",
    client="h7w2mzra",
    since=NOON - 1900,
    until=NOON + 5300,
    cores=2,
    memory_mb=611,
    memory_limit_mb=4096,
    cpu_seconds=3412.0,
    round=14,
    frozen=False,
)
MACHINE = MachineNow(
    cores=4,
    memory_mb=15_872,
    others_cpu_percent=6.0,
    memory_free_mb=9310,
    disk_free_mb=80_896,
    on_battery=False,
    battery_percent=None,
    temperature_c=58.0,
    input_idle_s=1260.0,
)
LIMITS = LimitsNow(cores=2, memory_mb=4096, disk_mb=2048, slots=1, hours=[], on_battery=False, others_cpu=25)
LAB = TrackerNow(address="https://lab.local:7070#9c41", answers=True)
NETWORK = NetworkNow(
    reachable="yes",
    address="203.0.113.7:7071",
    trackers=[LAB, TrackerNow(address="https://attic.example:7070#77aa", answers=True)],
    dht_nodes=41,
)
DAYS = [4.0, 0, 11.5, 18.2, 22, 19.4, 3.1, 0, 0, 14.9, 21.3, 25.5, 19.8, 17, 8.2, 2.0, 16.4, 23.9, 28.1, 24.6]
JOBS = [
    JobEarned(job="digits-7f3a", at=NOON - 40, rounds=14, earned=9.1, pending=6.4),
    JobEarned(job="text-11c0", at=NOON - 3.9 * HOUR, rounds=71, earned=88.4, pending=0.0),
    JobEarned(job="digits-02b6", at=NOON - 50 * HOUR, rounds=6, earned=3.7, pending=0.0),
]
CREDITS = CreditsNow(today=31.2, confirmed=412.0, pending=6.4, days=[0.0] * 9 + DAYS + [31.2], jobs=JOBS)
PROVED = LogNow(tracker="lab.local:7070", at=NOON - 1200, proved=6, entries=88_123, counts=412.0)
ALSO_PROVED = LogNow(tracker="attic.example:7070", at=NOON - 5.2 * HOUR, proved=6, entries=88_019, counts=409.1)
LEDGER = LedgerNow(logs=[PROVED, ALSO_PROVED])
DONE = DoneNow(jobs=3, rounds=91, samples=1_104_300, flops=2_740_000_000_000_000)

TRAINING = Status(
    version="0.1.0",
    name="otter",
    peer="6fokxkksq2wa",
    state="training",
    why="free",
    sentence="works on one job: nothing else needs the machine",
    since=NOON - 1900,
    now=NOON,
    jobs=[DIGITS],
    machine=MACHINE,
    limits=LIMITS,
    credits=CREDITS,
    done=DONE,
    network=NETWORK,
    ledger=LEDGER,
)


def changed(**fields: Any) -> Status:
    """`TRAINING` but for these."""
    return msgspec.structs.replace(TRAINING, **fields)


FROZEN = msgspec.structs.replace(DIGITS, frozen=True)
BUSY_MACHINE = msgspec.structs.replace(MACHINE, others_cpu_percent=87.0, input_idle_s=2.0)
BATTERY_MACHINE = msgspec.structs.replace(MACHINE, on_battery=True, battery_percent=62.0, temperature_c=None)
FALSE_LOG = LogNow(
    tracker="attic.example:7070",
    at=NOON - 300,
    proved=2,
    entries=88_140,
    counts=371.8,
    wrong="its log is false: it signed two logs of 88,019 entries",
)
OUT_OF_REACH = msgspec.structs.replace(NETWORK, reachable="no")
STATES: dict[str, Status] = {
    "training": TRAINING,
    "ready": changed(state="ready", sentence="no job wants this machine now", since=NOON - 4300, jobs=[]),
    "waiting": changed(
        state="waiting",
        why="busy",
        sentence="another program uses 87 % CPU (limit 25 %): firefox, cc1plus",
        since=NOON - 45,
        jobs=[FROZEN],
        machine=BUSY_MACHINE,
    ),
    "paused": changed(
        state="paused",
        why="paused",
        sentence="paused by you until 13:55",
        since=NOON - 300,
        until=NOON + 6900,
        jobs=[],
    ),
    "finishing": changed(
        state="finishing", why="finishing", sentence="finishing one job, then pausing", since=NOON - 20
    ),
    "battery": changed(
        state="waiting",
        why="battery",
        sentence="on battery (62 %)",
        since=NOON - 720,
        jobs=[],
        machine=BATTERY_MACHINE,
    ),
    "refused": changed(
        state="refused",
        why="no sandbox",
        sentence="user namespaces are for root only (bwrap: No permissions to create new namespace); "
        "to fix it: sudo sysctl -w kernel.unprivileged_userns_clone=1",
        since=NOON - 4300,
        jobs=[],
    ),
    "unreachable": changed(
        state="ready",
        sentence="no job wants this machine now",
        since=NOON - 4300,
        jobs=[],
        network=OUT_OF_REACH,
        ledger=LedgerNow(logs=[FALSE_LOG, PROVED]),
    ),
    "not findable": changed(
        state="ready",
        sentence="no job wants this machine now",
        since=NOON - 4300,
        jobs=[],
        findable=False,
        network=NetworkNow(
            reachable="unknown",
            address="",
            trackers=[msgspec.structs.replace(LAB, answers=False)],
            dht_nodes=0,
        ),
    ),
}


def span(began: float, ended: float, state: str, why: str, sentence: str) -> SpanTold:
    """Hours before noon."""
    return SpanTold(began=NOON - began * HOUR, ended=NOON - ended * HOUR, state=state, why=why, sentence=sentence)


FREE, BUSY = (
    "works on one job: nothing else needs the machine",
    "another program uses 87 % CPU (limit 25 %): firefox, cc1plus",
)
DAY = HistoryTold(
    spans=[
        span(26, 22.6, "training", "free", FREE),
        span(22.6, 21.9, "ready", "free", "no job wants this machine now"),
        span(21.9, 20.2, "waiting", "busy", BUSY),
        span(20.2, 17, "training", "free", FREE),
        span(17, 16.1, "paused", "paused", "paused by you until 19:54"),
        span(16.1, 14.4, "ready", "free", "no job wants this machine now"),
        span(12.6, 11.8, "waiting", "battery", "on battery (71 %)"),
        span(11.8, 6.2, "training", "free", FREE),
        span(6.2, 5.7, "waiting", "busy", "another program uses 64 % CPU (limit 25 %): cargo"),
        span(5.7, 3.9, "training", "free", FREE),
        span(3.9, 3.3, "refused", "no sandbox", "bubblewrap was missing"),
        span(3.3, 1.2, "waiting", "in use", "somebody sits at the machine"),
        span(1.2, 0.53, "ready", "free", "no job wants this machine now"),
        span(0.53, 0, "training", "free", FREE),
    ],
    happenings=[
        HappeningTold(at=NOON - 12.6 * HOUR, kind="started", sentence="the peer started"),
        HappeningTold(at=NOON - 11.8 * HOUR, kind="job began", sentence="a job began", job="text-11c0"),
        HappeningTold(at=NOON - 3.9 * HOUR, kind="job ended", sentence="71 rounds done, all accepted", job="text-11c0"),
        HappeningTold(at=NOON - 3.9 * HOUR, kind="job refused", sentence="a job was refused: no sandbox"),
        HappeningTold(at=NOON - 2.2 * HOUR, kind="limits", sentence="the limits were changed"),
        HappeningTold(at=NOON - 0.53 * HOUR, kind="job began", sentence="a job began", job="digits-7f3a"),
    ],
)


def day_of(status: Status) -> HistoryTold:
    """`DAY` up to where `status` began."""
    if status is TRAINING:
        return DAY
    spans = [one for one in DAY.spans if one.began < status.since]
    happenings = [one for one in DAY.happenings if one.at < status.since]
    if status.state == "paused":
        happenings.append(HappeningTold(at=status.since, kind="paused", sentence="paused for 2 h"))
    if status.since > DIGITS.since and not status.jobs:
        ended = f"13 rounds done, handed back: {status.sentence}"
        happenings.append(HappeningTold(at=status.since, kind="job ended", sentence=ended, job=DIGITS.job))
    return HistoryTold(spans=spans, happenings=happenings)


class PaperSteering:
    """`control.server.Steering` over a sheet of paper."""

    def __init__(self, status: Status, told: HistoryTold | None = None) -> None:
        self.sheet = status
        self.told = told or day_of(status)
        self.ordered: list[str] = []
        self._number = 0
        self._turned = asyncio.Condition()

    def status(self) -> Status:
        return self.sheet

    async def history(self, since: float) -> HistoryTold:
        spans = [one for one in self.told.spans if one.ended > since]
        return HistoryTold(spans=spans, happenings=[one for one in self.told.happenings if one.at > since])

    async def changed(self, after: int) -> int:
        async with self._turned:
            await self._turned.wait_for(lambda: self._number > after)
            return self._number

    async def turn(self, order: str, **fields: Any) -> None:
        """Write something else on the sheet; whoever waits for a change hears of it."""
        async with self._turned:
            self.ordered.append(order)
            self.sheet = msgspec.structs.replace(self.sheet, **fields)
            self._number += 1
            self._turned.notify_all()

    async def pause(self, seconds: float | None) -> None:
        until = None if seconds is None else self.sheet.now + seconds
        await self.turn(
            f"pause {seconds}", state="paused", why="paused", sentence="paused by you", until=until, since=NOON, jobs=[]
        )

    async def finish(self) -> None:
        await self.turn(
            "finish", since=NOON, state="finishing", why="finishing", sentence="finishing one job, then pausing"
        )

    async def resume(self) -> None:
        await self.turn(
            "resume", since=NOON, state="ready", why="free", sentence="no job wants this machine now", until=None
        )

    async def change_limits(self, asked: LimitsAsked) -> None:
        given = {name: value for name, value in msgspec.structs.asdict(asked).items() if value is not None}
        if given.get("cores", 0) > self.sheet.machine.cores:
            raise SettingsError("cores: this machine has 4", fix="cores = 4")
        await self.turn(f"limits {given}", limits=msgspec.structs.replace(self.sheet.limits, **given))
