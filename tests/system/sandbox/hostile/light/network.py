"""Attacks over a network: none may be reached, not even this machine's own."""

from __future__ import annotations

import os
import socket

from axonp2p.sandbox.attacks.attack import AttackHeld, AttackTarget, attack
from tests.system.sandbox.hostile.light.outside import socket_in_a_folder

_WAIT_S = 1.0


def _connect(family: int, address: tuple[str, int] | str) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as caller:
        caller.settimeout(_WAIT_S)
        caller.connect(address)
    return f"connected to {address!r}"


def _open(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "opened such a socket"


def _ask(family: int, address: tuple[str, int]) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as caller:
        caller.settimeout(_WAIT_S)
        caller.connect(address)
        caller.send(b"hello")
        return f"was answered {caller.recv(64)!r}"


@attack
def loopback_datagrams(target: AttackTarget) -> str:
    """tries to talk to a program of this machine over UDP"""
    return _ask(socket.AF_INET, ("127.0.0.1", target.port))


@attack
def loopback_six(target: AttackTarget) -> str:
    """tries to connect to this machine over IPv6"""
    return _connect(socket.AF_INET6, ("::ffff:127.0.0.1", target.port))


@attack
def internet(target: AttackTarget) -> str:
    """tries to connect to a machine in the internet"""
    return _connect(socket.AF_INET, ("192.0.2.1", 443))


@attack
def home_network(target: AttackTarget) -> str:
    """tries to reach the router and the machines at home"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        caller.sendto(b"M-SEARCH * HTTP/1.1\r\n\r\n", ("239.255.255.250", 1900))
    return "sent a datagram to all of them"


@attack
def names(target: AttackTarget) -> str:
    """tries to look a name up in the DNS"""
    return f"found {socket.getaddrinfo('example.org', 443)[0][4]}"


@attack
def listening(target: AttackTarget) -> str:
    """tries to listen for callers from outside"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        if len(socket.if_nameindex()) <= 1:
            raise AttackHeld("it listens where nobody can call: there is no network here")
    return "listens"


@attack
def raw_packets(target: AttackTarget) -> str:
    """tries to send packets that it made up itself"""
    return _open(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


@attack
def overheard_packets(target: AttackTarget) -> str:
    """tries to overhear what other machines say to each other"""
    return _open(socket.AF_PACKET, socket.SOCK_RAW, 0x0300)


@attack
def network_settings(target: AttackTarget) -> str:
    """tries to talk to the kernel about network cards and routes (netlink)"""
    return _open(socket.AF_NETLINK, socket.SOCK_RAW, 0)


@attack
def device_events(target: AttackTarget) -> str:
    """tries to hear which devices are plugged in (netlink)"""
    return _open(socket.AF_NETLINK, socket.SOCK_DGRAM, 15)


@attack
def audit_messages(target: AttackTarget) -> str:
    """tries to write into the machine's audit log (netlink)"""
    return _open(socket.AF_NETLINK, socket.SOCK_RAW, 9)


@attack
def virtual_machine_sockets(target: AttackTarget) -> str:
    """tries to call the machine below a virtual one (vsock)"""
    return _open(socket.AF_VSOCK, socket.SOCK_STREAM)


@attack
def kernel_ciphers(target: AttackTarget) -> str:
    """tries to use the kernel's own ciphers, a part of it with many past mistakes"""
    return _open(socket.AF_ALG, socket.SOCK_SEQPACKET)


@attack
def rare_protocols(target: AttackTarget) -> str:
    """tries to make the kernel load code for protocols that hardly anyone uses"""
    refused: OSError | None = None
    # AX.25, X.25, DECnet, ATM, RDS, CAN, TIPC, Bluetooth, NFC, XDP
    for family in (3, 9, 12, 20, 21, 29, 30, 31, 39, 44):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                return f"{_open(family, kind)}: family {family}"
            except OSError as error:
                refused = error
    raise refused or AttackHeld("there are none")


@attack
def unix_socket(target: AttackTarget) -> str:
    """tries to connect to a program of this machine over a Unix socket in a folder"""
    return _connect(socket.AF_UNIX, socket_in_a_folder(target))


@attack
def well_known_sockets(target: AttackTarget) -> str:
    """tries to talk to the system's own services: the bus, Docker, the display"""
    refused: OSError | None = None
    for path in (
        "/run/dbus/system_bus_socket",
        "/var/run/docker.sock",
        f"/run/user/{os.getuid()}/bus",
        "/tmp/.X11-unix/X0",
        "\0/tmp/.X11-unix/X0",
        "/run/systemd/journal/socket",
    ):
        try:
            return _connect(socket.AF_UNIX, path)
        except OSError as error:
            refused = error
    raise refused or AttackHeld("there are none")
