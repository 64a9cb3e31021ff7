"""The kinds of work that a job can be: for each one the names of its parts, loaded only where they are needed.

A kind is one room, `axonp2p/kinds/<name>`, and one line here. The names are text, so that this room imports none of
them: a daemon never loads a driver, nor a client torch.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from axonp2p.missing_modules import error_of


@dataclass(frozen=True)
class JobKind:
    """One kind's parts, each as `module:name`."""

    name: str
    """As job.toml has it in `kind`, and as its section there is called."""
    section: str
    """Its part of job.toml (`jobs.section.Section`)."""
    record: str
    """Its `JobRecord`: what job.json keeps of it."""
    events: str
    """The union of its own events."""
    driver: str
    """Makes the `Driver` of one life of a job, in the client."""
    worker: str
    """The module that is started in the sandbox, with the number of its channel's descriptor as argument."""
    result: str = ""
    """Reads what a job came to, for programs, from the first of `result_files`."""
    result_files: tuple[str, ...] = ()
    """Files and folders of a job's folder that are its result; none: all of it stands in its events."""
    outputs: str = ""
    """Which folders of files its results have, and their bytes in all, from its record and the job's folder
    (`kinds.run.fetched.outputs_of`); empty: its results have none, and what it goes on from are states."""
    left_files: str = ""
    """Which folders of files its programs left at peers, and the most bytes of each, from the same
    (`kinds.train.left_files.folders`): these may change until nothing works on the job. Empty: there are none."""
    pack: str = ""
    """Writes the results in a job's folder into one file that travels from a host
    (`kinds.map.results.packed_results.pack`), once nothing works on the job; `unpack` makes results of it. Empty: the
    results travel as they are."""
    unpack: str = ""
    """Makes the first of `result_files` of such a file that a host gave, after it is checked
    (`kinds.map.results.packed_results.unpack`)."""
    finish: str = ""
    """Ends a job on which no program works, with what is kept of it (`kinds.train.kept.kept_end.finish`); empty: no job
    of the kind can be ended early."""
    write_round: str = ""
    """Writes the weights of a round that is kept into a file (`kinds.train.kept.model_files.write_round`); empty: there
    are no rounds."""
    counter: str = ""
    """The field of job.json that counts the units of its work that are done; empty: none does."""
    unit: str = "unit"
    """The unit that is counted."""
    suits: str = ""
    """Says why a peer that meets a job's need cannot do it, from the spec and what the peer offers
    (`kinds.map.section.why_not`): empty text when it can. Empty: they all can."""
    stands_by: bool = False
    """Whether its worker takes so long to load that one is started before there is a lease for it."""
    executes: bool = False
    """Whether programs of the bundle may be executed in the sandbox."""


KINDS: dict[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind(
            name="train",
            section="axonp2p.kinds.train.section:SECTION",
            record="axonp2p.kinds.train.record:TrainRecord",
            events="axonp2p.kinds.train.events:TrainEvent",
            driver="axonp2p.kinds.train.driver:TrainDriver",
            worker="axonp2p.training.worker.worker_main",
            finish="axonp2p.kinds.train.kept.kept_end:finish",
            result="axonp2p.training.trainer.weights:load",
            result_files=("model.safetensors", "metrics.csv", "out"),
            left_files="axonp2p.kinds.train.left_files:folders",
            write_round="axonp2p.kinds.train.kept.model_files:write_round",
            counter="round",
            unit="round",
            stands_by=True,
        ),
        JobKind(
            name="run",
            section="axonp2p.kinds.run.section:SECTION",
            record="axonp2p.kinds.run.record:RunRecord",
            events="axonp2p.kinds.run.events:RunEvent",
            driver="axonp2p.kinds.run.driver:RunDriver",
            worker="axonp2p.kinds.run.worker",
            finish="axonp2p.kinds.run.kept_end:finish",
            result="axonp2p.kinds.run.fetched:fetched",
            result_files=("results.csv", "out"),
            outputs="axonp2p.kinds.run.fetched:outputs_of",
            counter="results",
            unit="copy",
            executes=True,
        ),
        JobKind(
            name="map",
            section="axonp2p.kinds.map.section:SECTION",
            record="axonp2p.kinds.map.record:MapRecord",
            events="axonp2p.kinds.map.events:MapEvent",
            driver="axonp2p.kinds.map.driver:MapDriver",
            worker="axonp2p.kinds.map.worker.worker_main",
            finish="axonp2p.kinds.map.kept_end:finish",
            result="axonp2p.kinds.map.fetched:fetched",
            result_files=("results.sqlite",),
            pack="axonp2p.kinds.map.results.packed_results:pack",
            unpack="axonp2p.kinds.map.results.packed_results:unpack",
            counter="results",
            unit="call",
            suits="axonp2p.kinds.map.section:why_not",
        ),
    )
}
"""By name."""


UNLESS_SAID = "train"
"""The kind of a job that names none."""


def load(part: str) -> Any:
    """The part of a kind that `module:name` names. Raises `NotInstalled` where it needs torch, which is not here."""
    module, _, name = part.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if told := error_of(error.name or ""):
            raise told from error
        raise
