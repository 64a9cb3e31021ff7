"""Jobs on the client's disk: one folder a job, readable without any program of ours.

    HOME/jobs/<job>/
      job.json             what it is and how far it is
      bundle/              the task, its data and job.toml as they were when the job was submitted
      events.jsonl         what happened, a line of JSON each
      metrics.csv          a line a round
      report.html          all of it as pictures, written by the `axon` program when it ended
      logs/<peer>.log      what the task printed at each peer
      model.safetensors    the weights, once it has finished
      leases.json          which peers hold slots for it, while it runs
      states/              weights and outer momentum after the last rounds (`checkpoints`), until it has finished

Every file is written beside its place and moved into it, so that a reader sees the old one or the new one. A round is
in the books once job.json says so, and its state, its line in metrics.csv and job.json are on the disk by then.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from axonp2p.client.checkpoints import Checkpoints
from axonp2p.client.events import Event, RoundFinished, as_line, from_line
from axonp2p.client.files import in_order, not_writable, read_metrics
from axonp2p.errors import AlreadyRunning, NotFound, SettingsError
from axonp2p.files import locked, replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.training.messages import RoundDone
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, Number, UnixMoment
from axonp2p.wire.ranks import Rank


class PeerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One peer of a job, for people and for `axon status`."""

    name: str
    peer: str
    rank: Count
    reservation: str
    rtt_s: Number
    lost: str = ""
    """Why it left before the end; empty while it is there."""
    paused: str = ""
    """Why it stands still now; empty while it works."""


class Receipts(msgspec.Struct, frozen=True, kw_only=True):
    """The receipts of one peer under one reservation."""

    reservation: str
    peer: str
    last: Count
    """The number of the last one that was written."""
    open: list[bytes]
    """Those that it has not signed."""


class AheadRound(msgspec.Struct, frozen=True, kw_only=True):
    """A round that all peers agree on, while its state is on the way to this disk."""

    finished: RoundFinished
    """What will be told of it."""
    state: str
    """The name of what it led to."""
    round_bytes: Count
    """On the wire, for it."""
    reports: dict[Rank, RoundDone]
    """By rank, for receipts."""


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, as it was shown."""

    code: str
    message: str
    cause: str = ""
    fix: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of job.json. Times are Unix seconds."""

    id: str
    name: str
    folder: str
    """Where it was submitted from."""
    spec: dict[str, Any]
    state: JobState
    created: UnixMoment
    updated: UnixMoment
    peers_wanted: Count
    rounds: Count
    round: Count = 0
    """How many rounds are accepted."""
    loss: Number | None = None
    metrics: dict[str, Number] = {}
    peers: list[PeerRecord] = []
    reservations: list[str] = []
    tracker: str = ""
    wire_bytes: Count = 0
    credits: dict[str, Number] = {}
    """By peer; of counter-signed receipts."""
    model_sha256: str = ""
    kept_state: str = ""
    """The name of the newest state in states/, when there is one to go on from."""
    kept_round: Count = 0
    """How many rounds are in it; a job without one begins anew."""
    state_name: str = ""
    """The name of the state after the last round in the books."""
    ahead: AheadRound | None = None
    """Accepted, but not in the books."""
    receipts: list[Receipts] = []
    lives: Count = 0
    """How many coordinators it had."""
    last: RoundFinished | None = None
    """The last round in the books: its line in events.jsonl may be missing after a crash."""
    waits_for: list[str] = []
    """Paused peers without which it cannot go on."""
    error: ErrorRecord | None = None


