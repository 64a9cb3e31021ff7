"""The report as a file in the job's folder, or wherever it is wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from client_cli.report.document import make
from client_cli.report.folder_view import FolderView
from client_cli.text.kind_text import Command

REPORT = "report.html"


def write_report(
    folder: JobFolder, command: Command, out: Path | None = None, *, ours: bool = False, copied_to: Path | None = None
) -> Path:
    """Write the job's report, beside its other files unless `out` says where; gives its path.

    `ours`: this program works on the job; `copied_to`: where weights and logs lie now, when they were fetched already.
    Raises `NotFound` or `SettingsError`.
    """
    path = out or folder.report
    view = FolderView(folder, ours=ours).look_at_all()
    if copied_to:
        view = replace(view, folder=str(copied_to), fetched=True)
    made = make(view, command, on_the_wall, live=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, made.html.encode())
    except OSError as error:
        raise SettingsError(
            f"cannot write {path}: {error.strerror or error}", fix=f"axon report {folder.path.name} --out FILE"
        ) from error
    return path


def on_the_wall(at: float) -> datetime:
    """A Unix time as this computer's clock shows it."""
    return datetime.fromtimestamp(at).astimezone()
