"""Hostile jobs that break the rules of the channel to the daemon."""

from __future__ import annotations

import array
import os
import socket
import struct
import sys
import time

import msgspec

from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import Control, Started, ToMember
from axonp2p.wire.frame import FRAME_LIMIT, HEADER_LIMIT, pack_frame
from tests.system.sandbox.hostile.jobs import ALIVE, BY_ITSELF, hostile

RUBBISH = ("MalformedMessage",)
TOO_LARGE = ("MessageTooLarge",)
CLOSED = ("Unreachable",)


def write(data: bytes) -> None:
    """Past `Inside`, straight into the channel, as far as it takes it."""
    view = memoryview(data)
    while view:
        view = view[os.write(int(sys.argv[1]), view) :]


def frame(header: bytes, payload: bytes = b"") -> bytes:
    """A frame as in wire.frame around any header."""
    content = struct.pack(">I", len(header)) + header + payload
    return struct.pack(">I", len(content)) + content


def frame_of(message: ToMember | Control) -> bytes:
    """What `Inside` would write."""
    packed = pack_frame(message)
    return struct.pack(">I", len(packed)) + packed


def stay() -> None:
    while True:
        time.sleep(600)


@hostile(ALIVE, heard=TOO_LARGE)
def huge_frame(channel: Inside) -> None:
    """tries to make the daemon take memory for a message of 4 GB"""
    write(b"\xff" * 65536)
    stay()


@hostile(ALIVE, heard=TOO_LARGE)
def slightly_too_large_frame(channel: Inside) -> None:
    """tries a message of one byte more than is allowed"""
    write(struct.pack(">I", FRAME_LIMIT + 1))
    stay()


@hostile(ALIVE, heard=TOO_LARGE)
def empty_frame(channel: Inside) -> None:
    """tries a message without a single byte"""
    write(struct.pack(">I", 0))
    stay()


@hostile(ALIVE, heard=("",))
def announced_and_not_sent(channel: Inside) -> None:
    """tries to keep the daemon waiting, and its memory taken, for a message that never comes"""
    write(struct.pack(">I", FRAME_LIMIT) + b"x")
    stay()


@hostile(BY_ITSELF, heard=CLOSED)
def cut_off_frame(channel: Inside) -> None:
    """tries to end in the middle of a message"""
    write(struct.pack(">I", 1000) + b"x" * 10)


@hostile(ALIVE, heard=RUBBISH)
def garbage(channel: Inside) -> None:
    """tries bytes that mean nothing"""
    write(frame(os.urandom(64).replace(b"\x80", b"\x81"), os.urandom(1000)))
    stay()


@hostile(ALIVE, heard=RUBBISH + TOO_LARGE)
def header_past_its_frame(channel: Inside) -> None:
    """tries a message whose head is said to be longer than all of it"""
    write(struct.pack(">II", 8, 2**31) + b"axon")
    stay()


@hostile(ALIVE, heard=RUBBISH + TOO_LARGE)
def long_header(channel: Inside) -> None:
    """tries a message with a head of more than the allowed length"""
    write(frame(msgspec.msgpack.encode({"type": "Control", "x": "y" * HEADER_LIMIT})))
    stay()


@hostile(ALIVE, heard=RUBBISH)
def nested_header(channel: Inside) -> None:
    """tries to exhaust the daemon's stack with lists in lists in lists"""
    write(frame(b"\x91" * 4000 + b"\x90"))
    stay()


@hostile(ALIVE, heard=RUBBISH)
def false_sizes(channel: Inside) -> None:
    """tries to make the daemon take memory for a list of four thousand million things"""
    write(frame(b"\xdd\xff\xff\xff\xff"))
    stay()


@hostile(ALIVE, heard=RUBBISH)
def message_of_the_daemon(channel: Inside) -> None:
    """tries to send what only the daemon may say"""
    write(frame(msgspec.msgpack.encode({"type": "BundleReady"})))
    stay()


@hostile(ALIVE, heard=RUBBISH)
def made_up_message(channel: Inside) -> None:
    """tries a kind of message that there is not"""
    write(frame(msgspec.msgpack.encode({"type": "GiveMeTheKey"})))
    stay()


@hostile(ALIVE, heard=RUBBISH)
def false_rank(channel: Inside) -> None:
    """tries to write to a member that cannot be"""
    write(frame(msgspec.msgpack.encode({"type": "ToMember", "rank": -1})))
    stay()


@hostile(ALIVE, heard=("Started",))
def started_twice(channel: Inside) -> None:
    """tries to say for a second time that it has started"""
    channel.send(Started())
    stay()


@hostile(ALIVE, heard=("ToMember",))
def flood_of_messages(channel: Inside) -> None:
    """tries to fill the daemon's memory with small messages that it has no time for"""
    piece = frame_of(ToMember(rank=0)) * 1000
    while True:
        write(piece)


@hostile(ALIVE, heard=("Control",))
def flood_of_large_messages(channel: Inside) -> None:
    """tries to fill the daemon's memory with large messages"""
    while True:
        channel.send(Control(), bytes(2**20))


@hostile(ALIVE, heard=("",))
def byte_by_byte(channel: Inside) -> None:
    """tries to keep the daemon busy with a message that comes a byte at a time"""
    write(struct.pack(">I", 2**20))
    while True:
        write(b"\0")
        time.sleep(0.001)


@hostile(ALIVE, heard=CLOSED)
def closed_channel(channel: Inside) -> None:
    """tries to live on when it has closed the channel"""
    channel.close()
    stay()


@hostile(ALIVE, heard=("", *CLOSED))
def half_closed_channel(channel: Inside) -> None:
    """tries to close only its own half of the channel"""
    with socket.socket(fileno=os.dup(int(sys.argv[1]))) as end:
        end.shutdown(socket.SHUT_WR)
    stay()


@hostile(ALIVE, heard=("",), sent_to=True)
def never_reading(channel: Inside) -> None:
    """tries to fill the daemon's memory by never taking what it sends"""
    stay()


@hostile(ALIVE, BY_ITSELF, heard=("Control", *CLOSED))
def passed_descriptors(channel: Inside) -> None:
    """tries to fill the daemon's table of open files by passing it descriptors"""
    passed = array.array("i", [0] * 200)
    packed = frame_of(Control())
    with socket.socket(fileno=os.dup(int(sys.argv[1]))) as end:
        for _ in range(50):
            try:
                end.sendmsg([packed], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            except OSError:
                write(packed)
    stay()
