"""Weights as other programs read them: `python -m axonp2p.kinds.train.local.export BUNDLE FILE --out OUT [...]`.

    --format torch         a state dict of plain tensors, for `torch.load`. No code of a task runs
    --format pretrained    a folder for `from_pretrained`, as the model's own `save_pretrained` writes it

A process of its own: the client's never loads torch, and the task's code runs only in here. Prints one JSON object, as
`alone` does.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from axonp2p.console import run_program
from axonp2p.disk_errors import not_writable
from axonp2p.kinds.train.local.alone import answered
from axonp2p.kinds.train.section import train_job
from axonp2p.training.worker.worker_main import prepare_torch


def main() -> None:
    """Write what the command line asks for, and exit as every program of ours does (docs/errors.md)."""
    arguments = _arguments()
    raise SystemExit(run_program(lambda: answered(lambda: run(arguments), as_json=arguments.json), debug=False))


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The facts of the written file. Raises `TaskMistake`, or `SettingsError` for a file that holds no such weights."""
    prepare_torch(1)  # before torch is imported

    from axonp2p.training.trainer.task import CheckedTask
    from axonp2p.training.trainer.weights import save_plain, save_pretrained

    weights, out = arguments.weights.resolve(), arguments.out.resolve()
    try:
        if arguments.format == "torch":
            return {"tensors": save_plain(weights, out)}
        folder = arguments.folder.resolve()
        return {"module": save_pretrained(CheckedTask(folder, train_job(folder).task), weights, out)}
    except OSError as error:
        raise not_writable(out, error) from error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m axonp2p.kinds.train.local.export", description=__doc__)
    parser.add_argument("folder", type=Path, help="the bundle; of no meaning for --format torch")
    parser.add_argument("weights", type=Path)
    parser.add_argument("--format", choices=["torch", "pretrained"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
