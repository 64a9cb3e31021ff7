"""The entry point of `axon-tracker`: says what is missing here before anything else of it is loaded."""

from __future__ import annotations

import sys
from typing import NoReturn

from axonp2p.command_group import run_group
from axonp2p.console import run_program
from axonp2p.missing_modules import wrong_system


def main() -> NoReturn:
    """Run the program and end with the exit code of docs/errors.md."""

    def body() -> int:
        if sys.platform == "win32":
            raise wrong_system("axon-tracker", "Linux and macOS")
        # Loads libraries of the extra `tracker`, which a client lacks: the error for that is printed here.
        from tracker.main import main as group

        return run_group(group, "axon-tracker")

    sys.exit(run_program(body, debug="--debug" in sys.argv, as_json="--json" in sys.argv))


if __name__ == "__main__":
    main()
