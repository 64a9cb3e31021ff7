"""A job before it is submitted: a folder, or the class of a script or notebook, with what was given beside it.

Files that are made for it (a job.toml with other values, a task's text) lie in a folder for temporary files meanwhile.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from axonp2p.client.task_source import TaskSource, source_of
from axonp2p.errors import JobFileWrong
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.overrides import Override, with_overrides
from axonp2p.jobs.spec import JOB_FILE, JOB_FILE_LIMIT, JobSpec, parse_spec, read_job_file
from axonp2p.jobs.task_text import imported_modules


@dataclass(frozen=True)
class JobDraft:
    """A job without a mistake in its files."""

    folder: str
    """Where people find what was submitted; empty when it was a class, whose files lie nowhere together."""
    spec: JobSpec
    bundle: Bundle


@dataclass(frozen=True)
class TextJob:
    """A job that a program describes: the text of its job.toml, and the folder where the files are that it names."""

    text: str
    folder: Path


@contextmanager
def drafted(job: object, overrides: Sequence[Override] = ()) -> Iterator[JobDraft]:
    """The job in a folder (text or path), or that of a task's class or object; its bundle can be read while inside.

    Raises `JobFileWrong`.
    """
    if isinstance(job, str | PurePath):
        folder = Path(job).expanduser().absolute()
        text, called, made = read_job_file(folder), str(folder / JOB_FILE), {}
        spec = parse_spec(text, folder / JOB_FILE, overrides)
    elif isinstance(job, TextJob):
        folder, text, called, made = job.folder, job.text, str(job.folder), {JOB_FILE: job.text}
        spec = parse_spec(text, "this job", overrides)
    else:
        source = source_of(job)
        folder, called, made = source.folder, "", {source.file: source.text}
        text = _job_file_of(source)
        spec = parse_spec(text, f"class {type(job).__name__ if not isinstance(job, type) else job.__name__}", overrides)
    if overrides or made:
        made[JOB_FILE] = with_overrides(text, overrides)
        if len(made[JOB_FILE].encode()) > JOB_FILE_LIMIT:
            raise JobFileWrong(f"its job.toml would have more than {JOB_FILE_LIMIT} bytes", fix='data=["images/*"]')
    with tempfile.TemporaryDirectory(prefix="axon-draft-") as scratch:
        bundle = collect(folder, spec, elsewhere=_written(made, Path(scratch)))
        if not called:
            _nothing_left_behind(source, bundle)
        yield JobDraft(str(folder) if called else "", spec, bundle)


def _job_file_of(source: TaskSource) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", source.called).strip("-._")[:59] or "task"
    return f'name = "{name}"\ntask = {json.dumps(source.file)}\n'


def _written(made: dict[str, str], scratch: Path) -> dict[str, Path]:
    found = {}
    for number, (name, text) in enumerate(made.items()):
        found[name] = scratch / str(number)
        found[name].write_text(text, encoding="utf-8")
    return found


def _nothing_left_behind(source: TaskSource, bundle: Bundle) -> None:
    """A module that lies beside the task is found here, and nowhere else."""
    names = {file.path for file in bundle.files}
    for module in imported_modules(source.text):
        file = f"{module}.py"
        if module == ".":
            raise JobFileWrong(f"{source.file} imports from its own package", fix="name the folder of a job instead")
        if (source.folder / file).is_file() and file not in names:
            raise JobFileWrong(
                f"{source.file} imports {module}, and {file} next to it would not be sent",
                fix=f'name it: data=["{file}"]',
            )
