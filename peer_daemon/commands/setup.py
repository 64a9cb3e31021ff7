"""`axon-peer setup`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from peer_daemon.options import common

if TYPE_CHECKING:
    from axonp2p.settings import PeerSettings
    from peer_daemon.lending.offer import MeasuredMachine
    from peer_daemon.setup.answers import Answers

T = TypeVar("T")


@click.command("setup")
@click.option("--yes", is_flag=True, help="Take the suggested answers, and ask nothing.")
@click.option("--tracker", "given", multiple=True, metavar="URL", help="The answer to the third question; repeatable.")
@common
def command(yes: bool, given: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Three questions: how much, when, which tracker; and a fourth where there is a GPU.

    Writes config.toml; comments and other settings in it stay.
    """
    from axonp2p.console import print_answer
    from axonp2p.files import write_whole
    from axonp2p.identity.key_file import load_or_create_key
    from axonp2p.sandbox.child import why_no_sandbox
    from axonp2p.settings import parse_settings, read_settings
    from peer_daemon.lending.hardware import look
    from peer_daemon.options import peer_home
    from peer_daemon.setup.answers import is_answered, with_answers
    from peer_daemon.setup.probe import computer_text

    if as_json and not yes:
        raise click.UsageError("--json asks nothing, so it wants --yes, too")
    folder = peer_home(home)
    settings = read_settings(folder).peer
    path = (folder / "config.toml").resolve()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if is_answered(before):
        _may_change(path, yes)
    machine = look(folder)
    computer, trouble = computer_text(machine), why_no_sandbox()
    if not as_json:
        click.echo(f"This computer: {computer}.")
        click.echo(_SAFE)
        if trouble:
            click.echo(f"No job can run here yet: {trouble}")
    answers = _answers(machine, settings, given, _suggested if yes else _asked)
    after = with_answers(before, answers).encode()
    parse_settings(after, path, {})
    write_whole(path, after)
    key = folder / "peer.key"
    peer = load_or_create_key(key).peer_id
    about = {"computer": computer, "config": str(path), "key": str(key), "peer": peer, "no_sandbox": trouble}
    print_answer(_written(folder, path, key, answers), about | _data(answers), as_json=as_json)


_SAFE = "Jobs run walled in: no network, none of your files, behind everything that you do.   Proof: axon-peer doctor"

_GPU = "Its driver is then open to strangers' code (docs/safety.md)"


def _answers(
    machine: MeasuredMachine,
    settings: PeerSettings,
    given: tuple[str, ...],
    ask: Callable[[str, str, Callable[[str], Any]], Any],
) -> Answers:
    """`ask` takes a question, the suggested answer, and what makes a value of an answer."""
    import asyncio

    from peer_daemon.gpus.gpu_lending import lendable
    from peer_daemon.setup import answers
    from peer_daemon.setup.probe import trackers_of_lan

    usual = answers.usual_amounts(machine, settings)
    times = answers.Times(tuple(settings.hours), settings.on_battery)
    amounts = ask("1. How much may each job use?", str(usual), lambda text: answers.amounts(text, machine, usual))
    when = ask("2. When, as long as nothing else needs the CPU?", str(times), answers.times)
    known, where = given or tuple(settings.trackers), ""
    if not known and settings.lan:
        found = asyncio.run(trackers_of_lan())
        known = tuple(found)[:1]
        where = f" ({found[known[0]]}, on your network, uses this one)" if known else ""
    trackers = ask(f"3. Which tracker?{where}", " ".join(known) or "none", answers.trackers)
    cards = ", ".join(card.name for card in lendable(machine.gpus))
    usual_gpu = "yes" if settings.gpu else "no"
    gpu = ask(f"4. May jobs have {cards}? {_GPU}", usual_gpu, answers.yes_or_no) if cards else None
    return answers.Answers(amounts, when, trackers, gpu)


def _suggested(question: str, usual: str, understood: Callable[[str], T]) -> T:
    return understood(usual)


def _asked(question: str, usual: str, understood: Callable[[str], T]) -> T:
    from axonp2p.errors import SettingsError

    while True:
        try:
            return understood(click.prompt(f"  {question}", default=usual))
        except SettingsError as error:
            click.echo(f"     {error.message}; such as: {error.fix}")


def _may_change(path: Path, yes: bool) -> None:
    """Nothing that somebody wrote is overwritten unasked."""
    from axonp2p.errors import SettingsError

    if yes:
        raise SettingsError(
            f"{path} has a [peer] already, and --yes overwrites nothing",
            fix="axon-peer setup    asks; or axon-peer limits, while it runs",
        )
    click.confirm(f"{path} has a [peer] already. Change it?", default=False, abort=True)


def _written(folder: Path, path: Path, key: Path, answers: Answers) -> str:
    from peer_daemon.options import next_command

    lines = [f"Wrote {path}.   Your key: {key} (copy it to keep your credits)."]
    if not answers.trackers:
        lines.append(
            "Without a tracker it looks on your network and in the DHT; axon-peer run --tracker URL names one."
        )
    steps = {
        ("run",): "in this terminal",
        ("service", "install"): "at login, in the background",
        ("doctor",): "shows what holds strangers' code here",
    }
    commands = {next_command(folder, *words): what for words, what in steps.items()}
    width = max(len(line) for line in commands)
    return "\n".join([*lines, *(f"  {line:<{width}}   {what}" for line, what in commands.items())])


def _data(answers: Answers) -> dict[str, object]:
    return {
        "cores": answers.amounts.cores,
        "memory_mb": answers.amounts.memory_mb,
        "disk_mb": answers.amounts.disk_mb,
        "hours": list(answers.times.hours),
        "on_battery": answers.times.on_battery,
        "trackers": list(answers.trackers),
    } | ({} if answers.gpu is None else {"gpu": answers.gpu})
