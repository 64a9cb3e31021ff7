"""`axon-peer doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.command("doctor")
@click.option("-v", "--verbose", is_flag=True, help="A line for each attack on the wall.")
@common
def command(verbose: bool, home: Path | None, as_json: bool) -> int:
    """Find out what is wrong; try to break the sandbox.

    Checks this computer, the sandbox, the sensors that tell whether the machine is idle, ports, trackers and clocks;
    a peer need not run. The attacks are those of a hostile job, in the sandbox that strangers' jobs get; they are
    harmless. Ends with 1 if a check fails; a warning is no failure.
    """
    import asyncio

    from axonp2p.clock import SystemClock
    from axonp2p.console import print_answer
    from axonp2p.findings import broken, report_data, report_text
    from axonp2p.logs import configure_logs
    from peer_daemon.doctor.checks import checks_of
    from peer_daemon.doctor.probe import probe
    from peer_daemon.options import peer_home

    configure_logs(level="error")
    checks = checks_of(asyncio.run(probe(peer_home(home), SystemClock())), verbose=verbose)
    print_answer(report_text(checks), report_data(checks), as_json=as_json)
    return 1 if broken(checks) else 0
