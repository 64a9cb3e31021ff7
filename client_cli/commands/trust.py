"""`axon trust`, and `axon verdict FILE`, which examines the evidence of a conviction."""

from __future__ import annotations

import time
from pathlib import Path

import click

from client_cli import options


@click.command("trust", short_help="Show what checks have found of the work of peers.")
@click.option("--pardon", metavar="ID", default="", help="Forget what was found of the peer whose id begins like this.")
@click.option("--ask", metavar="ID", default="", help="Ask trackers what evidence they hold about this key.")
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --ask: write what it stands on to files there, for axon verdict.",
)
@options.trackers
@options.common
def command(
    pardon: str, ask: str, into: Path | None, trackers: tuple[str, ...], home: Path | None, as_json: bool
) -> None:
    """The record of each peer: how often its work was done again elsewhere, and how often it was right.

    A peer that was convicted of false work gets none from here any more, in this job and in later ones.
    docs/trust.md says what is checked, and how sure that is. With --ask trackers are asked for the convictions that
    clients handed in, of this key or by it; each is examined here, and none changes what this computer itself has
    found.
    """
    from axonp2p.identity.peer_id import ID_LENGTH
    from client_cli.context import Context
    from client_cli.text.trust_table import file_name, find_one, held_data, held_text, known_data, trust_text

    context = Context.of(home, as_json)
    book = context.trust()
    known = sorted(book.all().values(), key=lambda one: (one.convicted_at is None, -one.checks, one.peer))
    if ask:
        key = ask if len(ask) == ID_LENGTH else find_one(known, ask).peer
        with context.swarm(trackers) as swarm:
            held = swarm.evidence(key)
        told = []
        for conviction in held:
            file = into / file_name(conviction) if into and conviction.evidence else None
            if file:
                _write(file, conviction.evidence)
            told.append(held_data(conviction, file))
        context.answer(held_text(key, held), {"key": key, "held": told})
        return
    if into:
        raise click.UsageError("--into goes with --ask")
    if pardon:
        one = find_one(known, pardon)
        book.pardon(one.peer)
        context.answer(f"All that was found of {one.peer} is forgotten.", {"pardoned": one.peer})
        return
    names = {peer.peer: peer.name for record in context.jobs().records() for peer in record.peers}
    told = [known_data(one) | {"name": names.get(one.peer, "")} for one in known]
    context.answer(trust_text(known, names, now=time.time()), {"peers": told})


@click.command("verdict", short_help="Examine the evidence of a conviction.")
@click.argument("file", type=click.Path(path_type=Path))
@options.common
def verdict(file: Path, home: Path | None, as_json: bool) -> None:
    """Examine the evidence of a conviction: FILE as a job keeps it in its folder, under evidence/.

    Every signature in it is checked, and it is judged anew by the rule of docs/trust.md, without any network. A peer
    that was accused can so show whether what it signed convicts it.
    """
    from axonp2p.errors import MalformedMessage, NotFound
    from axonp2p.ledger.voiding import EVIDENCE_LIMIT
    from axonp2p.verification.evidence import examine, read_evidence
    from client_cli.context import Context
    from client_cli.text.verdict_text import verdict_data, verdict_text

    context = Context.of(home, as_json)
    try:
        with file.open("rb") as stream:
            data = stream.read(EVIDENCE_LIMIT + 1)
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from error
    try:
        examined = examine(read_evidence(data))
    except MalformedMessage as error:
        raise MalformedMessage(
            f"{file} is no evidence of a conviction",
            cause=error.message,
            fix="take a file of a job's folder, under evidence/; or ask for one: axon trust --ask ID --into DIR",
        ) from error
    context.answer(verdict_text(examined), verdict_data(examined))


def _write(file: Path, evidence: bytes) -> None:
    from axonp2p.errors import SettingsError
    from axonp2p.files import write_whole

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, evidence)
    except OSError as error:
        raise SettingsError(f"cannot write {file}: {error.strerror}", fix="name another folder") from error
