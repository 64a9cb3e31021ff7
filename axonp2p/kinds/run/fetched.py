"""The results of a job of this kind, for programs: each index with its end and its files. Blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.kinds.run.messages import MOST_COPIES
from axonp2p.kinds.run.results import ResultsFile
from axonp2p.kinds.run.section import RunJob


@dataclass(frozen=True)
class FetchedCopy:
    """The result of one index."""

    index: int
    peer: str
    code: int
    """The exit code; below 0: the number of the signal that ended it."""
    seconds: float
    files: list[Path]
    """Those that came home, where they lie."""


def fetched(results: Path) -> list[FetchedCopy]:
    """Those in results.csv, in the order of their indices, with their files in `out` beside it."""
    lines = ResultsFile(results, MOST_COPIES).read()
    return [
        FetchedCopy(index, line.peer, line.code, line.seconds, _files(results.parent / "out" / str(index)))
        for index, line in sorted(lines.items())
    ]


def outputs_of(record: JobRecord, folder: Path) -> dict[str, int]:
    """As `jobs.kinds.JobKind` has it. Raises `SettingsError`."""
    spec = spec_of(record)
    if not isinstance(spec, RunJob) or not spec.run.outputs:
        return {}
    lines = ResultsFile(folder / "results.csv", spec.run.copies).read().values()
    return {f"out/{line.index}": line.bytes for line in lines if not line.code}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
