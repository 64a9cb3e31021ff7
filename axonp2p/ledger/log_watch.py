"""Looks at trackers' logs: asks each for its head and for what it saw of the others, and lets `WatchedLogs` compare."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from axonp2p.errors import AxonError, MalformedMessage, PeerMisbehaved
from axonp2p.files import replacing
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.log_client import consistency, heads
from axonp2p.ledger.log_messages import HeadsTold
from axonp2p.ledger.tree_head import TreeHead, open_head, why_shrunk
from axonp2p.ledger.watched_logs import WATCHED_LIMIT, ProofWanted, WatchedLogs
from axonp2p.supervision import one_look
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import Signed

FILE = "logs-seen"
"""In a program's home."""
COMPARED_WITHIN_S = 30.0
"""The time that one look at a tracker may take; the next look goes on."""


@dataclass(frozen=True)
class Looked:
    """The result of one look at one tracker."""

    called: str
    head: TreeHead | None = None
    """None when it did not tell."""
    trouble: str = ""
    """Why it told nothing."""
    unproved: str = ""
    """Why it did not prove that one of its heads continues another; that alone convicts nobody."""
    began_anew: TreeHead | None = None
    """The last head of its log before the one that it has now, when it began a new one."""


@dataclass
class _Heard:
    caller: HttpCaller
    told: HeadsTold
    head: TreeHead
    unproved: list[str] = field(default_factory=list)


def read_watched(home: Path) -> WatchedLogs:
    """The logs kept in this home; blocks. Raises `MalformedMessage` when the file is damaged."""
    path = home / FILE
    try:
        with path.open("rb") as file:
            kept = file.read(WATCHED_LIMIT + 1)
    except FileNotFoundError:
        return WatchedLogs()
    try:
        return WatchedLogs(kept)
    except PeerMisbehaved as error:
        raise MalformedMessage(f"{path} is damaged: {error.message}", fix=f"move {path} away") from error


def keep_watched(home: Path, watched: WatchedLogs) -> None:
    """Write it down, if there is something new; blocks. Evidence that another program found meanwhile stays."""
    if watched.changed:
        for one in read_watched(home).convicted:
            watched.told(one.evidence)
        with replacing(home / FILE, lasting=True) as file:
            file.write(watched.encoded())
        watched.changed = False


async def look_at_logs(callers: Sequence[HttpCaller], watched: WatchedLogs) -> list[Looked]:
    """Ask all of them, side by side, and compare with what was seen before, here and by each of them.

    The answer of one of them, or the time that it takes, ends no more than the look at that one.
    """
    answers = await asyncio.gather(*(_ask(caller) for caller in callers))
    heard = [answer for answer in answers if isinstance(answer, _Heard)]
    by_tracker = {one.head.tracker: one for one in heard}
    await asyncio.gather(*(_within_time(one, _compare(one.told.own, by_tracker, watched)) for one in heard))
    await asyncio.gather(*(_within_time(one, _compare_seen(one, by_tracker, watched)) for one in heard))
    return [_looked(answer, watched) if isinstance(answer, _Heard) else answer for answer in answers]


async def _within_time(heard: _Heard, work: Coroutine[None, None, None]) -> None:
    try:
        async with asyncio.timeout(COMPARED_WITHIN_S):
            with one_look("comparing a log's heads"):
                await work
    except TimeoutError:
        heard.unproved.append(f"what it shows was not compared within {COMPARED_WITHIN_S:.0f} s")
    except AxonError as error:
        heard.unproved.append(error.in_a_line)


async def _compare_seen(one: _Heard, by_tracker: dict[PeerId, _Heard], watched: WatchedLogs) -> None:
    for signed in one.told.seen:
        # A tracker that was never asked here could be anybody's invention.
        with contextlib.suppress(AxonError), one_look("a look at a head that a tracker saw"):
            if watched.last(open_head(signed).tracker):
                await _compare(signed, by_tracker, watched)
    for evidence in one.told.evidence:
        with contextlib.suppress(AxonError), one_look("a look at evidence against a log"):
            if watched.last(evidence.second.signer):
                watched.told(evidence)


async def compare_head(signed: Signed[TreeHead], caller: HttpCaller, watched: WatchedLogs) -> None:
    """Compare one more head that `caller`'s tracker showed. Raises what asking raises when it proves nothing."""
    if wanted := watched.heard(signed):
        watched.proved(wanted, await consistency(caller, *wanted.sizes))


async def _ask(caller: HttpCaller) -> _Heard | Looked:
    try:
        with one_look("asking for a log's head"):
            told = await heads(caller)
            return _Heard(caller, told, open_head(told.own))
    except AxonError as error:
        return Looked(caller.called, trouble=error.in_a_line)


async def _compare(signed: Signed[TreeHead], by_tracker: dict[PeerId, _Heard], watched: WatchedLogs) -> None:
    wanted = watched.heard(signed)
    heard = by_tracker.get(signed.signer)
    if wanted is not None and heard is not None:
        await _have_it_proved(wanted, heard, watched)


async def _have_it_proved(wanted: ProofWanted, heard: _Heard, watched: WatchedLogs) -> None:
    first, second = wanted.sizes
    try:
        with one_look("a look at a tracker's proof"):
            watched.proved(wanted, await consistency(heard.caller, first, second))
    except AxonError as error:
        shrunk = why_shrunk(open_head(wanted.first), open_head(wanted.second))
        why = shrunk or f"its {second} entries are not shown to continue its {first}"
        heard.unproved.append(f"{why}: {error.in_a_line}")


def _looked(heard: _Heard, watched: WatchedLogs) -> Looked:
    kept = watched.last(heard.head.tracker)
    before = open_head(kept.before) if kept and kept.before else None
    return Looked(heard.caller.called, heard.head, unproved="; ".join(heard.unproved), began_anew=before)
