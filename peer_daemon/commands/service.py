"""`axon-peer service install | uninstall | status`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.group("service", no_args_is_help=True)
def command() -> None:
    """Run the peer at login, in the background."""


@command.command("install")
@click.option(
    "--print",
    "kind",
    type=click.Choice(["systemd", "launchd", "task-scheduler"]),
    help="Only print the text for this system, and change nothing.",
)
@common
def install(kind: str | None, home: Path | None, as_json: bool) -> None:
    """Write the service, and start it now and at each login. Undo: axon-peer service uninstall."""
    from axonp2p.console import print_answer
    from peer_daemon.options import peer_home
    from peer_daemon.service import manager
    from peer_daemon.service.plan import TEXTS

    folder = peer_home(home)
    if kind is not None:
        text = TEXTS[kind](manager.facts_of(folder))
        print_answer(text.rstrip("\n"), {"kind": kind, "text": text}, as_json=as_json)
        return
    plan = manager.own_plan(folder)
    wrote = manager.install(plan)
    trouble = manager.why_no_manager()
    lines = [f"{'Wrote' if wrote else 'Is there already:'} {plan.path}"]
    if trouble:
        lines += [f"Not started: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in plan.begin)]
    else:
        manager.carry_out(plan.begin)
        lines.append(
            "It runs now, and at each login.   How it is: axon-peer status    undo: axon-peer service uninstall"
        )
        if not manager.lingers():
            lines.append("It ends when you log out. So that it goes on: loginctl enable-linger")
    data = {"path": str(plan.path), "written": wrote, "started": not trouble, "trouble": trouble}
    print_answer("\n".join(lines), data, as_json=as_json)


@command.command("uninstall")
@common
def uninstall(home: Path | None, as_json: bool) -> None:
    """Stop the service and remove it; key, settings and credits stay."""
    from axonp2p.console import print_answer
    from peer_daemon.options import peer_home
    from peer_daemon.service import manager

    folder = peer_home(home)
    plan = manager.own_plan(folder)
    trouble = manager.why_no_manager()
    there = Path(plan.path).exists()
    if there and not trouble:
        manager.carry_out(plan.end)
    removed = manager.remove(plan)
    lines = [f"Removed {plan.path}" if removed else f"No service was installed ({plan.path} is not there)."]
    if removed and trouble:
        lines += [f"Not stopped: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in plan.late_end)]
    elif removed:
        manager.carry_out(plan.forget)
        lines.append(f"Key, settings and credits stay in {folder}.")
    print_answer("\n".join(lines), {"path": str(plan.path), "removed": removed, "trouble": trouble}, as_json=as_json)


@command.command("status")
@common
def status(home: Path | None, as_json: bool) -> None:
    """Whether the service is installed, and whether it runs."""
    import dataclasses

    from axonp2p.console import print_answer
    from peer_daemon.options import peer_home
    from peer_daemon.service import manager

    found = manager.look(manager.own_plan(peer_home(home)))
    if not found.written:
        text = "No service is installed.   axon-peer service install"
    elif found.trouble:
        text = f"Installed ({found.path}).   Whether it runs is not known: {found.trouble}"
    else:
        text = f"Installed ({found.path}), {found.enabled}, {found.active}"
        text += "" if found.active == "active" else ".   Why: axon-peer logs -n 20, or: journalctl --user -u axon-peer"
        text += "" if found.lingers else ".   It ends when you log out; so that it goes on: loginctl enable-linger"
    print_answer(text, dataclasses.asdict(found), as_json=as_json)
