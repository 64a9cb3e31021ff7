"""Jobs on the client's disk: one folder a job, readable without any program of ours.

    HOME/jobs/<job>/
      job.json             what it is and how far it is, with its own hash; job.json.bak is a copy of it
      bundle.manifest      what the files of the bundle hash to
      bundle/              the task, its data and job.toml as they were when the job was submitted
      events.jsonl         what happened, a line of JSON each
      metrics.csv          a line a round
      report.html          all of it as pictures, written by the `axon` program when it ended
      logs/<peer>.log      what the task printed at each peer
      out/<peer>/          what the task of a training wrote into /out there
      model.layout         which tensors the weights have, once all peers have built the model
      model.safetensors    the weights, once it has finished
      best.safetensors     those of its best round, once it has finished, unless that is the last one
      wheels.json          which packages it brings along, for which platforms
      leases.json          which peers hold slots for it, while it runs
      states/              weights and outer momentum after the last rounds and the best one (`checkpoints`), until it
                           has finished

Every file is written beside its place and moved into it, so that a reader sees the old one or the new one. A round is
in the books once job.json says so, and its state, its line in metrics.csv and job.json are on the disk by then.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from axonp2p.client.events.events import Event, FileDamaged, as_line, from_line
from axonp2p.client.storage.checkpoints import Checkpoints
from axonp2p.client.storage.job_names import matching, no_such_job, several
from axonp2p.client.storage.job_record import JobRecord, has_record, mend_record, read_record, write_record
from axonp2p.disk_errors import not_writable
from axonp2p.errors import AlreadyRunning, NotFound, SettingsError
from axonp2p.files import locked, write_whole
from axonp2p.jobs.lifecycle import is_over

MOST_LOG_BYTES = 32 * 2**20
"""The most that a peer writes here in any job, whatever it prints. Less than a host lets be copied of one file."""
LOG_IS_FULL = b"\n[... of this log no more than 32 MiB is kept here ...]\n"


class JobFolder:
    """One job's folder. Cheap to make; holds nothing open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bundle = path / "bundle"
        self.events = path / "events.jsonl"
        self.metrics = path / "metrics.csv"
        self.manifest = path / "bundle.manifest"
        self.record_file = path / "job.json"
        self.report = path / "report.html"
        self.logs = path / "logs"
        self.model = path / "model.safetensors"
        self.best = path / "best.safetensors"
        self.layout = path / "model.layout"
        self.states = path / "states"
        self.leases = path / "leases.json"
        self.wheels = path / "wheels.json"

    def read(self) -> JobRecord:
        """job.json, or its copy where it is damaged. Raises `NotFound` or `SettingsError`."""
        return read_record(self.record_file)

    def write(self, record: JobRecord, *, lasting: bool = False) -> None:
        """Replace job.json; `lasting`: returns once it is on the disk."""
        write_record(self.record_file, record, lasting=lasting)

    def mend(self) -> list[Event]:
        """Make job.json and its copy whole before a life of the job begins; what is to be told of it.

        Raises as `read`, and `SettingsError` of a disk that takes nothing.
        """
        try:
            return [FileDamaged(name=name, file=str(aside or "")) for name, aside in mend_record(self.record_file)]
        except OSError as error:
            raise not_writable(self.path, error) from error

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

    def add_log(self, peer: str, log: bytes) -> None:
        """Add the job's log of the peer with that name (as its row spells it: no slash, no leading dot).

        Of each peer `MOST_LOG_BYTES` are kept; the file ends with a line that says so.
        """
        self.logs.mkdir(exist_ok=True)
        with (self.logs / f"{peer}.log").open("ab") as file:  # a job that was resumed had a log there before
            room = MOST_LOG_BYTES - file.tell()
            file.write(log[: max(0, room)])
            if 0 <= room < len(log):
                file.write(LOG_IS_FULL)

    def keep_bundle(self, files: Sequence[tuple[str, Path]], manifest: bytes) -> None:
        """Copy the files (relative path, source) of the bundle, so that the job can go on when they have changed.

        `manifest` says what they hash to. Raises `SettingsError`.
        """
        try:
            for name, source in files:
                target = self.bundle / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            write_whole(self.manifest, manifest)
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

    def killed_at_the_end(self) -> list[tuple[JobFolder, JobRecord]]:
        """Jobs that are over and whose programs were killed before they had removed states and given back slots."""
        found = []
        for path in {path.parent for name in ("states", "leases.json") for path in self._jobs.glob(f"*/{name}")}:
            folder = JobFolder(path)
            with contextlib.suppress(NotFound, SettingsError):
                record = folder.read()
                if is_over(record.state) and not folder.is_held():
                    found.append((folder, record))
        return found

    def with_leases(self) -> list[JobFolder]:
        """Jobs that hold leases, or held some when their programs were killed."""
        return [JobFolder(path.parent) for path in sorted(self._jobs.glob("*/leases.json"))]

    def has(self, job: str) -> bool:
        """Whether there is a folder of that very name."""
        return (self._jobs / job).exists()

    def has_record(self, job: str) -> bool:
        """Whether that folder has a job.json, or its copy, by now."""
        return has_record(self._jobs / job / "job.json")

    def place_of(self, job: str) -> JobFolder:
        """Where the folder of a job with that id is, or will be."""
        return JobFolder(self._jobs / job)

    def find(self, job: str) -> JobFolder:
        """The folder of a job by its id, or by the beginning of it. Raises `NotFound`, or `Ambiguous` of it."""
        names = self.names()
        found = matching(names, job)
        if len(found) > 1:
            raise several(job, found)
        if not found:
            raise no_such_job(job, names)
        return JobFolder(self._jobs / found[0])

    def removable(self, folder: JobFolder) -> JobRecord:
        """The record of a job that may be removed. Raises `AlreadyRunning` where something still works on it,
        and `SettingsError` where peers hold slots for it or it is not over."""
        record = folder.read()
        cancel = f"axon cancel {record.id}"
        if folder.is_held():
            raise AlreadyRunning(f"a program is at work on the job {record.id}", fix=cancel)
        if not is_over(record.state) or folder.leases.exists():
            raise SettingsError(f"{record.id} is not over, so it is not removed: it is {record.state}", fix=cancel)
        return record

    def remove(self, folder: JobFolder) -> None:
        """Remove its folder, and nothing that a link in it leads to. Raises as `removable`."""
        self.removable(folder)
        if folder.path.is_symlink() or folder.path.parent != self._jobs:
            raise SettingsError(f"{folder.path} is no folder of a job in {self._jobs}")
        try:
            shutil.rmtree(folder.path)
        except OSError as error:
            raise SettingsError(f"cannot remove {folder.path}: {error.strerror}", fix=f"rm -r {folder.path}") from error

    def names(self) -> list[str]:
        """The ids of all jobs, by alphabet."""
        return [path.name for path in self._folders()]

    def records(self) -> list[JobRecord]:
        """All jobs that can be read, the oldest first."""
        return self.all()[0]

    def all(self) -> tuple[list[JobRecord], dict[str, SettingsError]]:
        """The same, and by the folder's name why others cannot be read."""
        found: list[JobRecord] = []
        unreadable: dict[str, SettingsError] = {}
        for path in self._folders():
            try:
                found.append(JobFolder(path).read())
            except NotFound:  # removed meanwhile
                continue
            except SettingsError as error:
                unreadable[path.name] = error
        return sorted(found, key=lambda record: (record.created, record.id)), unreadable

    def _folders(self) -> list[Path]:
        return sorted(
            {path.parent for pattern in ("*/job.json", "*/job.json.bak") for path in self._jobs.glob(pattern)}
        )
