"""`axon check` of a job of calls: its files, its peers, and its first calls tried here."""

from __future__ import annotations

from axonp2p.errors import JobFailed
from axonp2p.kinds.map.items_file import ItemsFile
from axonp2p.kinds.map.section import tree_of
from axonp2p.plain_text import bytes_text, plural
from client_cli.check_peers import CheckAnswer, JobHere, PeersAsked, common_data, common_facts, in_order
from client_cli.map.trial import CallTrial, trial_text, try_first_calls
from client_cli.worker_here import LOG_SHOWN


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    section = job.spec.map
    if section.calls:
        raise JobFailed("its calls come from a program", fix="run that program: it makes a job of its own")
    sources = {file.path: file.source for file in job.bundle.files}
    items = len(ItemsFile(sources[section.items])) if isinstance(section.items, str) else section.items
    job.context.say("makes the first call here, in the sandbox ...")
    trial = try_first_calls(job.spec, items, job.bundle, job.meanwhile)
    if trial.failure:
        cause = trial.log[-LOG_SHOWN:].strip()
        file = section.fn.partition(":")[0]
        raise JobFailed(f"call 0 failed here: {trial.failure}", cause=cause, fix=f"correct {file} in {job.given}")
    if trial.wrong_merge:
        problem = f"results cannot be merged by {section.reduce}: {trial.wrong_merge}"
        raise JobFailed(problem, fix=f"correct {section.reduce.partition(':')[0]} in {job.given}")
    asked = job.ask()
    tree = tree_of(job.spec, items)
    calls = tree.calls if tree else items
    merge = f", {tree.calls - tree.leaves:,} of which merge the results of the others" if tree else ""
    text = _text(job, f"{calls:,}{merge}", trial, asked)
    return CheckAnswer(text, _data(job, calls, trial, asked), asked)


def _text(job: JobHere, calls: str, trial: CallTrial, asked: PeersAsked) -> str:
    section, bundle = job.spec.map, job.bundle
    facts = {
        "function": section.fn,
        "calls": calls,
        "bundle": f"{plural(len(bundle.files), 'file')}, {bytes_text(bundle.size)}",
        "tried": trial_text(trial),
        **common_facts(job.spec.need, asked),
    }
    return in_order(job.given, facts, asked, job.context.command, tried=not trial.not_tried)


def _data(job: JobHere, calls: int, trial: CallTrial, asked: PeersAsked) -> dict[str, object]:
    return {
        **common_data(job.spec, len(job.bundle.files), job.bundle.size, asked, trial.not_tried),
        "function": job.spec.map.fn,
        "calls": calls,
        "seconds": trial.seconds,
        "result_bytes": trial.result_bytes,
        "log": trial.log,
    }
