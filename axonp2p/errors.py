"""The error family: one base, and below it one branch for each answer to "whose fault is it?".

Only `PeerMisbehaved` may ever cost a peer its reputation. Each class has a stable code (AX-nnn, documented in
docs/errors.md) and the exit code of a program that ends with it (docs/errors.md, "Exit codes").
Foreign exceptions are translated where they enter; past that door only this family travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class AxonError(Exception):
    """The event (`message`), why (`cause`), and the command or change that mends it (`fix`)."""

    code: ClassVar[str] = "AX-001"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, cause: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.fix = fix
        self.facts: Mapping[str, str] = MappingProxyType({})
        """The values that programs read beside it, by name, such as the `job` that failed."""

    def __str__(self) -> str:
        """All three, a line each: what a notebook or a traceback shows of it."""
        cause = f"\ncause: {self.cause}" if self.cause else ""
        return f"{self.message}{cause}\nfix: {self.fix}" if self.fix else f"{self.message}{cause}"

    @property
    def in_a_line(self) -> str:
        """The message and, in brackets, its cause; for a line among others."""
        return f"{self.message} ({self.cause})" if self.cause else self.message


# --- the person's settings, files or command line -------------------------------------------------


class SettingsError(AxonError):
    """A setting, option or file of this machine's owner is wrong."""

    code = "AX-601"
    exit_code = 9


class UsageWrong(SettingsError):
    """A command, option or argument that there is not, or that lacks something."""

    code = "AX-621"
    exit_code = 2


class WouldOverwrite(SettingsError):
    """A file that was asked for is there already."""

    code = "AX-622"
    exit_code = 6


class PortTaken(SettingsError):
    """Another program listens where this one should."""

    code = "AX-602"
    exit_code = 6


class KeyFileUnsafe(SettingsError):
    """The key file can be read by others, or does not hold a key."""

    code = "AX-412"
    exit_code = 4


class SandboxMissing(SettingsError):
    """bubblewrap cannot be had, so a stranger's code is not run."""

    code = "AX-605"
    exit_code = 6


class NotInstalled(SettingsError):
    """A library that comes with an extra of axonp2p is not installed here."""

    code = "AX-604"
    exit_code = 6


class WrongSystem(SettingsError):
    """The program does not run on this operating system."""

    code = "AX-608"
    exit_code = 6


class AlreadyRunning(SettingsError):
    """The same program already runs with this home."""

    code = "AX-606"
    exit_code = 6


class JobFileWrong(SettingsError):
    """job.toml, or a file that it names, is missing or says something impossible."""

    code = "AX-901"
    exit_code = 9


class PackagesWrong(JobFileWrong):
    """A package that `[packages]` asks for cannot be brought as a wheel, or not sent; `message` names it."""

    code = "AX-903"


class VersionsClash(PackagesWrong):
    """No versions go together."""

    code = "AX-904"


class LogDamaged(SettingsError):
    """The log in a tracker's database is not what its own hashes and heads say; `message` names the entry."""

    code = "AX-607"
    exit_code = 4


class NotFound(SettingsError):
    """A job, peer or file that was asked for by name is not there."""

    code = "AX-501"
    exit_code = 5


class Ambiguous(NotFound):
    """The beginning of an id fits several; `message` names them."""

    code = "AX-502"


# --- nobody's fault: the network ------------------------------------------------------------------


class Unreachable(AxonError):
    """No route, no answer in time, or the line was lost midway."""

    code = "AX-303"
    exit_code = 3


class NoDaemon(Unreachable):
    """No peer runs on this computer, so there is nobody to ask."""

    code = "AX-301"


class TrackerUnreachable(Unreachable):
    """None of the trackers answered."""

    code = "AX-302"


class DhtSilent(Unreachable):
    """None of the known DHT nodes answers over UDP."""

    code = "AX-304"


class NotAtRelay(Unreachable):
    """The peer holds no connection to this relay, or did not answer over it."""

    code = "AX-305"


class IndexUnreachable(Unreachable):
    """The package index did not answer, so the packages of a job cannot be resolved."""

    code = "AX-306"


class SwarmSplit(Unreachable):
    """Trackers that should share one table see different peers."""

    code = "AX-413"


# --- a polite no ----------------------------------------------------------------------------------


class Refused(AxonError):
    """The other side understood and said no; `message` carries its reason."""

    code = "AX-400"
    exit_code = 4


