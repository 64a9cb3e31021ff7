"""What one DHT node holds for others: signed rows only, each where it belongs, within bounds, until they expire (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

TOKEN_BYTES = 8


@dataclass(frozen=True)
class StoreLimits:
    """How much a node holds."""

    keys: int = 20_000
    bytes: int = 16 * 1024 * 1024
    rows_a_set: int = 512
    split_above: int = 256
    """A set with more rows says so: writers go one bit deeper, readers too."""
    rows_a_network: int = 16
    """Of one source network (/24, IPv6 /48) in one set."""
    rows_a_signer: int = 64
    """Of one peer, under all keys together."""
    puts_a_second: float = 50.0
    """Of one IP address."""


class Outcome(Enum):
    """What became of a row that somebody wants to be held."""

    STORED = "stored"
    OLDER = "older"
    """A newer one is here."""
    SPLIT = "split"
    """The set is crowded: put it one bit deeper. It may be held here as well, for this time."""
    FULL = "full"
    """No room, in all or for this sender; another holder may have some."""
    REFUSED = "refused"
    """It breaks a rule: see the reason."""


@dataclass(frozen=True)
class PutResult:
    """An outcome, and in a few words why."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True)
class Page:
    """Some of the rows under a key, in the order of `keys.page_order`."""

    rows: list[bytes]
    """Signed compact rows, withdrawn ones too."""
    split: bool
    """Whether the set is crowded: more rows stand one bit deeper."""
    total: int
    """How many rows are under the key here."""


class RecordStore:
    """Rows by key and signer. Times are Unix seconds; `secret` makes the tokens and never leaves."""

    def __init__(self, secret: bytes, limits: StoreLimits = StoreLimits()) -> None:  # noqa: B008
        raise NotImplementedError

    def __len__(self) -> int:
        """How many rows are held."""
        raise NotImplementedError

    def token_for(self, host: str, now: float) -> bytes:
        """8 bytes that let `host` put rows here for the next 5 to 10 minutes: it must have heard our answer."""
        raise NotImplementedError

    def put(self, key: bytes, depth: int, data: bytes, *, token: bytes, source: str, now: float) -> PutResult:
        """Hold a signed compact row under `key`, which is the row's own (`depth` 0) or an index key at `depth` bits.

        Of two rows of a peer the higher sequence stays, of two with the same sequence the one with the lower SHA-256.
        Never raises, whatever the bytes are.
        """
        raise NotImplementedError

    def get(self, key: bytes, start: bytes, room: int, now: float) -> Page:
        """The rows under `key` from `start` on (as `keys.page_order` orders them, round and round), in `room` bytes.

        A reader begins at a chance place and goes on from the last row's place; all holders have the same order.
        """
        raise NotImplementedError

    def expire(self, now: float) -> int:
        """Drop what has expired; how many rows that were."""
        raise NotImplementedError
