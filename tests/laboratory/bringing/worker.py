"""The program in the sandbox: hashes the blob that the client names."""

import hashlib
import sys
from pathlib import Path
from typing import Annotated

import msgspec

from axonp2p.sandbox.inside import Inside, apply_limits
from axonp2p.sandbox.messages import Control, Start, Started
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

Hex = Annotated[str, msgspec.Meta(max_length=64)]


class HashBlob(Message, tag=True, frozen=True):
    name: Hex


class BlobHashed(Message, tag=True, frozen=True):
    sha256: Hex


if __name__ == "__main__":
    inside = Inside(int(sys.argv[1]))
    while True:
        message, payload = inside.receive()
        if isinstance(message, Start):
            apply_limits(message)
            inside.send(Started())
        elif isinstance(message, Control):
            order: HashBlob = decode(split_frame(payload).header, HashBlob, HEADER_LIMIT)
            with Path("/blobs", order.name).open("rb") as file:
                answer = BlobHashed(sha256=hashlib.file_digest(file, "sha256").hexdigest())
            inside.send(Control(), pack_frame(answer))
