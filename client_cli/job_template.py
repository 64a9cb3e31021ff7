"""A first job folder, from the templates that ship with the program."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from axonp2p.errors import JobFileWrong, NotFound, SettingsError
from axonp2p.jobs.spec import JOB_FILE, parse_spec

FILES = {
    "train": {JOB_FILE: "what is to be done, and what it needs", "task.py": "the model, the data and the loss"},
    "map": {JOB_FILE: "what is to be done, and what it needs", "work.py": "the function that is called"},
    "run": {JOB_FILE: "what is to be done, and what it needs", "work.py": "what each copy runs"},
}
"""By kind of job."""
_NAME_IN_TEMPLATE = 'name = "my-job"'


def write_job(folder: Path, kind: str) -> dict[str, str]:
    """Make `folder` with a job of its name and of that kind; its files and what each is for.

    Raises `JobFileWrong` when the name is none for a job, `SettingsError` when the folder is in use or cannot be made.
    """
    templates = resources.files("client_cli") / "templates" / kind
    texts = {name: (templates / name).read_text() for name in FILES[kind]}
    name = folder.absolute().name
    texts[JOB_FILE] = texts[JOB_FILE].replace(_NAME_IN_TEMPLATE, f"name = {json.dumps(name)}")
    try:
        parse_spec(texts[JOB_FILE], folder / JOB_FILE)
    except JobFileWrong as error:
        raise JobFileWrong(f"{name!r} cannot be a job's name", cause=error.message, fix="axon init my-job") from error
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise SettingsError(f"{folder} is there already, and is not empty", fix="choose another name")
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text)
    except OSError as error:
        raise SettingsError(f"cannot write to {folder}: {error.strerror}", fix="choose another folder") from error
    return FILES[kind]


def digits_folder() -> Path:
    """The job of handwritten digits. Raises `NotFound` when the installation lacks it."""
    folder = Path(str(resources.files("client_cli") / "examples" / "digits")).resolve()
    if not (folder / "job.toml").is_file():
        raise NotFound(f"the example job is missing: {folder}", fix="install Axon again")
    return folder
