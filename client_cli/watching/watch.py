"""`axon peers`, once or again and again: the look is passed in, this shows it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from axonp2p.client.queries import Survey
from axonp2p.console import printable
from axonp2p.table.sightings import SourceAnswer
from client_cli.context import Context, terminal_width
from client_cli.text.peer_table import changes, state_text, survey_text

EVERY_S = 3.0
Look = Callable[[], Survey]


def look_once(look: Look, context: Context, *, wide: bool) -> None:
    """Show one look."""
    survey = look()
    context.answer(survey_text(survey, wide=wide, width=terminal_width()), survey_data(survey))


def look_again_and_again(look: Look, context: Context, *, wide: bool) -> None:
    """Until Ctrl-C: a picture that changes on a terminal, else what changed, a line each; JSON, a line a look."""
    if context.as_json:
        while True:
            print(json.dumps(survey_data(look())), flush=True)
            time.sleep(EVERY_S)
    elif sys.stdout.isatty():
        _picture(look, wide)
    else:
        _lines(look)


def survey_data(survey: Survey) -> dict[str, Any]:
    """The JSON object of `axon peers --json`."""
    return {
        "peers": [msgspec.to_builtins(peer) for peer in survey.peers],
        "sources": [_source_data(answer) for answer in survey.answers],
        "silent": dict(survey.silent),
    }


def _source_data(answer: SourceAnswer) -> dict[str, Any]:
    return {
        "source": answer.source,
        "seconds": answer.seconds,
        "shown": len(answer.rows),
        "fitting": answer.fitting,
        "alive": answer.alive,
        "dropped": answer.dropped,
        "trouble": answer.trouble,
    }


def _picture(look: Look, wide: bool) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(Text("looking..."), console=Console(highlight=False), screen=True, auto_refresh=False) as live:
        while True:
            text = survey_text(look(), wide=wide, width=live.console.width)
            # Cut at the edge: a line that wraps is no line of a table any more.
            shown = f"{text}\n\n{time.strftime('%H:%M:%S')}, again every {EVERY_S:.0f} s.  Ctrl-C ends it."
            live.update(Text(printable(shown), no_wrap=True, overflow="ellipsis"), refresh=True)
            time.sleep(EVERY_S)


def _lines(look: Look) -> None:
    before = look()
    for peer in before.peers:
        _say(f"{peer.name} is there: {state_text(peer)}")
    while True:
        time.sleep(EVERY_S)
        after = look()
        for line in changes(before, after):
            _say(line)
        before = after


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {printable(line)}", flush=True)
