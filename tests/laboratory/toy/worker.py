"""The program in the sandbox: squares the number that the client sends."""

import sys

from axonp2p.sandbox.inside import Inside, apply_limits
from axonp2p.sandbox.messages import Control, Start, Started
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from axonp2p.wire.quantities import Count


class Square(Message, tag=True, frozen=True):
    number: Count


if __name__ == "__main__":
    inside = Inside(int(sys.argv[1]))
    while True:
        message, payload = inside.receive()
        if isinstance(message, Start):
            apply_limits(message)
            inside.send(Started())
        elif isinstance(message, Control):
            order: Square = decode(split_frame(payload).header, Square, HEADER_LIMIT)
            inside.send(Control(), pack_frame(Square(number=order.number**2)))
