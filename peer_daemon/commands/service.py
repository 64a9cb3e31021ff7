"""`axon-peer service install | uninstall | status`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.group("service", no_args_is_help=True)
def command() -> None:
    """Run the peer at login, in the background."""


@command.command("install")
@click.option("--print", "only_print", is_flag=True, help="Only print the systemd unit, and change nothing.")
@common
def install(only_print: bool, home: Path | None, as_json: bool) -> None:
    """Write the service, and start it now and at each login. Undo: axon-peer service uninstall."""
    from axonp2p.console import print_answer
    from peer_daemon.options import peer_home
    from peer_daemon.service import manager
    from peer_daemon.service.systemd import BEGIN

    text = manager.own_text(peer_home(home))
    if only_print:
        print_answer(text.rstrip("\n"), {"text": text}, as_json=as_json)
        return
    path = manager.unit_path()
    wrote = manager.install(path, text)
    trouble = manager.why_no_manager()
    lines = [f"{'Wrote' if wrote else 'Is there already:'} {path}"]
    if trouble:
        lines += [f"Not started: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in BEGIN)]
    else:
        manager.carry_out(BEGIN)
        lines.append(
            "It runs now, and at each login.   How it is: axon-peer status    undo: axon-peer service uninstall"
        )
        if not manager.lingers():
            lines.append("It ends when you log out. So that it goes on: loginctl enable-linger")
    data = {"path": str(path), "written": wrote, "started": not trouble, "trouble": trouble}
    print_answer("\n".join(lines), data, as_json=as_json)


@command.command("uninstall")
@common
def uninstall(home: Path | None, as_json: bool) -> None:
    """Stop the service and remove it; key, settings and credits stay."""
    from axonp2p.console import print_answer
    from peer_daemon.options import peer_home
    from peer_daemon.service import manager
    from peer_daemon.service.systemd import END, FORGET, LATE_END

    path = manager.unit_path()
    trouble = manager.why_no_manager()
    if path.exists() and not trouble:
        manager.carry_out(END)
    removed = manager.remove(path)
    lines = [f"Removed {path}" if removed else f"No service was installed ({path} is not there)."]
    if removed and trouble:
        lines += [f"Not stopped: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in LATE_END)]
    elif removed:
        manager.carry_out(FORGET)
        lines.append(f"Key, settings and credits stay in {peer_home(home)}.")
    print_answer("\n".join(lines), {"path": str(path), "removed": removed, "trouble": trouble}, as_json=as_json)


@command.command("status")
@common
def status(home: Path | None, as_json: bool) -> None:
    """Whether the service is installed, and whether it runs."""
    import dataclasses

    from axonp2p.console import print_answer
    from peer_daemon.service import manager

    found = manager.look(manager.unit_path())
    if not found.written:
        text = "No service is installed.   axon-peer service install"
    elif found.trouble:
        text = f"Installed ({found.path}).   Whether it runs is not known: {found.trouble}"
    else:
        text = f"Installed ({found.path}), {found.enabled}, {found.active}"
        text += "" if found.active == "active" else ".   Why: axon-peer logs -n 20, or: journalctl --user -u axon-peer"
        text += "" if found.lingers else ".   It ends when you log out; so that it goes on: loginctl enable-linger"
    print_answer(text, dataclasses.asdict(found), as_json=as_json)