class TokenRefused(Refused):
    """A reservation token is not valid here: wrong signature, time, peer, key or address."""

    code = "AX-403"


class StaleRow(Refused):
    """An announce carries a sequence number that is not above the one already known, or is expired."""

    code = "AX-404"


class VersionMismatch(Refused):
    """The two sides speak different protocol versions."""

    code = "AX-405"


class Busy(Refused):
    """Every slot is promised to somebody."""

    code = "AX-406"
    exit_code = 8

    def __init__(self, message: str, *, cause: str = "", fix: str = "", wait_s: float = 5.0) -> None:
        """`wait_s`: seconds after which it may be worth asking again; HTTP tells them as Retry-After."""
        super().__init__(message, cause=cause, fix=fix)
        self.wait_s = wait_s


class TooOften(Busy):
    """This one caller asks for more than its share; others are served."""

    code = "AX-407"


class QuotaUsed(Busy):
    """A relay has carried as much as it carries for one peer, for one caller or for everybody."""

    code = "AX-408"


class ClockWrong(Refused):
    """The clocks of two sides differ by more than they may."""

    code = "AX-411"


class NobodyFits(Refused):
    """Too few peers meet the need of a job."""

    code = "AX-801"
    exit_code = 8


# --- the other side broke a rule ------------------------------------------------------------------


class PeerMisbehaved(AxonError):
    """The other side broke the protocol."""

    code = "AX-200"
    exit_code = 4


class MalformedMessage(PeerMisbehaved):
    """Bytes that are not the message they should be."""

    code = "AX-201"


class MessageTooLarge(PeerMisbehaved):
    """More bytes than the cap of this message."""

    code = "AX-202"


class BadSignature(PeerMisbehaved):
    """A signature that does not fit its signer, its purpose or its content."""

    code = "AX-203"


class LogForked(PeerMisbehaved):
    """A tracker signed two heads of its log that cannot both be true: it was rewritten, or shows several."""

    code = "AX-204"


# --- the job --------------------------------------------------------------------------------------


class JobFailed(AxonError):
    """The job ended without a result; `message` says at which peer and why."""

    code = "AX-101"
    exit_code = 1


class TaskMistake(JobFailed):
    """The task's own code raised; `cause` is the user's traceback."""

    code = "AX-102"


class LimitReached(JobFailed):
    """A job went over one of its limits; `message` names the limit."""

    code = "AX-103"


class CopiesFailed(JobFailed):
    """A job has all its results, and some of its copies failed."""

    code = "AX-104"


class CallsFailed(JobFailed):
    """A job has all its results, and some of them are errors."""

    code = "AX-107"


class TaskError(JobFailed):
    """A function raised an exception at a peer: its class, its message and its traceback, as text."""

    code = "AX-110"

    def __init__(self, kind: str, message: str = "", traceback: str = "", *, cause: str = "", fix: str = "") -> None:
        """`kind` is the name of the exception's class; of an exception itself nothing travels but text.

        It can be made of a message alone too, as every error of the family: strangers name errors by their codes.
        """
        super().__init__(f"{kind}: {message}" if message else kind, cause=traceback or cause, fix=fix)
        self.kind = kind
        self.reason = message
        self.traceback = traceback

    def __reduce__(self) -> tuple[type[TaskError], tuple[str, str, str]]:
        return TaskError, (self.kind, self.reason, self.traceback)


class NotPlain(JobFailed):
    """A function returned something that cannot travel back: results are data, never objects with code."""

    code = "AX-108"


class NotPicklable(JobFailed):
    """A function or an argument cannot be pickled, so it cannot be sent."""

    code = "AX-109"


class JobOver(AxonError):
    """The job is over, so it can be neither paused, cancelled nor resumed."""

    code = "AX-105"
    exit_code = 6


class NoResultYet(AxonError):
    """The job still runs: there is nothing to fetch yet."""

    code = "AX-106"
    exit_code = 7


def error_classes() -> dict[str, type[AxonError]]:
    """Every class of the family by its code, for the wire (a code comes back as its class) and the docs."""
    found: dict[str, type[AxonError]] = {}
    waiting: list[type[AxonError]] = [AxonError]
    while waiting:
        error = waiting.pop()
        found[error.code] = error
        waiting.extend(error.__subclasses__())
    return found
