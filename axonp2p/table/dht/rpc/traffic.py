"""The traffic in and out, by kind of datagram: for metrics, `axon doctor`, and tests that a quiet network is quiet."""

from __future__ import annotations

from collections import Counter


class Traffic:
    """Datagrams and bytes by name (`find`, `find-answer`, `find-again` for a second sending...)."""

    def __init__(self) -> None:
        self.messages_out: Counter[str] = Counter()
        self.messages_in: Counter[str] = Counter()
        self.bytes_out: Counter[str] = Counter()
        self.bytes_in: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        """The datagrams that were dropped on arrival: malformed, from a wrong address, or too much from one address."""

    def totals(self) -> dict[str, int]:
        """Datagrams and bytes in all, for a log line."""
        return {
            "sent": self.messages_out.total(),
            "sent_bytes": self.bytes_out.total(),
            "heard": self.messages_in.total(),
            "heard_bytes": self.bytes_in.total(),
            "refused": self.refusals.total(),
        }

    def sent(self, name: str, size: int) -> None:
        """A datagram left."""
        self.messages_out[name] += 1
        self.bytes_out[name] += size

    def heard(self, name: str, size: int) -> None:
        """A sound datagram arrived."""
        self.messages_in[name] += 1
        self.bytes_in[name] += size

    def refused(self, name: str) -> None:
        """A datagram was dropped."""
        self.refusals[name] += 1
