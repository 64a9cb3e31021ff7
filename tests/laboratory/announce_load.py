"""Announces as real peers make them, from a new port each time, and what they cost the program that answers.

A peer announces every 5 to 20 minutes, so no connection of the last time is left: by HTTPS each announce begins with a
TLS handshake, by datagram with a question for a token. The answering process' time is read from the kernel.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from axonp2p.table.announce_datagrams import (
    NO_TOKEN,
    AnnounceQuestion,
    DatagramTicket,
    TokenTold,
    Yes,
    read_answer,
    write_question,
)

TOGETHER = 32
"""Announces under way at once, each from an address of its own: a tracker takes only so many a second from one."""
PATIENCE_S = 20.0

Cost = dict[str, float]


def processor_time(pid: int) -> float:
    """Seconds that a process has used, in its own code and in the kernel."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


@dataclass(frozen=True)
class Target:
    """A program that answers on loopback."""

    port: int
    pid: int


# --- HTTPS


async def by_https(target: Target, bodies: list[bytes], path: str, *, kept: bool = False) -> Cost:
    """POST all of them, each over a new connection, or with `kept` over connections that stay open."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: "
    waiting = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in reversed(bodies)]
    times: list[float] = []
    began, used = time.monotonic(), processor_time(target.pid)
    await asyncio.gather(*(_line(target.port, context, number, waiting, times, kept) for number in range(TOGETHER)))
    return _cost(target, began, used, times)


async def _line(
    port: int, context: ssl.SSLContext, number: int, waiting: list[bytes], times: list[float], kept: bool
) -> None:
    while waiting:
        over = asyncio.get_running_loop().create_future()
        asked = waiting if kept else [waiting.pop()]
        start = time.monotonic()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda asked=asked, start=start, over=over: _Line(asked, start, times, over),  # type: ignore[misc]
            "127.0.0.1", port, ssl=context, local_addr=(f"127.0.1.{number + 1}", 0),
        )  # fmt: skip
        await over
        transport.abort()


class _Line(asyncio.Protocol):
    """One connection: sends the next request as soon as an answer is whole. Cheaper than any HTTP client."""

    def __init__(self, requests: list[bytes], start: float, times: list[float], over: asyncio.Future[None]) -> None:
        self.requests, self.times, self.over, self.sent = requests, times, over, start
        self.heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.next()

    def next(self) -> None:
        if self.requests:
            self.transport.write(self.requests.pop())
        elif not self.over.done():
            self.over.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.heard += data
        head, found, body = self.heard.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            return
        if head[9:12] != b"200":
            self.over.set_exception(ConnectionError(f"an answer with {head[9:12].decode()}"))
            return
        self.times.append(time.monotonic() - self.sent)
        self.heard, self.sent = b"", time.monotonic()
        self.next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(error or ConnectionError("the server hung up"))


# --- datagrams


Say = Callable[[bytes | None], bytes | None]
"""What to send next: after nothing, or after an answer; nothing once it is over."""


def announce(ticket: DatagramTicket, body: bytes) -> Say:
    """The whole conversation of one announce, with its token first."""
    nonce = os.urandom(16)
    question = AnnounceQuestion(nonce, ticket.ticket, NO_TOKEN, body)

    def say(heard: bytes | None) -> bytes | None:
        if heard is None:
            return write_question(question)
        answer = read_answer(heard, nonce, ticket.key)
        if isinstance(answer, TokenTold):
            return write_question(question._replace(token=answer.token))
        if not isinstance(answer, Yes):
            raise ConnectionError(f"the tracker says {answer}")
        return None

    return say


def once(datagram: bytes) -> Say:
    """One datagram, and any answer to it."""
    return lambda heard: datagram if heard is None else None


def by_datagram(target: Target, talks: list[Say], a_second: float = 0.0) -> Cost:
    """Hold all of these conversations, each from a new socket; `a_second` of them begin, 0: as fast as they end."""
    times: list[float] = []
    began, used = time.monotonic(), processor_time(target.pid)
    open_now: dict[int, tuple[socket.socket, Say, float]] = {}
    free = list(range(TOGETHER))
    poll, waiting, begun, places = select.poll(), list(reversed(talks)), 0, {}
    while waiting or open_now:
        while waiting and free and (not a_second or begun < (time.monotonic() - began) * a_second):
            line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            place = free.pop()
            line.bind((f"127.0.1.{place + 1}", 0))
            line.connect(("127.0.0.1", target.port))
            say = waiting.pop()
            begun += 1
            open_now[line.fileno()], places[line.fileno()] = (line, say, time.monotonic()), place
            poll.register(line, select.POLLIN)
            line.send(say(None) or b"")
        paused = bool(a_second and waiting and free)
        found = poll.poll(1 if paused else PATIENCE_S * 1000)
        if not found and not paused:
            raise ConnectionError(f"{len(open_now)} datagrams were not answered")
        for number, _ in found:
            line, say, start = open_now[number]
            answer = say(line.recv(2048))
            if answer is not None:
                line.send(answer)
                continue
            times.append(time.monotonic() - start)
            poll.unregister(line)
            del open_now[number]
            free.append(places.pop(number))
            line.close()
    return _cost(target, began, used, times)


def rubbish(target: Target, datagram: bytes, count: int, sign_of_life: bytes) -> float:
    """Microseconds of processor time for one datagram that gets no answer. After every few of them something that is
    answered is sent, so that none is lost in a full buffer; what that costs is measured and taken off."""
    costs = []
    for together in (TOGETHER, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.settimeout(PATIENCE_S)
            line.connect(("127.0.0.1", target.port))
            used = processor_time(target.pid)
            for _ in range(count // TOGETHER):
                for _ in range(together):
                    line.send(datagram)
                line.send(sign_of_life)
                line.recv(2048)
            costs.append(processor_time(target.pid) - used)
    return (costs[0] - costs[1]) / count * 1e6


def _cost(target: Target, began: float, used: float, times: list[float]) -> Cost:
    seconds, processor = time.monotonic() - began, processor_time(target.pid) - used
    times.sort()
    return {
        "a_second": len(times) / seconds, "cpu_us": processor / len(times) * 1e6,
        "p50_ms": times[len(times) // 2] * 1000, "p99_ms": times[len(times) * 99 // 100] * 1000,
    }  # fmt: skip
