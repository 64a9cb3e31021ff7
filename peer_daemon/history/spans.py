"""When a span of time goes on, and how spans that a clock mixed up are told (pure).

Nothing here trusts the clock to go forward evenly: a machine sleeps, its clock is set, it begins in 1970. Time not
watched is a gap, never part of a span. Where two spans claim the same time, the one written later is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from peer_daemon.control.status import SpanTold

GAP_S = 180.0
"""The daemon says each minute that a span lasts; after so much silence, or so far back in time, a new one begins."""


def goes_on(span: SpanTold, at: float) -> bool:
    """Whether `span`, known to have lasted until its end, may be taken to have lasted until `at`, Unix seconds."""
    return abs(at - span.ended) <= GAP_S


def lasting(span: SpanTold, at: float) -> SpanTold:
    """`span`, which still lasts at `at`: longer, or anew after a gap or when the clock went back."""
    if goes_on(span, at):
        return replace(span, ended=max(span.ended, at))
    return replace(span, began=at, ended=at)


def laid_out(written: Iterable[SpanTold]) -> list[SpanTold]:
    """The spans in the order of time, none over another, from those in the order in which they were written.

    A span of no length is left out, but for the last one: it is the present.
    """
    told: list[SpanTold] = []
    newest: SpanTold | None = None
    for newest in written:
        later: list[SpanTold] = []
        while told and told[-1].ended > newest.began:
            over = told.pop()
            if over.ended > newest.ended:
                later.append(replace(over, began=max(over.began, newest.ended)))
            if over.began < newest.began:
                told.append(replace(over, ended=newest.began))
                break
        told += [newest, *reversed(later)]
    return [span for span in told if span.ended > span.began or span is newest]
