"""The rules of a relay: who may register, which streams are opened, and how fast and how long they run (pure).

Every number is counted for two: the peer that is reached, and the caller's address. So nobody uses up a relay for
others, neither by being called nor by calling. Times are seconds of one clock that never goes back.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from axonp2p.errors import AxonError, Busy, NotAtRelay, QuotaUsed, TooOften
from axonp2p.holdings import Bounds, Holdings
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.tunnel.messages import RelayLimits

HOUR_S = 3600.0
MOST_REMEMBERED = 16_384
"""Peers and callers whose bytes and openings are remembered."""
BURST_S = 0.25
"""So much of unused time a relay with a rate makes up for."""


@dataclass(eq=False)
class Stream:
    """One stream that was let in."""

    peer: PeerId
    caller: str
    opened_at: float
    moved_at: float
    bytes: int = 0


@dataclass
class _Account:
    """The bytes that one peer or one caller used."""

    hour_from: float
    bytes: int = 0


@dataclass
class Totals:
    """Since the start, for metrics and status."""

    streams: int = 0
    bytes: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """By the code of the error."""


class Admission:
    """The books of one relay.

    A registration keeps its place once a stream was opened to its peer, or where the peer is known otherwise; others
    give way to newcomers. So keys that were made up to fill a relay are only as many as nobody else wants.
    """

    def __init__(self, limits: RelayLimits, is_known: Callable[[PeerId], bool] = lambda _: False) -> None:
        """`is_known`: whether a peer has a place of its own here, such as a living row at a tracker."""
        self.limits = limits
        self._is_known = is_known
        self.totals = Totals()
        self.streams: set[Stream] = set()
        bounds = Bounds(limits.peers, limits.peers_of_source, 1, limits.registered_s)
        self._peers: Holdings[PeerId] = Holdings("registrations", bounds)
        self._accounts: OrderedDict[str, _Account] = OrderedDict()
        self._openings = RateLimit(limits.opened_a_second, limits.opened_at_once, MOST_REMEMBERED)
        self._next_byte = float("-inf")

    @property
    def peers(self) -> int:
        """How many are registered."""
        return len(self._peers)

    def register(self, peer: PeerId, source: str = "", now: float = 0.0) -> list[PeerId]:
        """A peer of that household, which proved its key, wants to be carried to; the peers that give way to it.

        Raises `QuotaUsed` when there are too many of its household or in all.
        """
        for one in self._peers.idle_for(0, now):
            if self._is_known(one):
                self._peers.works(one)
        try:
            return self._peers.take(peer, source, peer, now)
        except TooOften as error:
            text = f"this relay holds as many peers of {source} as it may"
            raise self._counted(QuotaUsed(text, fix="ask another relay", wait_s=error.wait_s)) from error
        except Busy as error:
            text = "this relay holds as many peers as it may"
            raise self._counted(QuotaUsed(text, fix="ask another relay", wait_s=error.wait_s)) from error

    def leave(self, peer: PeerId) -> None:
        """It is registered no more."""
        self._peers.release(peer)

    def open(self, peer: PeerId, caller: str, now: float) -> Stream:
        """The stream from that caller to that peer.

        Raises `NotAtRelay` for a peer that is not registered, `TooOften` for a caller who opens too many in a short
        time, `QuotaUsed` when streams or bytes are used up.
        """
        if peer not in self._peers:
            raise self._counted(NotAtRelay(f"peer {short(peer)} holds no connection to this relay"))
        try:
            self._openings.charge(caller, now)
        except TooOften as error:
            raise self._counted(error) from None
        self._check_streams(peer, caller)
        for name in (_of_peer(peer), _of_caller(caller)):
            self._check_bytes(name, now)
        stream = Stream(peer, caller, now, now)
        self.streams.add(stream)
        self._peers.works(peer)
        self.totals.streams += 1
        return stream

    def close(self, stream: Stream) -> None:
        """It carries no more. Harmless when it was closed."""
        self.streams.discard(stream)

    def carried(self, stream: Stream, count: int, now: float) -> float:
        """These bytes came in; how long to read no more of that end, in seconds."""
        stream.bytes += count
        stream.moved_at = now
        self.totals.bytes += count
        for name in (_of_peer(stream.peer), _of_caller(stream.caller)):
            self._account(name, now).bytes += count
        rate = self.limits.bytes_a_second
        if not rate:
            return 0.0
        self._next_byte = max(self._next_byte, now - BURST_S) + count / rate
        return max(0.0, self._next_byte - now)

    def over(self, stream: Stream, now: float) -> str:
        """Why this stream is to end now; empty while it may go on."""
        limits = self.limits
        if now - stream.opened_at >= limits.stream_s:
            return f"a stream lasts {limits.stream_s:.0f} s at the most"
        if now - stream.moved_at >= limits.idle_s:
            return f"nothing moved for {limits.idle_s:.0f} s"
        for name in (_of_peer(stream.peer), _of_caller(stream.caller)):
            if self._is_used_up(name, now):
                return "the quota of bytes is used up"
        return ""

    def _check_streams(self, peer: PeerId, caller: str) -> None:
        limits, streams = self.limits, self.streams
        of_peer = sum(stream.peer == peer for stream in streams)
        of_caller = sum(stream.caller == caller for stream in streams)
        if len(streams) >= limits.streams:
            raise self._counted(QuotaUsed("this relay carries as many streams as it may", fix="try another relay"))
        if of_peer >= limits.streams_of_peer:
            raise self._counted(QuotaUsed(f"{of_peer} streams to peer {short(peer)} are open", fix="try another relay"))
        if of_caller >= limits.streams_of_caller:
            raise self._counted(QuotaUsed(f"{of_caller} streams from {caller} are open", fix="close some of them"))

    def _check_bytes(self, name: str, now: float) -> None:
        if self._is_used_up(name, now):
            wait = max(1.0, self._account(name, now).hour_from + HOUR_S - now)
            text = f"{self.limits.hourly_bytes} bytes within an hour were carried for {name}"
            raise self._counted(QuotaUsed(text, fix=f"try another relay, or this one in {wait:.0f} s", wait_s=wait))

    def _is_used_up(self, name: str, now: float) -> bool:
        return 0 < self.limits.hourly_bytes <= self._account(name, now).bytes

    def _account(self, name: str, now: float) -> _Account:
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = _Account(now)
            if len(self._accounts) > MOST_REMEMBERED:
                self._accounts.popitem(last=False)
        else:
            self._accounts.move_to_end(name)
        if now - account.hour_from >= HOUR_S:
            account.hour_from, account.bytes = now, 0
        return account

    def _counted(self, error: AxonError) -> AxonError:
        self.totals.refused[error.code] += 1
        return error


def _of_peer(peer: PeerId) -> str:
    return f"peer {peer}"


def _of_caller(caller: str) -> str:
    return f"caller {caller}"
