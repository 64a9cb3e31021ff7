"""A job in one plain process, without Axon around it: `python -m axonp2p.kinds.train.local.alone DIR [...] --json`.

    --samples N      train on N samples with an ordinary PyTorch loop: what a swarm is compared with
    --weights FILE   evaluate a safetensors file on the whole test split

Prints one JSON object. A mistake of the task is `{"error": {"doing": ..., "traceback": ...}}` with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axonp2p.console import error_json, run_program
from axonp2p.errors import AxonError, TaskMistake
from axonp2p.kinds.train.section import train_job
from axonp2p.training.worker.out_folder import OutFolder
from axonp2p.training.worker.worker_main import prepare_torch


def main() -> None:
    """Run what the command line asks for, and exit as every program of ours does (docs/errors.md)."""
    # Python would turn Ctrl-C into an exception inside the task's code, and that into the task's mistake.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = _arguments()

    raise SystemExit(run_program(lambda: answered(lambda: run(arguments), as_json=arguments.json), debug=False))


def answered(work: Callable[[], dict[str, Any]], *, as_json: bool) -> None:
    """Print what the work gives, or the error that it raises, and raise that."""
    try:
        result = work()
    except TaskMistake as mistake:
        _print({"error": {"doing": mistake.message, "traceback": mistake.cause}}, as_json)
        raise
    except AxonError as error:
        if as_json:
            print(error_json(error), flush=True)
        raise
    _print(result, as_json)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The result as the command line asks for it. Raises `TaskMistake`, or `SettingsError` for wrong files."""
    folder, weights = arguments.folder.resolve(), arguments.weights and arguments.weights.resolve()
    spec = train_job(folder)
    prepare_torch(threads := arguments.threads or spec.need.cores)  # before torch is imported

    from axonp2p.training.trainer.device import chosen_device, open_device
    from axonp2p.training.trainer.plain_run import PlainRun
    from axonp2p.training.trainer.task import CheckedTask
    from axonp2p.training.worker.warm_up import use_threads, warm_up

    warm_up()
    open_device(device := chosen_device(os.environ))
    use_threads(threads)
    os.chdir(folder)  # as in the sandbox, where the working directory is the bundle's
    with tempfile.TemporaryDirectory() as scratch:
        OutFolder(Path(scratch)).make()
        task = CheckedTask(folder, spec.task)
        plain = PlainRun(task, spec.train.batch, spec.train.seed, spec.train.step_options, device)
        return plain.train(arguments.samples) if weights is None else plain.evaluate_file(weights)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m axonp2p.kinds.train.local.alone", description=__doc__)
    parser.add_argument("folder", type=Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--samples", type=int)
    what.add_argument("--weights", type=Path)
    parser.add_argument("--threads", type=int, default=0, help="of torch; as many as job.toml's cores when not given")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _print(result: dict[str, Any], as_json: bool) -> None:
    # The task's own prints are on standard output too, so the result is the last line.
    sys.stdout.flush()
    print(json.dumps(result, indent=None if as_json else 2), flush=True)


if __name__ == "__main__":
    main()
