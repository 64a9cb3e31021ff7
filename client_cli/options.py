"""Options that commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from axonp2p.loggers.values import LoggerChoice

from axonp2p.command_group import Duration, json_and_debug

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """`--json`, `--home` and `--debug`: every command has them."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of key, settings and jobs (default: AXON_HOME, or the desktop's usual place).",
    )
    return json_and_debug(home(command))


def trackers(command: F) -> F:
    """`--tracker URL`, as often as wanted."""
    return click.option(
        "--tracker",
        "trackers",
        metavar="URL",
        multiple=True,
        help="Address as axon-tracker run prints it; may be given more than once. "
        "Default: config.toml, else the swarm that axon swarm up started.",
    )(command)


def wait(command: F) -> F:
    """`--wait TIME`."""
    return click.option(
        "--wait",
        type=Duration(),
        metavar="TIME",
        default=0.0,
        help="Where too few peers are free, wait for them so long, such as 10min or 2h. [default: do not wait]",
    )(command)


def job_ids(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """The ids of jobs of the home that begin so, for completion in a shell."""
    from axonp2p.client.storage.job_store import JobStore
    from axonp2p.settings import home_folder

    names = JobStore(home_folder("client", ctx.params.get("home"))).names()
    return [name for name in names if name.startswith(begun)]


def overwrite(command: F) -> F:
    """`--overwrite`."""
    return click.option("--overwrite", is_flag=True, help="Replace files that are there already.")(command)


def keep_existing(there: Sequence[Path], *, overwrite: bool) -> None:
    """Raises `WouldOverwrite` where one of these exists (an empty folder does no harm) and it may not be replaced."""
    from axonp2p.errors import WouldOverwrite

    taken = [path for path in there if (any(path.iterdir()) if path.is_dir() else path.exists())]
    if taken and not overwrite:
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        raise WouldOverwrite(
            f"{taken[0]}{more} would be overwritten", fix="the same with --overwrite, or with another name"
        )


def _read_words(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> list[Any]:
    from axonp2p.jobs.overrides import set_words

    return set_words(words)


def overrides(command: F) -> F:
    """`--set SECTION.KEY=VALUE`, as often as wanted."""
    return click.option(
        "--set",
        "overrides",
        metavar="SECTION.KEY=VALUE",
        multiple=True,
        callback=_read_words,
        help="A key of job.toml with another value, such as train.rounds=5, need.memory='2 GiB' or name=sweep-1; "
        "may be given more than once.",
    )(command)


def page(command: F) -> F:
    """`--page HOST:PORT`."""
    return click.option(
        "--page",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        show_default=True,
        help="Where the job's page is served, on loopback; port 0 takes a free one, an empty text serves none.",
    )(command)


def json_events(command: F) -> F:
    """`--json-events`."""
    return click.option(
        "--json-events",
        is_flag=True,
        help="Print each event as a JSON object in a line of its own, as it happens: the first has the job's id and "
        "folder, the last one says how it ended.",
    )(command)


def loggers(command: F) -> F:
    """`--log NAME`, as often as wanted, and `--tensorboard DIR`; the command is given both as `loggers`."""

    @click.option(
        "--log",
        "names",
        type=click.Choice(["tensorboard", "wandb", "mlflow"]),
        multiple=True,
        help="Also tell this logger of each round or copy, by its own library; needs axonp2p[tensorboard], "
        "axonp2p[wandb] or axonp2p[mlflow]. May be given more than once.",
    )
    @click.option(
        "--tensorboard",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="As --log tensorboard, with its files in DIR/JOB instead of runs/JOB.",
    )
    @wraps(command)
    def with_choices(*given: Any, names: tuple[str, ...], tensorboard: Path | None, **others: Any) -> Any:
        choices: list[LoggerChoice] = []
        if names or tensorboard:
            from axonp2p.loggers.opening import require
            from axonp2p.loggers.values import LoggerChoice

            other = [name for name in dict.fromkeys(names) if name != "tensorboard" or not tensorboard]
            choices = [LoggerChoice(name) for name in other]
            choices += [LoggerChoice("tensorboard", tensorboard)] if tensorboard else []
            for choice in choices:
                require(choice.name)
        return command(*given, loggers=tuple(choices), **others)

    return cast(F, with_choices)
