"""`axon verdict FILE`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common


@click.command("verdict", short_help="Examine the evidence of a conviction.")
@click.argument("file", type=click.Path(path_type=Path))
@common
def command(file: Path, home: Path | None, as_json: bool) -> None:
    """Examine the evidence of a conviction: FILE as a job keeps it in its folder, under evidence/.

    Every signature in it is checked, and it is judged anew by the rule of docs/trust.md, without any network. Who was
    accused can so show whether what it signed convicts it.
    """
    from axonp2p.errors import NotFound
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
    examined = examine(read_evidence(data))
    context.answer(verdict_text(examined), verdict_data(examined))
