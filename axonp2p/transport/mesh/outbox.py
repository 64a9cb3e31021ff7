"""Messages that wait to go to one member, and those that went but may have to go again: no socket, only counting.

A link may be cut with messages under way. Both ends count the messages of each direction over all links of a pair;
whoever comes back says how many it has had, and the sender goes on after that one. So nothing is lost or doubled.
"""

from __future__ import annotations

from collections import deque

from axonp2p.errors import PeerMisbehaved


class LinkOutbox:
    """The messages for one member, in order."""

    def __init__(self) -> None:
        self._gone: deque[bytes | memoryview] = deque()
        self._waiting: deque[bytes | memoryview] = deque()
        self.waiting_bytes = 0
        """Of all messages that wait."""
        self.kept_bytes = 0
        """Of all messages that went and may have to go again."""
        self._first_kept = 0
        """The number of the first message in `_gone`, counted from the first message ever."""
        self._again = 0
        """How many of those that wait have gone before, on a link that was cut."""

    def put(self, payload: bytes | memoryview) -> None:
        """One more message, after all others."""
        self._waiting.append(payload)
        self.waiting_bytes += len(payload)

    def next(self) -> tuple[bytes | memoryview, bool] | None:
        """The next message to send, which is then kept until it was received, and whether it goes for the first time.

        None when none waits.
        """
        if not self._waiting:
            return None
        payload = self._waiting.popleft()
        self.waiting_bytes -= len(payload)
        self._gone.append(payload)
        self.kept_bytes += len(payload)
        first_time = not self._again
        self._again -= not first_time
        return payload, first_time

    @property
    def gone(self) -> int:
        """How many messages have gone, counted from the first ever: the number of the last that `next` gave."""
        return self._first_kept + len(self._gone)

    def received(self, count: int) -> None:
        """The other side has had the first `count` messages for certain: they need not be kept."""
        while self._gone and self._first_kept < count:
            self.kept_bytes -= len(self._gone.popleft())
            self._first_kept += 1

    def resume(self, count: int) -> None:
        """On a new link: the other side has had exactly `count`; the rest of what went out waits again.

        Raises `PeerMisbehaved` when that cannot be: it forgot messages, or claims some that never went out.
        """
        if not self._first_kept <= count <= self.gone:
            raise PeerMisbehaved(
                f"it says that it has had {count} messages",
                cause=f"{self._first_kept} of {self.gone} were surely received",
            )
        self.received(count)
        self._again += len(self._gone)
        self._waiting.extendleft(reversed(self._gone))
        self.waiting_bytes += self.kept_bytes
        self.kept_bytes = 0
        self._gone.clear()
