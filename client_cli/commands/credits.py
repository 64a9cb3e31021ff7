"""`axon credits`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options

_SHOWN = 10


@click.command("credits", short_help="Show credits and receipts from a tracker's ledger.")
@click.argument("job", default="", shell_complete=options.job_ids)
@click.option(
    "--key",
    metavar="ID",
    default="",
    help="The balance and receipts of this peer or client, not of you: its id, or the name or the beginning of the id "
    "of a peer of your jobs.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print every receipt as CSV, the oldest first.")
@click.option(
    "--proof",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every receipt with its proof to FILE; axon-verify-ledger checks it without a network.",
)
@options.overwrite
@options.trackers
@options.common
def command(
    job: str,
    key: str,
    as_csv: bool,
    proof: Path | None,
    overwrite: bool,
    trackers: tuple[str, ...],
    home: Path | None,
    as_json: bool,
) -> None:
    """Your balance in a tracker's ledger, and those of the peers of your jobs; with JOB, of that job alone.

    A credit is a cobblestone: 200 of them are a day of work at 1 GFLOPS, counted, not claimed. With --key, --csv or
    --proof receipts are shown, each checked; the tracker's log is compared with what was seen of it before.
    Credits that hosts signed for in your jobs are yours.
    """
    import msgspec

    from client_cli.context import Context
    from client_cli.text.credits_table import (
        credits_table,
        history_csv,
        history_row,
        history_table,
        pending_text,
        whole_key,
    )

    context = Context.of(home, as_json)
    options.keep_existing([proof] if proof else [], overwrite=overwrite)
    with context.swarm(trackers) as swarm:
        if not (key or as_csv or proof):
            found, pending = swarm.credits(job), swarm.pending()
            text = "\n".join(filter(None, [credits_table(found), pending_text(pending)]))
            context.answer(text, msgspec.to_builtins(found) | {"pending": msgspec.to_builtins(pending)})
            return
        if job:
            raise click.UsageError("JOB does not go with --key, --csv or --proof")
        history = swarm.history(
            whole_key(key, swarm.names()), most=0 if as_csv or proof else _SHOWN, prove=proof is not None
        )
        rows = [history_row(line) for line in history.lines]
        data: dict[str, object] = {"keys": history.keys, "tracker": history.tracker, "entries": history.head.size}
        data |= {"root": history.head.root.hex(), "receipts": rows}
        text = history_csv(history) if as_csv else history_table(history, swarm.names())
        if not (as_csv or proof):
            balances = swarm.credits(keys=history.keys)
            data["balances"] = msgspec.to_builtins(balances.balances)
            text = f"{credits_table(balances)}\n\n{text}"
        if proof is not None:
            from axonp2p.files import write_whole

            write_whole(proof, history.proof)
            data["proof"] = str(proof)
            if not as_csv:
                text = f"{len(rows)} receipts with their proofs are in {proof}; check them: axon-verify-ledger {proof}"
        context.answer(text, data)
