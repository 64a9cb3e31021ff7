"""`axon-peer setup`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from peer_daemon.options import common

if TYPE_CHECKING:
    from axonp2p.settings import PeerSettings
    from peer_daemon.lending.offer import MeasuredMachine
    from peer_daemon.setup.answers import Answers
    from peer_daemon.setup.tracker_trial import TrackerTrial

T = TypeVar("T")


@click.command("setup", short_help="Three questions, and config.toml is written.")
@click.option("--yes", is_flag=True, help="Take the suggested answers, and ask nothing.")
@click.option("--tracker", "given", multiple=True, metavar="URL", help="The answer to the third question; repeatable.")
@common
def command(yes: bool, given: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Ask how much to lend, when, and which tracker to use.

    A fourth question follows if there is a GPU. Writes config.toml; comments and other settings in it stay.
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
    answers, trials = _answers(machine, settings, given, _suggested if yes else _asked)
    after = with_answers(before, answers).encode()
    parse_settings(after, path, {})
    write_whole(path, after)
    key = folder / "peer.key"
    peer = load_or_create_key(key).peer_id
    about = {"computer": computer, "config": str(path), "key": str(key), "peer": peer, "no_sandbox": trouble}
    print_answer(_written(folder, path, key, trials), about | _data(answers, trials), as_json=as_json)


_SAFE = "Jobs run in a sandbox: no network, none of your files, lowest priority.   Proof: axon-peer doctor"

_GPU = "Its driver is then open to strangers' code (docs/safety.md)"


def _answers(
    machine: MeasuredMachine,
    settings: PeerSettings,
    given: tuple[str, ...],
    ask: Callable[[str, str, Callable[[str], Any]], Any],
) -> tuple[Answers, list[TrackerTrial]]:
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
        where = f" ({_one_line(found[known[0]])}, on your network, uses this one)" if known else ""
    trackers, trials = _tried_trackers(f"3. Which tracker?{where}", " ".join(known) or "none", ask)
    cards = ", ".join(card.name for card in lendable(machine.gpus))
    usual_gpu = "yes" if settings.gpu else "no"
    gpu = ask(f"4. May jobs have {cards}? {_GPU}", usual_gpu, answers.yes_or_no) if cards else None
    return answers.Answers(amounts, when, trackers, gpu), trials


def _tried_trackers(
    question: str, usual: str, ask: Callable[[str, str, Callable[[str], Any]], Any]
) -> tuple[tuple[str, ...], list[TrackerTrial]]:
    """The third answer, once each tracker in it was called, and what came of that."""
    import asyncio

    from axonp2p.clock import SystemClock
    from peer_daemon.setup import answers
    from peer_daemon.setup.probe import try_trackers

    while True:
        trials = asyncio.run(try_trackers(ask(question, usual, answers.trackers), SystemClock()))
        kept = [_kept(trial, asks=ask is _asked) for trial in trials]
        addresses = tuple(address for address in kept if address)
        if len(addresses) == len(trials):
            if any(trial.offered in addresses for trial in trials if trial.offered):
                trials = asyncio.run(try_trackers(addresses, SystemClock()))
            return addresses, trials


def _kept(trial: TrackerTrial, *, asks: bool) -> str:
    """The address that goes into config.toml; empty when the owner types another one. Raises `SettingsError`."""
    from axonp2p.errors import SettingsError

    if not asks:
        if trial.offered:
            raise SettingsError(
                f"the address {trial.address} lacks #FINGERPRINT",
                cause=f"the certificate there is {trial.offered}; whether that is right only its operator knows",
                fix="axon-peer setup --yes --tracker ADDRESS    with the whole address that its operator gives",
            )
        return str(trial.address)
    click.echo(f"     {_one_line(trial.text)}")
    if trial.error is None:
        return str(trial.address)
    if trial.offered:
        # Trust on first use only by the owner's word: who answers now may be somebody between here and there.
        wanted = click.confirm(
            "     Did its operator give you this fingerprint? Then it is used from now on", default=False
        )
        return trial.offered if wanted else ""
    return str(trial.address) if click.confirm("     Keep this address all the same?", default=False) else ""


def _one_line(told: str) -> str:
    """The text in which others describe themselves, as one line for a terminal."""
    from axonp2p.console import printable

    return printable(" ".join(told.split()))


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


def _written(folder: Path, path: Path, key: Path, trials: Sequence[TrackerTrial]) -> str:
    from peer_daemon.options import next_command
    from peer_daemon.setup.tracker_trial import whether_found

    lines = [f"Wrote {path}.   Your key: {key} (copy it to keep your credits)."]
    steps = {
        ("run",): "in this terminal",
        ("service", "install"): "at login, in the background",
        ("doctor",): "shows what holds strangers' code here",
    }
    commands = {next_command(folder, *words): what for words, what in steps.items()}
    width = max(len(line) for line in commands)
    lines += [f"  {line:<{width}}   {what}" for line, what in commands.items()]
    return "\n".join([*lines, whether_found(trials)])


def _data(answers: Answers, trials: Sequence[TrackerTrial]) -> dict[str, object]:
    return {
        "cores": answers.amounts.cores,
        "memory_mb": answers.amounts.memory_mb,
        "disk_mb": answers.amounts.disk_mb,
        "hours": list(answers.times.hours),
        "on_battery": answers.times.on_battery,
        "trackers": list(answers.trackers),
        "no_answer": {str(trial.address): trial.error.in_a_line for trial in trials if trial.error},
    } | ({} if answers.gpu is None else {"gpu": answers.gpu})
