"""`axon-tracker status`: what the tracker of this home says of itself and of the others, as text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import msgspec

from axonp2p.errors import MalformedMessage, NotFound
from axonp2p.plain_text import columns
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, Line, Number, UnixMoment

STATUS_PATH = "/v1/status"
MOST_BYTES = 64 * 1024
_FORKED_FIX = "What it signed is in logs-seen in this tracker's home; docs/ledger.md says how to show it to others."


class OtherState(msgspec.Struct, kw_only=True):
    """The report of a tracker on another one; times in seconds, None where nothing happened yet."""

    address: Line
    tracker: Line
    """Its id; empty until it has introduced itself."""
    standing: Line
    """`configured`, `vouched` or `learnt` (`table.tracker_standing`)."""
    lives: bool
    failures: Count
    """In a row."""
    answered_s_ago: Number | None
    lag_s: Number | None
    """From storing a row here to its being stored there, in the last push."""
    equal_s_ago: Number | None
    """Since nothing was found to be missing here."""
    fetched: Count
    """Rows that were missing here."""
    pushed: Count
    """Rows sent there."""
    log: Line
    """How many entries its log has, or what is wrong with it."""
    bytes_sent: Count
    bytes_received: Count

    @property
    def log_is_false(self) -> bool:
        """Whether it is proved to have signed what cannot be true (`LogWatcher.says_of`)."""
        return self.log.startswith("FALSE: ")


class TrackerStatus(msgspec.Struct, kw_only=True):
    """GET /v1/status."""

    tracker: Line
    address: Line
    alive: Count
    """Peers that can be found."""
    rows: Count
    """Rows remembered."""
    time: UnixMoment
    trackers: Annotated[list[OtherState], msgspec.Meta(max_length=1000)]


async def ask_status(address: PinnedAddress) -> TrackerStatus:
    """Ask the tracker at `address` for its status. Raises `MalformedMessage`, and what the line raises."""
    async with line_to(address) as line:
        body = await line.fetch(STATUS_PATH, MOST_BYTES)
    try:
        return decode_json(body, TrackerStatus)
    except msgspec.DecodeError as error:
        raise MalformedMessage(f"{line.called} does not tell its status") from error


def print_status(home: Path, *, as_json: bool) -> None:
    """Ask the tracker that runs with `home` and print. Raises `NotFound` when none does, and what asking raises."""
    try:
        text = (home / "address").read_text().strip()
    except OSError as error:
        raise NotFound(
            f"no tracker runs with {home}",
            cause="the file `address` is not there, which a tracker keeps while it runs",
            fix="axon-tracker run, or name its folder with --home DIR",
        ) from error
    status = asyncio.run(ask_status(PinnedAddress.parse(text)))
    if as_json:
        print(json.dumps(msgspec.to_builtins(status)))
    else:
        print("\n".join(status_lines(status)))


def status_lines(status: TrackerStatus) -> list[str]:
    """For people: the tracker in a line, then one line for each other tracker."""
    living = sum(other.lives for other in status.trackers)
    lines = [
        f"tracker {status.tracker[:8]}  {status.address}",
        f"peers {status.alive}  rows {status.rows}  trackers {living} of {len(status.trackers)} up",
    ]
    if not status.trackers:
        alone = "No other tracker is known: if this one is lost, so is the table until peers announce themselves."
        return [*lines, alone, "To share the table: axon-tracker run --tracker ADDRESS"]
    names = ("tracker", "at", "state", "lag", "equal", "fetched", "pushed", "sent", "received", "log")
    lines += columns(names, [_cells(other) for other in status.trackers]).split("\n")
    return lines + [line for other in status.trackers for line in _trouble_with_log(other)]


def _cells(other: OtherState) -> tuple[str, ...]:
    return (
        other.tracker[:8] or "?",
        other.address.partition("#")[0].removeprefix("https://"),
        _state(other),
        "-" if other.lag_s is None else f"{other.lag_s:.1f} s",
        _ago(other.equal_s_ago),
        str(other.fetched),
        str(other.pushed),
        f"{other.bytes_sent / 1000:.1f} kB",
        f"{other.bytes_received / 1000:.1f} kB",
        other.log.partition(":")[0] or "?",
    )


def _trouble_with_log(other: OtherState) -> list[str]:
    """The line about a tracker's log that does not fit a column, and its fix; none where the column says all."""
    short_word, _, why = other.log.partition(": ")
    return [f"tracker {other.tracker[:8]}: its log is {short_word}: {why}", _FORKED_FIX] if why else []


def _state(other: OtherState) -> str:
    if other.lives:
        return "up"
    if other.answered_s_ago is None:
        return "never answered"
    return f"away for {other.answered_s_ago:.0f} s"


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.0f} s ago"
