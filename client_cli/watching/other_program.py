"""A job that another program works on, or none does: telling it to stop, and answering rightly when nobody hears."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from axonp2p.client.discovery.trackers import dial_policy, which_trackers
from axonp2p.client.hosted.hosted_mark import read_mark
from axonp2p.client.storage.job_commands import JobCommand, say
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.settings import read_settings
from client_cli.context import Context
from client_cli.watching.hosted import stop_at_host

LOOK_S = 0.2


def stop(folder: JobFolder, wish: JobCommand, context: Context, trackers: Sequence[str] = ()) -> tuple[JobRecord, bool]:
    """Have the program that works on the job stop, and wait until it has; what the job is then, and whether one did.

    Ctrl-C ends only the waiting. Where no program works on the job, its peers are told that they need not wait.
    """
    if read_mark(folder):
        return stop_at_host(folder, wish, context, trackers)
    working = folder.is_held()
    if working:
        say(folder.path, wish)
        while folder.is_held():
            time.sleep(LOOK_S)
    record = folder.read()
    if folder.leases.exists():  # it was killed, whether just now or long ago
        _let_go(folder, record, context, trackers)
    if not is_over(record.state):
        record = change(folder, record, JobState.PAUSED)
    return record, working


def change(folder: JobFolder, record: JobRecord, state: JobState) -> JobRecord:
    """Write down what a job without a program is from now on."""
    with folder.held():
        folder.mend()
        record = msgspec.structs.replace(record, state=state, updated=time.time(), waits_for=[])
        folder.write(record, lasting=True)
    return record


def _let_go(folder: JobFolder, record: JobRecord, context: Context, trackers: Sequence[str]) -> None:
    from axonp2p.client.leasing.release_leases import release_leases

    key = load_or_create_key(context.home / "client.key")
    named = list(trackers) or record.named_trackers
    settings = read_settings(context.home)
    dials = dial_policy(which_trackers(named, settings, context.home), settings.client)
    asyncio.run(release_leases(folder, record, spec_of(record), key, dials))
