"""A small program that shows what a line does, run inside of the laboratory's hosts.

probe.py echo PORT                  answers datagrams; takes streams and tells who sent them, and how fast
probe.py knock HOSTS PORT COUNT     datagrams to each in turn: {"answered": ..., "rtt_ms": ..., "ports": ...}
probe.py pour HOST PORT BYTES       a stream: {"address": ..., "bytes": ..., "mbit": ...}
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

_WAIT_S = 0.5
_PIECE = bytes(65536)


def echo(port: int) -> None:
    """Answer whoever comes, one stream at a time."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("0.0.0.0", port))
    streams = socket.create_server(("0.0.0.0", port))
    doors = selectors.DefaultSelector()
    doors.register(datagrams, selectors.EVENT_READ)
    doors.register(streams, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for door, _ in doors.select():
            if door.fileobj is datagrams:
                _, sender = datagrams.recvfrom(2048)
                datagrams.sendto(str(sender[1]).encode(), sender)
            else:
                _drink(*streams.accept())


def _drink(stream: socket.socket, sender: tuple[str, int]) -> None:
    with stream:
        count = len(stream.recv(65536))
        began = time.monotonic()
        drunk = 0
        while piece := stream.recv(1 << 20):
            drunk += len(piece)
        passed = time.monotonic() - began
        answer = {"address": sender[0], "bytes": count + drunk, "mbit": drunk * 8 / passed / 1e6}
        stream.sendall(json.dumps(answer).encode())


def knock(hosts: str, port: int, count: int) -> dict[str, object]:
    """The middle of the round-trip times of those that were answered, and by which ports the others saw us."""
    times, ports = [], set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knocker:
        knocker.settimeout(_WAIT_S)
        for host in hosts.split(",") * count:
            began = time.monotonic()
            try:
                knocker.sendto(b"?", (host, port))
                ports.add(int(knocker.recv(2048)))
            except OSError:  # nobody answers, or the line is down
                continue
            times.append((time.monotonic() - began) * 1000)
    middle = sorted(times)[len(times) // 2] if times else None
    return {"answered": len(times), "rtt_ms": middle, "ports": sorted(ports)}


def pour(host: str, port: int, size: int) -> dict[str, object]:
    """What the other side says of it."""
    try:
        with socket.create_connection((host, port), timeout=3) as stream:
            stream.settimeout(60)
            for _ in range(0, size, len(_PIECE)):
                stream.sendall(_PIECE)
            stream.shutdown(socket.SHUT_WR)
            answer: dict[str, object] = json.loads(stream.recv(65536))
            return answer
    except OSError as error:
        return {"refused": str(error)}


def main() -> None:
    what, *words = sys.argv[1:]
    if what == "echo":
        echo(int(words[0]))
    asked = {"knock": knock, "pour": pour}[what]
    print(json.dumps(asked(words[0], int(words[1]), int(words[2]))))


if __name__ == "__main__":
    main()