class JobFolder:
    """One job's folder. Cheap to make; holds nothing open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bundle = path / "bundle"
        self.events = path / "events.jsonl"
        self.metrics = path / "metrics.csv"
        self.report = path / "report.html"
        self.logs = path / "logs"
        self.model = path / "model.safetensors"
        self.states = path / "states"
        self.leases = path / "leases.json"

    def read(self) -> JobRecord:
        """job.json. Raises `NotFound` or `SettingsError`."""
        try:
            return decode_json((self.path / "job.json").read_bytes(), JobRecord)
        except FileNotFoundError as error:
            raise NotFound(f"there is no job {self.path.name}", fix="axon jobs lists those that there are") from error
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(f"{self.path / 'job.json'} cannot be read: {error}") from error

    def write(self, record: JobRecord, *, lasting: bool = False) -> None:
        """Replace job.json; `lasting`: returns once it is on the disk."""
        text = msgspec.json.format(msgspec.json.encode(record), indent=2)
        with replacing(self.path / "job.json", lasting=lasting) as file:
            file.write(text + b"\n")

    def checkpoints(self, most: int) -> Checkpoints:
        """Its states, of which so many are kept."""
        return Checkpoints(self.states, self.path.name, most)

    def add_event(self, event: Event) -> None:
        """One more line in events.jsonl, after what a crash cut off, if it did."""
        with self.events.open("ab+") as file:
            if file.tell() and not self._ends_a_line(file):
                file.write(b"\n")
            file.write(as_line(event) + b"\n")

    @staticmethod
    def _ends_a_line(file: IO[bytes]) -> bool:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"

    def read_events(self) -> list[Event]:
        """All whole lines of events.jsonl; a line that a crash cut off is left out."""
        if not self.events.exists():
            return []
        found = []
        for line in self.events.read_bytes().splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                found.append(from_line(line))
        return found

    def add_metrics(self, row: Mapping[str, float]) -> None:
        """One more line in metrics.csv, its columns by name; a column that is new is added to the lines before."""
        rows = read_metrics(self.metrics)
        columns = list(rows[0]) if rows else []
        if columns and set(row) <= set(columns):
            with self.metrics.open("a", newline="") as file:
                csv.DictWriter(file, columns, restval="").writerow(row)
                file.flush()
                os.fsync(file.fileno())
            return
        self._write_metrics(in_order([*columns, *(key for key in row if key not in columns)]), [*rows, row])

    def _write_metrics(self, columns: list[str], rows: Sequence[Mapping[str, object]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
        with replacing(self.metrics, lasting=True) as file:
            file.write(text.getvalue().encode())

    def keep_metrics(self, rounds: int) -> None:
        """Keep the lines of the first so many rounds, and forget those that will be trained again, or were cut off."""
        rows = read_metrics(self.metrics)
        kept = [row for row in rows if None not in row.values() and int(row["round"]) <= rounds]
        if len(kept) < len(rows):
            self._write_metrics(list(rows[0]), kept)

    def add_log(self, peer: str, log: bytes) -> None:
        """Add the job's log of the peer with that name (as its row spells it: no slash, no leading dot)."""
        self.logs.mkdir(exist_ok=True)
        with (self.logs / f"{peer}.log").open("ab") as file:  # a job that was resumed had a log there before
            file.write(log)

    def keep_bundle(self, files: Sequence[tuple[str, Path]]) -> None:
        """Copy the files (relative path, source) of the bundle, so that the job can go on when they have changed.

        Raises `SettingsError`.
        """
        try:
            for name, source in files:
                target = self.bundle / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        except OSError as error:
            raise not_writable(self.path, error) from error

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this process works on the job. Raises `AlreadyRunning` when another does."""
        taken = f"another program is at work on the job {self.path.name}"
        with locked(self.path / ".held", taken, fix=f"axon status {self.path.name}"):
            yield

    def is_held(self) -> bool:
        """Whether some process works on the job now (a kill of that process lets go of it)."""
        try:
            with self.held():
                return False
        except AlreadyRunning:
            return True


class JobStore:
    """All jobs of one home."""

    def __init__(self, home: Path) -> None:
        self._jobs = home / "jobs"

    def create(self, record: JobRecord) -> JobFolder:
        """A new folder with its job.json. Raises `SettingsError`."""
        folder = JobFolder(self._jobs / record.id)
        try:
            folder.path.mkdir(parents=True, mode=0o700)
            folder.write(record)
        except OSError as error:
            raise not_writable(folder.path, error) from error
        return folder

    def has(self, job: str) -> bool:
        """Whether there is a folder of that very name."""
        return (self._jobs / job).exists()

    def has_record(self, job: str) -> bool:
        """Whether that folder has a job.json by now."""
        return (self._jobs / job / "job.json").exists()

    def place_of(self, job: str) -> JobFolder:
        """Where the folder of a job with that id is, or will be."""
        return JobFolder(self._jobs / job)

    def find(self, job: str) -> JobFolder:
        """The folder of a job by its id, or by the beginning of it when that is clear. Raises `NotFound`."""
        names = [path.name for path in self._folders()]
        fitting = [job] if job in names else [name for name in names if job and name.startswith(job)]
        if len(fitting) != 1:
            cause = f"it could be {', '.join(fitting)}" if fitting else ""
            raise NotFound(f"there is no one job {job}", cause=cause, fix="axon jobs lists those that there are")
        return JobFolder(self._jobs / fitting[0])

    def records(self) -> list[JobRecord]:
        """All jobs that can be read, the oldest first."""
        found = []
        for path in self._folders():
            with contextlib.suppress(SettingsError):
                found.append(JobFolder(path).read())
        return sorted(found, key=lambda record: (record.created, record.id))

    def _folders(self) -> list[Path]:
        return sorted(path.parent for path in self._jobs.glob("*/job.json"))
