"""`axon-peer page`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.command("page")
@click.option("--open", "in_browser", is_flag=True, help="Open it in the browser.")
@common
def command(in_browser: bool, home: Path | None, as_json: bool) -> None:
    """Show the address of the status page.

    The address contains the token that allows changes: keep it secret.
    """
    import asyncio

    from axonp2p.console import print_answer
    from axonp2p.errors import NotFound
    from peer_daemon.control.caller import ask_status
    from peer_daemon.options import peer_home
    from peer_daemon.page.token import page_address

    folder = peer_home(home)
    if not asyncio.run(ask_status(folder)).page:
        raise NotFound(
            "this peer has no status page",
            cause='it runs with page = ""',
            fix='page = "127.0.0.1:7072" in config.toml, or axon-peer run --page 127.0.0.1:7072',
        )
    address = page_address(folder)
    opened = False
    if in_browser:
        import webbrowser

        opened = webbrowser.open(address)
    text = address if opened or not in_browser else f"{address}\nNo browser was found here; open it yourself."
    print_answer(text, {"address": address, "opened": opened}, as_json=as_json)
