"""Runs the baselines' programs on a ground, and reads what came of them."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from tests.lab.bench.curve import Curve, read_reports
from tests.lab.bench.environments import python_of
from tests.lab.bench.ground import Ground
from tests.lab.bench.jobs import write_text
from tests.lab.bench.programs import LONGEST_S, Programs
from tests.lab.bench.samples import write_orders
from tests.lab.bench.settings import Part, Trial
from tests.lab.laboratory import ROOT

STARTING_S = 60.0
"""What it takes until the first step."""
LIGHTHOUSE_PORT, JOIN_MS = 29510, 60_000
_FLOWER_PROJECT = """
[project]
name = "bench"
version = "1.0.0"
dependencies = []
[tool.flwr.app]
publisher = "bench"
[tool.flwr.app.components]
serverapp = "flower_app:server"
clientapp = "flower_app:client"
[tool.flwr.app.config]
"""


class Baselines:
    """On one ground, in a folder of their own."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self._ground = ground
        self._folder = folder
        self._count = 0

    def ddp(self, trial: Trial, name: str, *, hook: str = "", evaluate: bool = True, warm_up: int = 0) -> Curve:
        """Every step of it, its gradients compressed by one of torch's hooks, or not."""
        part = replace(self._part(trial, evaluate), hook=hook)
        self._run_members("tests.lab.bench.ddp", Path(sys.executable), part)
        return self._read(name, part, warm_up)

    def hivemind(self, trial: Trial, name: str, *, bits: int = 32, evaluate: bool = True, warm_up: int = 0) -> Curve:
        """Every step of it. `bits` of a value: 32 or 8."""
        rates, whole_s = _rates(trial)
        part = replace(self._part(trial, evaluate), bits=bits, bandwidth=rates, patience=30 + 4 * whole_s)
        within = STARTING_S + trial.all_steps * (5 + 2 * whole_s)
        ended = self._run_members("tests.lab.bench.hivemind_peer", python_of("hivemind"), part, within)
        curve = self._read(name, part, warm_up)
        return curve if ended else replace(curve, note=f"hung after {curve.steps + warm_up} steps")

    def hivemind_local(self, trial: Trial, name: str) -> Curve:
        """All rounds: members average their weights once a round in the background, and wait for nobody."""
        rates, whole_s = _rates(trial)
        part = replace(self._part(trial, evaluate=True), local_steps=trial.steps, bandwidth=rates)
        part = replace(part, patience=30 + 4 * whole_s)
        within = STARTING_S + trial.all_steps * 5 + 2 * trial.rounds * part.patience
        ended = self._run_members("tests.lab.bench.hivemind_local", python_of("hivemind"), part, within)
        curve = self._read(name, part, 0)
        return curve if ended else replace(curve, note=f"hung after {curve.steps} steps")

    def diloco(self, trial: Trial, name: str) -> Curve:
        """All rounds of torchft's: its lighthouse at the server, where the members find each other."""
        ground, python = self._ground, python_of("torchft")
        address = f"{ground.address(ground.server)}:{LIGHTHOUSE_PORT}"
        part = replace(self._part(trial, evaluate=True), local_steps=trial.steps, server=f"http://{address}")
        home = Path(part.reports)
        with Programs(home) as programs:
            wish = ["--bind", address, "--min_replicas", part.members, "--join_timeout_ms", JOIN_MS]
            words = [*ground.inside(ground.server), python.parent / "torchft_lighthouse", *wish]
            programs.start("lighthouse", words, environment(part, home))
            self._run_members("tests.lab.bench.torchft_diloco", python, part)
        return self._read(name, part, 0)

    def flower(self, trial: Trial, name: str) -> Curve:
        """All rounds: a SuperLink at the server, a SuperNode at each member."""
        part = replace(self._part(trial, evaluate=True), local_steps=trial.steps)
        home = Path(part.reports)
        (home / "app").mkdir()
        (home / "app" / "pyproject.toml").write_text(_FLOWER_PROJECT)
        shutil.copy(Path(__file__).parent / "flower_app.py", home / "app")
        tools = python_of("flower").parent
        ground, server = self._ground, self._ground.address(self._ground.server)
        around = environment(part, home) | {"PATH": f"{tools}:{os.environ['PATH']}"}
        link: list[object] = [
            tools / "flower-superlink",
            "--insecure",
            "--host",
            "0.0.0.0",
            "--disable-runtime-dependency-installation",
        ]
        with Programs(home) as programs:
            own = around | {"FLWR_HOME": str(home / "server")}
            _write_connection(home / "server", "127.0.0.1:8000")
            programs.start("link", [*ground.inside(ground.server), *link], own)
            for rank in range(part.members):
                node: list[object] = [tools / "flower-supernode", "--insecure", "--superlink", f"{server}:8000"]
                number = ["--node-config", f"partition-id={rank}", "--port", str(9100 + rank)]
                own = around | {"FLWR_HOME": str(home / f"node-{rank}")}
                programs.start(f"node-{rank}", [*ground.inside(rank), *node, *number], own)
            programs.until_said("link", "Activated node", part.members)
            own = around | {"FLWR_HOME": str(home / "server")}
            words: list[object] = [
                *ground.inside(ground.server),
                tools / "flwr",
                "run",
                home / "app",
                "bench",
                "--stream",
            ]
            programs.start("run", words, own)
            programs.wait(["run"])
        return self._read(name, part, 0)

    def _part(self, trial: Trial, evaluate: bool) -> Part:
        self._count += 1
        home = self._folder / f"baseline-{self._count}"
        home.mkdir(parents=True)
        task = write_text(home / "job", trial) / "task.py"
        write_orders(task, trial, home)
        addresses = [self._ground.address(member) for member in range(trial.members)]
        every = trial.steps if evaluate else 0
        numbers = (trial.members, trial.all_steps, every, trial.batch, trial.seed)
        return Part(str(task), *numbers, self._ground.device, addresses, str(home))

    def _run_members(self, module: str, python: Path, part: Part, within: float = LONGEST_S) -> bool:
        """Whether they ended within so many seconds."""
        home = Path(part.reports)
        settings = part.write(home / "part.json")
        ranks = [str(rank) for rank in range(part.members)]
        with Programs(home) as programs:
            for rank in ranks:
                words: list[object] = [*self._ground.inside(int(rank)), python, "-m", module, settings, rank]
                programs.start(rank, words, environment(part, home))
            return programs.ended(ranks, within)

    def _read(self, name: str, part: Part, warm_up: int) -> Curve:
        return read_reports(name, Path(part.reports), part.members, bare=self._ground.bare, warm_up=warm_up)


def _rates(trial: Trial) -> tuple[list[float], float]:
    """Mbit/s up of each member, and the seconds that the slowest needs for twice the model, in and out."""
    rates = [trial.lines.of(member, trial.members)[0] for member in range(trial.members)]
    return rates, 2 * 4 * trial.millions * 8 / min(rates)


def environment(part: Part, home: Path) -> dict[str, str]:
    """Of a baseline's program: nothing of ours but the way to its files."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    own = {"PYTHONPATH": str(ROOT), "BENCH_PART": str(part.write(home / "part.json")), "OMP_NUM_THREADS": "1"}
    return kept | own | {"FLWR_TELEMETRY_ENABLED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _write_connection(home: Path, address: str) -> None:
    home.mkdir()
    lines = ["[superlink]", 'default = "bench"', "[superlink.bench]", f'address = "{address}"', "insecure = true"]
    (home / "config.toml").write_text("\n".join(lines) + "\n")
