"""`[train]` of job.toml: how much is trained, and how the peers exchange. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.aggregation import AGGREGATIONS, Rule
from axonp2p.jobs.job_file_keys import Rule as KeyRule
from axonp2p.jobs.job_file_keys import (
    Wrong,
    file_name,
    measured,
    number,
    one_of,
    or_auto,
    shown,
    whole,
    wrong_value,
    yes_or_no,
)
from axonp2p.jobs.section import Section
from axonp2p.jobs.spec import JobSpec, NeedSpec, Word, read_spec
from axonp2p.kinds.train.kept.best_round import LOSS, UNLESS_SAID, BestBy
from axonp2p.training.options import COMPRESSIONS, Autocast, ExchangeOptions, StepOptions
from axonp2p.wire.quantities import Count, Quantity
from axonp2p.wire.ranks import MOST_MEMBERS


class TrainSpec(ExchangeOptions, frozen=True, kw_only=True):
    """`[train]`: how much is trained, and how the peers exchange."""

    rounds: Count = 20
    steps: Count = 10
    """Local steps of each peer in a round."""
    batch: Count = 32
    """Samples a step."""
    seed: Count = 0
    clip_gradients: Quantity = 0.0
    """The largest norm of a step's gradients; 0: any."""
    micro_batch: Count = 0
    """Samples of a step's batch of which gradients are computed at a time; 0: all of them."""
    autocast: Autocast = "off"
    """The type in which `loss()` computes where it may."""
    loader_workers: Count = 0
    """Processes that read the samples of the next steps ahead."""
    step_timeout: Count = 3600
    """For how long nobody may end a local step while it is not known how long one takes, in seconds."""
    checks: Quantity = 0.05
    """About which share of the peers' work is done again by others; 0: none."""
    checkpoint: Count = 1
    """After every so many rounds the client keeps what they led to."""
    keep_states: Count = 2
    """How many of these states are kept at a time, the newest; that of the best round beside them."""
    best: Word = UNLESS_SAID
    """Which round is the best: "max" or "min", and the name of a metric."""
    stop_after: Count = 0
    """The job ends after so many rounds without a better one; 0: after all rounds."""

    @property
    def all_steps(self) -> int:
        """Local steps of each peer in the whole job."""
        return self.rounds * self.steps

    @property
    def step_options(self) -> StepOptions:
        """The options of each local step: every one has its key here."""
        return StepOptions(**{name: getattr(self, name) for name in StepOptions.__struct_fields__})


class TrainJob(JobSpec, frozen=True, kw_only=True):
    """The whole of job.toml."""

    task: Word = "task.py"
    train: TrainSpec = TrainSpec()


def _every_round_or(rule: KeyRule) -> KeyRule:
    """`"every-round"` is 1."""

    def either(value: Any) -> Any:
        return 1 if value == "every-round" else rule(value)

    return either


def _share_of_checks(value: Any) -> float:
    """`"auto"` is a twentieth, `"off"` nothing."""
    if value in ("auto", "off"):
        return 0.05 if value == "auto" else 0.0
    if isinstance(value, str):
        raise wrong_value(f'expected "auto", "off" or a share, {shown(value)}', '"auto"')
    share: float = number(0.5, "0.05", above_0=True)(value)
    return share


def _best(value: Any) -> str:
    """`"max accuracy"`, `"min loss"`."""
    try:
        BestBy.read(value if isinstance(value, str) else "")
    except ValueError:
        name = value.split()[-1] if isinstance(value, str) and value.strip() else LOSS
        less = any(word in name.lower() for word in ("loss", "err", "perplexity", "mae", "mse"))
        expected = f'expected "max" or "min" and the name of a metric, {shown(value)}'
        raise wrong_value(expected, f'"{"min" if less else "max"} {name[:60]}"') from None
    return str(value)


def _check_together(spec: TrainJob) -> None:
    """A value that is right by itself may be wrong beside another key."""
    need, train = spec.need, spec.train
    if train.density < 1 and not train.compression.endswith("-bit"):
        problem = f"it needs a number of bits, and compression is {train.compression}"
        raise Wrong("train", "density", problem, 'compression = "2-bit"')
    if train.micro_batch > train.batch:
        problem = f"{train.micro_batch} is more than batch, which is {train.batch}"
        raise Wrong("train", "micro-batch", problem, f"micro-batch = {train.batch}")
    if train.exchange_every and train.exchange_every > train.steps:
        problem = f"{train.exchange_every} is more than steps, which is {train.steps}"
        raise Wrong("train", "exchange-every", problem, f"exchange-every = {train.steps}")
    _check_rule(need, train)


def _check_rule(need: NeedSpec, train: TrainSpec) -> None:
    """With fewer peers than its rule needs a job could only go on at the liars' mercy."""
    rule = Rule(train.aggregation, train.hostile or 0)
    if rule.hostile and not rule.robust:
        raise Wrong("train", "hostile", "the mean tolerates no liars", 'aggregation = "centred-clipping"')
    if rule.least_members > need.min_peers:
        problem = f"{rule.name} needs {rule.least_members} peers, and min-peers is {need.min_peers}"
        raise Wrong("train", "hostile", problem, f"min-peers = {rule.least_members}")
    if rule.value_by_value and train.density < 1:
        problem = f"{rule.name} judges each value by itself, and would take one that is not sent for 0"
        raise Wrong("train", "density", problem, 'aggregation = "centred-clipping"')


