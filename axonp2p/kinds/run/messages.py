"""The messages of the client and a worker about one command: headers of frames that daemons carry unread.

A copy is named by its index and its attempt: the attempt counts how often that index was begun, at whichever peer.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.jobs.messages import JobId
from axonp2p.jobs.output_messages import OutputMessage
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count, PlainText, Seconds

MOST_COPIES = 10_000
MOST_WORDS = 256
LONGEST_WORD = 4000
"""Characters, once the numbers of a copy stand in it. All words together fit a frame's header: they come from one
command of `section.LONGEST_COMMAND` characters."""
MOST_VARIABLES = 32
LONGEST_VALUE = 256
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z"
"""Names of variables."""
MOST_PATTERNS = 16
LONGEST_PATTERN = 100
LONGEST_TIMEOUT_S = 30 * 86400

CopyIndex = Annotated[int, msgspec.Meta(ge=0, lt=MOST_COPIES)]
Variables = Annotated[
    dict[Annotated[str, msgspec.Meta(pattern=VARIABLE)], Annotated[str, msgspec.Meta(max_length=LONGEST_VALUE)]],
    msgspec.Meta(max_length=MOST_VARIABLES),
]
Timeout = Annotated[int, msgspec.Meta(ge=0, le=LONGEST_TIMEOUT_S)]
"""Seconds."""
Patterns = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=LONGEST_PATTERN)]], msgspec.Meta(max_length=MOST_PATTERNS)
]

Restart = Literal["never", "on-failure", "always"]
"""When a copy begins again."""
EndedBy = Literal["itself", "timeout", "order", "not started"]
"""Why a copy is over."""


class BeginCopy(Message, tag=True, frozen=True):
    """Start the command, with an empty /tmp. No other copy may run there."""

    job: JobId
    index: CopyIndex
    copies: Annotated[int, msgspec.Meta(ge=1, le=MOST_COPIES)]
    """How many indices there are."""
    attempt: Count
    """How often this index was begun before, at any peer."""
    command: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=LONGEST_WORD)]], msgspec.Meta(min_length=1, max_length=MOST_WORDS)
    ]
    """Its words; the first one is `python` or a file of the bundle."""
    env: Variables = {}
    """Variables in addition to those that each copy has."""
    timeout: Timeout = 0
    """Seconds after which it is killed; 0: none."""


class EndCopy(Message, tag=True, frozen=True):
    """Kill this copy, whose result is not needed. It is answered by `CopyExited`, unless that was said already."""

    index: CopyIndex
    attempt: Count


class ReportCopy(Message, tag=True, frozen=True):
    """Say what you do: `CopyStarted` when a copy runs, `CopyExited` when the last one ended, `NoCopy` without one.

    A client says it that takes the place of one that died.
    """


class SendOutputs(Message, tag=True, frozen=True):
    """Send the files of the copy that ended last. An earlier transfer is ended."""

    index: CopyIndex
    attempt: Count
    request: Count
    """Stands in all that is sent for it: what an earlier request still had on its way can be told apart."""
    outputs: Patterns
    """A file comes home when its name below AXON_OUT fits one of these; `*` also matches slashes."""


class NoCopy(Message, tag=True, frozen=True):
    """No copy was begun here."""


class CopyStarted(Message, tag=True, frozen=True):
    """The command runs."""

    index: CopyIndex
    attempt: Count


class CopyExited(Message, tag=True, frozen=True):
    """The command is over, and with it all processes of its group."""

    index: CopyIndex
    attempt: Count
    ended: EndedBy
    """The cause of its end."""
    code: Annotated[int, msgspec.Meta(ge=-128, le=255)]
    """Its exit code; below 0: the number of the signal that killed it."""
    seconds: Seconds
    """From its start to its end."""
    cpu_seconds: Seconds
    """Processor time of the command and of all processes that it waited for, by the worker's word."""
    most_memory: Annotated[int, msgspec.Meta(ge=0, le=2**50)]
    """Bytes: the most that one of these processes held."""
    reason: PlainText = ""
    """Why it could not be started."""

    @property
    def good(self) -> bool:
        """Whether its files are worth having."""
        return self.ended == "itself" and self.code == 0


ToWorkerRun = BeginCopy | EndCopy | ReportCopy | SendOutputs
FromWorkerRun = NoCopy | CopyStarted | CopyExited | OutputMessage
