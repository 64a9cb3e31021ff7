"""All that the owner may see of the daemon at one moment: the command line prints it, the page draws it. JSON.

Nothing secret stands in it. Times are Unix seconds, memory and disk MiB, credits cobblestones.
"""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["training", "ready", "waiting", "paused", "finishing", "refused"]
"""training   a job runs
ready      nothing keeps it from working; no job wants it now
waiting    something keeps it from working that passes by itself (busy, battery, hours, ...)
paused     the owner said so
finishing  the owner said so: running rounds are ended first
refused    it cannot work here until something is mended (no sandbox)"""


class Told(msgspec.Struct, frozen=True):
    """The base of all of it."""


class JobNow(Told, frozen=True, kw_only=True):
    """A lease that lives."""

    job: str
    client: str
    """Its first letters."""
    since: float
    until: float
    cores: int
    memory_mb: int
    """The memory that it uses now."""
    memory_limit_mb: int
    cpu_seconds: float
    round: int
    """Accepted rounds of this lease."""
    frozen: bool
    """Whether it waits, stopped, for the machine to be free."""
    gpu: str = ""
    """The card that it has; empty for none."""


class MachineNow(Told, frozen=True, kw_only=True):
    """The machine as the policy sees it; None where it does not tell."""

    cores: int
    memory_mb: int
    others_cpu_percent: float
    memory_free_mb: int | None = None
    disk_free_mb: int | None = None
    on_battery: bool | None = None
    battery_percent: float | None = None
    temperature_c: float | None = None
    input_idle_s: float | None = None
    gpus: list[str] = []
    """A sentence for each card that is seen: lent, or why not."""
    standby_mb: int = 0
    """The memory that a worker that waits for the next job holds, in MiB; 0: none waits."""


class LimitsNow(Told, frozen=True, kw_only=True):
    """The limits that the owner sets; their names are those of the settings, in snake case."""

    cores: int
    memory_mb: int
    disk_mb: int
    slots: int
    hours: list[str]
    on_battery: bool
    others_cpu: int
    """Percent."""
    yield_to: list[str] = []
    in_use_run: bool = True
    """Whether jobs run while somebody uses the machine ..."""
    in_use_cores: int = 0
    """... and on how many cores each; 0: as many as otherwise."""


class JobEarned(Told, frozen=True, kw_only=True):
    """The earnings of one job; a receipt that its tracker refused for ever brings none."""

    job: str
    at: float
    """When its last round was accepted."""
    rounds: int
    earned: float
    """In cobblestones."""
    pending: float
    """The part of it that no tracker has acknowledged yet."""


class CreditsNow(Told, frozen=True, kw_only=True):
    """In cobblestones."""

    today: float
    """Of rounds accepted since midnight, local time; confirmed or not."""
    confirmed: float
    """In a tracker's ledger, in all."""
    pending: float
    """Signed, but no tracker has acknowledged it yet."""
    days: list[float]
    """Of the last 30 days, oldest first, today last."""
    jobs: list[JobEarned] = []
    """The last ten, that of the newest receipt first."""


class LogNow(Told, frozen=True, kw_only=True):
    """The outcome of the last look at one tracker's log."""

    tracker: str
    """HOST:PORT."""
    at: float
    proved: int = 0
    """Receipts of this peer, of those that were picked, that are proved to be in its log."""
    entries: int = 0
    """Of its log, under the head that it signed."""
    counts: float = 0.0
    """The earnings of this peer in its ledger, in cobblestones."""
    wrong: str = ""
    """The reason why it is not believed: a proof that it did not give, or a false log; empty when all is well."""


class LedgerNow(Told, frozen=True, kw_only=True):
    """Whether trackers have what this peer has earned, looked up now and then."""

    logs: list[LogNow] = []
    """One for each tracker that was looked at since the start, the last look first."""
    silent: str = ""
    """Why the last look found nothing out; empty when it did."""
    silent_at: float = 0.0


class DoneNow(Told, frozen=True, kw_only=True):
    """The work of this machine, in the time that the receipts tell of."""

    jobs: int
    rounds: int
    samples: int
    flops: int


class TrackerNow(Told, frozen=True, kw_only=True):
    """A tracker that this peer announces to, or knows."""

    address: str
    answers: bool
    """Whether it took the row the last time."""
    trouble: str = ""
    """Why it did not, where that is known."""


class Carried(Told, frozen=True, kw_only=True):
    """The traffic that this machine carries as a relay."""

    on: bool
    """Whether others are told of it: only while they can call this peer."""
    peers: int
    """Registered now."""
    streams: int
    """Carried now."""
    bytes: int
    """Since the start of the daemon."""


class NetworkNow(Told, frozen=True, kw_only=True):
    """How the peer is to be found."""

    reachable: Literal["yes", "no", "unknown"]
    """Whether others can call it."""
    address: str
    """Where; empty while nobody can find it."""
    trackers: list[TrackerNow]
    dht_nodes: int
    """Known nodes; 0 also when it takes no part."""
    relays: list[str] = []
    """HOST:PORT of those through which others reach it."""
    router: str = ""
    """Whether the router forwards the port, or why it was not asked."""
    carried: Carried | None = None
    """The traffic that it carries for others; None when it is no relay."""


class Status(Told, frozen=True, kw_only=True):
    """The whole of it."""

    version: str
    name: str
    peer: str
    state: State
    why: str
    """One of `idle.decision.Why`."""
    sentence: str
    """One true sentence: what it does, or why it does nothing."""
    since: float
    until: float | None = None
    """When a pause ends by itself; None: it does not, or there is none."""
    findable: bool = True
    """False while no tracker and no DHT node has its row: nobody can send it work."""
    now: float
    jobs: list[JobNow]
    machine: MachineNow
    limits: LimitsNow
    credits: CreditsNow
    done: DoneNow
    network: NetworkNow
    ledger: LedgerNow = LedgerNow()
    page: str = ""
    """Address of the status page; empty when it is off."""


class SpanTold(Told, frozen=True, kw_only=True):
    """A stretch of time in one state."""

    began: float
    ended: float
    state: str
    why: str
    sentence: str


class HappeningTold(Told, frozen=True, kw_only=True):
    """Something that happened at one moment."""

    at: float
    kind: str
    """started, stopped, job began, job ended, job refused, paused, resumed, limits"""
    sentence: str
    job: str = ""


class HistoryTold(Told, frozen=True, kw_only=True):
    """The history since some time, oldest first, as far as it was kept."""

    spans: list[SpanTold]
    happenings: list[HappeningTold]


class PauseAsked(Told, frozen=True, kw_only=True):
    """Pause now; for so many seconds, or until `resume`."""

    seconds: float | None = None


class LimitsAsked(Told, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change these; None: leave as it is."""

    cores: int | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    slots: int | None = None
    hours: list[str] | None = None
    on_battery: bool | None = None
    others_cpu: int | None = None
    yield_to: list[str] | None = None
    in_use_run: bool | None = None
    in_use_cores: int | None = None
