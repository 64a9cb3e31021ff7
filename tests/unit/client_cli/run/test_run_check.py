"""`axon check` of a job that runs copies of a command."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axonp2p.errors import JobFailed
from axonp2p.jobs.bundle import collect
from axonp2p.jobs.spec import read_spec
from axonp2p.kinds.run.section import RunJob
from axonp2p.sandbox.child import why_no_sandbox
from client_cli.check_peers import CheckAnswer, JobHere, PeersAsked
from client_cli.context import Context
from client_cli.job_template import write_job
from client_cli.meanwhile import Meanwhile
from client_cli.run.check import Trial, check, trial_text

NO_SANDBOX = why_no_sandbox()


def written(folder: Path, command: str) -> RunJob:
    write_job(folder, "run")
    file = folder / "job.toml"
    file.write_text(file.read_text().replace("python work.py --seed {index}", command))
    spec = read_spec(folder)
    assert isinstance(spec, RunJob)
    return spec


def checked(home: Path, name: str, spec: RunJob, asked: PeersAsked) -> CheckAnswer:
    folder, context = home / name, Context(home, as_json=True)
    with Meanwhile(context.say) as meanwhile:
        return check(JobHere(name, spec, collect(folder, spec), context, meanwhile, lambda: asked))


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (Trial(not_tried="there is no bwrap"), "the command was not tried: there is no bwrap"),
        (Trial(seconds=20.0), "copy 0 still ran here after 20 s, and was ended"),
        (
            Trial(code=0, seconds=0.4, log="one\n"),
            "copy 0 ended here with exit code 0 after 0.4 s, and printed 1 line",
        ),
    ],
)
def test_how_the_first_copy_went(trial: Trial, said: str) -> None:
    assert trial_text(trial) == said


def test_a_command_that_reads_what_lies_at_peers_is_not_tried_here(tmp_path: Path) -> None:
    spec = written(tmp_path / "pi", "python work.py --seed {index}")
    spec = msgspec.structs.replace(spec, need=msgspec.structs.replace(spec.need, datasets=["faces"]))
    answer = checked(tmp_path, "pi", spec, PeersAsked(2))
    assert "the command was not tried: it reads faces, which only peers have" in answer.text
    assert "pi has no mistake that can be found here." in answer.text
    assert "4 wanted, only 2 would take it now: it can start with fewer" in answer.text
    assert answer.data["tried"] is False


@pytest.mark.sandbox
@pytest.mark.skipif(bool(NO_SANDBOX), reason=NO_SANDBOX)
def test_the_template_runs_in_the_sandbox_and_a_command_that_fails_there_is_named(tmp_path: Path) -> None:
    spec = written(tmp_path / "pi", "python work.py --seed {index}")
    answer = checked(tmp_path, "pi", spec, PeersAsked(None, "nobody"))
    assert answer.data["code"] == 0
    assert "copy 0 of 8: pi is about 3.1" in answer.data["log"]
    spec = written(tmp_path / "wrong", "python work.py --sead {index}")
    with pytest.raises(JobFailed, match="copy 0 of the command failed here: exit code 2") as raised:
        checked(tmp_path, "wrong", spec, PeersAsked(2))
    assert "--seed" in raised.value.cause
