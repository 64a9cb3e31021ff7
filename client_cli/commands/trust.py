"""`axon trust`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from client_cli.options import common


@click.command("trust")
@click.option("--pardon", metavar="ID", default="", help="Forget what was found of the peer whose id begins like this.")
@common
def command(pardon: str, home: Path | None, as_json: bool) -> None:
    """What this computer's own jobs have found of the work of peers, by doing some of it again elsewhere.

    Who was convicted of false work gets no more of it from here, in this job and in later ones. docs/trust.md says
    what is checked, and how sure that is.
    """
    from client_cli.context import Context
    from client_cli.trust_table import find_one, known_data, trust_text

    context = Context.of(home, as_json)
    book = context.trust()
    known = sorted(book.all().values(), key=lambda one: (one.convicted_at is None, -one.checks, one.peer))
    if pardon:
        one = find_one(known, pardon)
        book.pardon(one.peer)
        context.answer(f"All that was found of {one.peer} is forgotten.", {"pardoned": one.peer})
        return
    context.answer(trust_text(known, now=time.time()), {"peers": [known_data(one) for one in known]})
