"""A real program of ours that says what is nearly right: its questions, its answers and its frames are mutated.

    python -m tests.laboratory.nearly_right SEED ONE_IN tracker.main run ...

One message in `ONE_IN` is changed, replaced by another of its type, left out, said twice, or said later than the next.
Whoever is spoken to must neither crash nor hang; what becomes of this program is of no interest.
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from axonp2p.transport.http import http_caller, http_replies
from axonp2p.transport.sessions import session
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.frame import pack_frame
from tests.laboratory.message_values import CannotBuild, Values
from tests.laboratory.mutations import mutated

FIRST_S = 8.0
"""For so long it tells the truth, so that it is taken in."""


class NearlyRight:
    """Decides which message is wrong, and how."""

    def __init__(self, seed: int, one_in: int) -> None:
        self._chance = random.Random(seed)
        self._values = Values(self._chance, time.time())
        self._one_in = one_in
        self._from = time.monotonic() + FIRST_S
        self._late: bytes = b""

    def message(self, message: Message) -> bytes:
        """Instead of `encode`."""
        if not self._now():
            return encode(message)
        if self._chance.random() < 0.3:
            with suppress(CannotBuild, TypeError, ValueError):  # then it is said as it was
                message = self._values.message(type(message))
        return mutated(self._chance, encode(message))

    def frame(self, message: Message, payload: bytes | memoryview = b"") -> bytes:
        """Instead of `pack_frame`."""
        plain = pack_frame(message, payload)
        if not self._now():
            return plain
        what = self._chance.randrange(8)
        if what == 0:
            said, self._late = self._late or plain, plain
            return said
        if what == 1 and len(payload):
            return pack_frame(message, mutated(self._chance, bytes(payload))[: 2**20])
        if what == 2:
            return plain[: self._chance.randrange(len(plain))]
        if what == 3:
            return pack_frame(message, bytes(payload) + b"more" if len(payload) < 2**19 else b"")
        header = self.message(message)[: 2**16]
        return len(header).to_bytes(4) + header + bytes(payload)

    def _now(self) -> bool:
        return time.monotonic() > self._from and self._chance.randrange(self._one_in) == 0


def main() -> None:
    """Put it in the program's way, then run that."""
    seed, one_in, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    lies = NearlyRight(seed, one_in)
    places: list[tuple[Any, str, Callable[..., bytes]]] = [
        (http_caller, "encode", lies.message),
        (http_replies, "encode", lies.message),
        (session, "pack_frame", lies.frame),
    ]
    for module, name, instead in places:
        assert hasattr(module, name)
        setattr(module, name, instead)
    sys.argv = [program, *sys.argv[4:]]
    importlib.import_module(program).main()


if __name__ == "__main__":
    main()