_RATE = (
    "the learning rate is that of the task's own optimiser",
    "in task.py: def optimizer(self, model): return torch.optim.AdamW(model.parameters(), lr=0.001)",
)
_SCHEDULE = (
    "a schedule is a method of class Task: by what the learning rates of a step are multiplied",
    "in task.py: def schedule(self, step, steps): return min(1, (step + 1) / 100)",
)
_EPOCHS = (
    "Axon counts steps: in each round every peer takes `steps` of them, of `batch` samples each",
    "rounds = 20   (one epoch of N samples on P peers are N / (P * steps * batch) rounds)",
)
_ACCUMULATION = (
    "a step's batch may be taken in parts, whose gradients are summed: micro-batch is the samples of a part",
    "micro-batch = 8   (with batch = 32: four parts a step)",
)
_WORKERS = ("the processes that read samples ahead are called loader-workers here", "loader-workers = 2")
_PRECISION = ("the type in which loss() computes is called autocast here", 'autocast = "bf16"')
_PATIENCE = (
    "it is called stop-after here: after so many rounds without a better one the job ends; `best` says which is better",
    'stop-after = 10   (with best = "max accuracy", or "min loss")',
)
_MONITOR = ("it is called best here: which round is the best, and keeps its state", 'best = "max accuracy"')
_STATES = ("it is called checkpoint here: after how many rounds your computer keeps what they led to", "checkpoint = 5")
_METHODS = ("that is said in task.py, by a method of class Task: docs/jobs.md#taskpy", "leave it out here")
_GPU = ("a GPU is asked for by its memory, under [need]", 'gpu-memory = "8 GiB"')
_CLIPPING = ("it is called clip-gradients here: the largest norm of all gradients together", "clip-gradients = 1.0")


SECTION = Section(
    name="train",
    spec=TrainJob,
    struct=TrainSpec,
    rules={
        "rounds": whole(1, 1_000_000, 20),
        "steps": whole(1, 2**31, 10),
        "batch": whole(1, 2**20, 32),
        "seed": whole(0, 2**53, 0),
        "clip-gradients": number(1e9, "1.0"),
        "micro-batch": whole(1, 2**20, 8),
        "autocast": one_of("off", "bf16", "fp16"),
        "loader-workers": whole(0, 16, 2),
        "step-timeout": measured("s", 10, 7200, "10 min"),
        "compression": one_of(*COMPRESSIONS),
        "bytes": one_of("line", "sparing"),
        "density": number(1, "0.02", above_0=True),
        "exchange-every": or_auto(whole(1, 2**31, 10)),
        "seconds": number(3600, "60"),
        "overlap": yes_or_no,
        "outer-learning-rate": or_auto(number(10, "0.7")),
        "outer-momentum": or_auto(number(1, "0.9", below_most=True)),
        "step-scaling": yes_or_no,
        "aggregation": one_of(*AGGREGATIONS),
        "hostile": or_auto(whole(0, MOST_MEMBERS, 2)),
        "checks": _share_of_checks,
        "checkpoint": _every_round_or(whole(1, 1_000_000, 5)),
        "keep-states": whole(1, 1000, 2),
        "best": _best,
        "stop-after": whole(0, 1_000_000, 10),
    },
    above={"task": file_name},
    foreign={
        **dict.fromkeys(("lr", "learning-rate", "optimizer", "optim"), _RATE),
        **dict.fromkeys(("scheduler", "lr-scheduler", "schedule", "warmup", "warm-up", "warmup-steps"), _SCHEDULE),
        **dict.fromkeys(("epochs", "epoch", "num-epochs", "max-epochs", "num-train-epochs"), _EPOCHS),
        **dict.fromkeys(("patience", "early-stopping", "early-stopping-patience", "early-stop"), _PATIENCE),
        **dict.fromkeys(("monitor", "metric-for-best-model", "save-best", "load-best-model-at-end"), _MONITOR),
        **dict.fromkeys(("save-every", "save-steps", "save-interval", "checkpoint-every", "save-strategy"), _STATES),
        **dict.fromkeys(("model", "loss", "criterion", "metrics", "dataset", "shuffle", "val-split"), _METHODS),
        **dict.fromkeys(("gpu", "gpus", "num-gpus", "n-gpus"), _GPU),
        **dict.fromkeys(("gradient-clip-val", "max-grad-norm", "grad-clip", "clip-grad-norm", "clip-grad"), _CLIPPING),
        **dict.fromkeys(("gradient-accumulation-steps", "accumulate-grad-batches", "accumulation"), _ACCUMULATION),
        **dict.fromkeys(("num-workers", "workers", "dataloader-num-workers"), _WORKERS),
        **dict.fromkeys(("amp", "fp16", "bf16", "precision", "mixed-precision"), _PRECISION),
    },
    check_together=_check_together,
    files=lambda spec: [spec.task],
)


def train_job(folder: Path) -> TrainJob:
    """The training that the folder describes. Raises `JobFileWrong`, for jobs of other kinds too."""
    spec = read_spec(folder)
    if not isinstance(spec, TrainJob):
        raise JobFileWrong(f"{folder} is a job of kind {spec.kind}", fix="name the folder of a job of kind train")
    return spec
