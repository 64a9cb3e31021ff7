"""`axon doctor`, what is wrong between this computer and the swarm, and `axon version`, what is installed here."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("doctor", short_help="Find what is wrong between this computer and the swarm.")
@options.trackers
@options.common
def command(trackers: tuple[str, ...], home: Path | None, as_json: bool) -> int:
    """Look for what is broken between you and the swarm, and say what mends it.

    This computer, every tracker that is known, their clocks, whether they all see one swarm, and whether the DHT can be
    reached. Ends with 1 when a check fails; a warning is no failure.
    """
    import asyncio

    from axonp2p.clock import SystemClock
    from axonp2p.findings import broken, report_data, report_text
    from axonp2p.logs import configure_logs
    from client_cli.context import Context
    from client_cli.doctor.checks import checks_of
    from client_cli.doctor.probe import probe

    context = Context.of(home, as_json)
    configure_logs(level="debug" if context.debug else "error")
    checks = checks_of(asyncio.run(probe(context.home, trackers, SystemClock())))
    context.answer(report_text(checks), report_data(checks))
    return 1 if broken(checks) else 0


@click.command("version", short_help="Versions of Axon and of its libraries.")
@options.common
def version(home: Path | None, as_json: bool) -> None:
    """Versions of Axon and of what it stands on."""
    from axonp2p import __version__
    from axonp2p.missing_modules import installed_versions
    from client_cli.context import Context
    from client_cli.text.render import pairs

    found = {name: told or "missing" for name, told in installed_versions(__version__).items()}
    Context.of(home, as_json).answer(pairs(found), found)
