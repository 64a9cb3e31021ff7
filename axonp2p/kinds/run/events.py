"""The events of a job of this kind: what a person may see of its copies."""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.kinds.run.messages import MOST_COPIES
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count, Number, PlainText

ExitCode = Annotated[int, msgspec.Meta(ge=-128, le=255)]
"""Below 0: the number of the signal that ended it."""


class CopyBegun(Event, frozen=True):
    """An index was begun for the first time in this life of the job."""

    index: Count
    attempt: Count
    peer: PlainText


class CopyRetried(Event, frozen=True):
    """An index was begun again, after what came before."""

    index: Count
    attempt: Count
    peer: PlainText
    reason: PlainText = ""
    """How the last one came to its end."""


class SpeculativeCopy(Event, frozen=True):
    """An index was begun a second time, because its first copy is stuck: the first good end is its result."""

    index: Count
    attempt: Count
    peer: PlainText
    slow_peer: PlainText = ""
    """The peer where it is stuck."""


class CopyEnded(Event, frozen=True):
    """A copy is over; its files have yet to come."""

    index: Count
    attempt: Count
    peer: PlainText
    code: ExitCode
    seconds: Number
    """From its begin to its end."""
    cpu_seconds: Number = 0.0
    """By the worker's word."""
    most_memory: Count = 0
    """Bytes: the most that one of its processes held."""
    reason: PlainText = ""
    """Why it ended, where that was not by itself."""

    @property
    def unneeded(self) -> bool:
        """Whether it was told to end because nobody needs its result."""
        return self.reason == "order"


class OutputsKept(Event, frozen=True):
    """The result of an index is on this disk: its files, and its line in results.csv."""

    index: Count
    peer: PlainText
    files: Count
    bytes: Count
    done: Count
    """How many indices have their result now, failed ones too."""
    copies: Count
    left_out: Count = 0
    """Files that fit too, and did not come."""


class IndexFailed(Event, frozen=True):
    """The result of an index is that it failed: its attempts are spent."""

    index: Count
    peer: PlainText
    """Where it ended last."""
    code: ExitCode
    reason: PlainText
    done: Count
    """As in `OutputsKept`."""
    copies: Count


class ResultsDamaged(Event, frozen=True):
    """results.csv was damaged: it is put aside, and its good lines are kept."""

    file: PlainText
    """Where the damaged file is now."""
    done: Count
    """How many indices have their result."""


class OutputsLost(Event, frozen=True):
    """Results whose files are not on this disk do not count any more."""

    indices: Annotated[list[Count], msgspec.Meta(max_length=MOST_COPIES)]
    """They run again."""
    done: Count
    """How many indices have their result."""


class JobResults(Event, frozen=True):
    """Each index has its result."""

    job: PlainText
    folder: PlainText
    """Holds results.csv, out and logs."""
    copies: Count
    failed: Annotated[list[Count], msgspec.Meta(max_length=MOST_COPIES)]
    """Indices whose result is that they failed."""
    seconds: Number
    """From submit (or resume) to now."""
    credits: Annotated[dict[PlainText, Number], msgspec.Meta(max_length=4096)] = {}
    """By peer."""
    receipts: Count = 0
    """Receipts that a tracker holds."""


RunEvent = (
    CopyBegun
    | CopyRetried
    | SpeculativeCopy
    | CopyEnded
    | OutputsKept
    | IndexFailed
    | ResultsDamaged
    | OutputsLost
    | JobResults
)

ready_to_decode(RunEvent)
