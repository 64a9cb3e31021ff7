"""The files that the task wrote into /out at its peers, as the job's folder names them once home (`task_files`)."""

from __future__ import annotations

from pathlib import Path

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.jobs.output_messages import TASK_FILES
from axonp2p.kinds.train.events import TaskFilesKept


def folders(record: JobRecord, folder: Path) -> dict[str, int]:
    """Relative to the job's folder, each with the most bytes that it may have, as the events tell. Blocks."""
    told = JobFolder(folder).read_events()
    return {f"out/{one.peer}": TASK_FILES.bytes for one in told if isinstance(one, TaskFilesKept) and one.files}
