"""Errors of the network libraries, in the words of our family. One table, for every door of this room."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

import aiohttp

from axonp2p.errors import AxonError, BadSignature, Busy, Refused, Unreachable
from axonp2p.transport.address import WHOLE_ADDRESS

NETWORK_ERRORS = (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError, UnicodeError)
"""Errors of aiohttp and the operating system when a line cannot be had or is lost. UnicodeError: for host names that
no name server could even be asked for."""


class NoWayThrough(aiohttp.ClientConnectionError):
    """A relay did not carry us to the peer; the text says why."""


_ERRNO_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "the connection was reset",
    errno.EPIPE: "the connection was lost",
    errno.EHOSTUNREACH: "no route to that host",
    errno.ENETUNREACH: "the network is unreachable",
    errno.ETIMEDOUT: "no answer in time",
    errno.EADDRNOTAVAIL: "this machine does not have the address to call from",
    errno.EMFILE: "too many open files on this machine",
}

# The first row that fits wins: aiohttp's classes inherit from the operating system's, so the special stand first.
_WORDS: tuple[tuple[type[BaseException], Callable[[BaseException], str]], ...] = (
    (NoWayThrough, str),
    (aiohttp.ClientConnectorDNSError, lambda error: "that host name is not known"),
    (UnicodeError, lambda error: "that host name is not known"),
    (socket.gaierror, lambda error: "that host name is not known"),
    (aiohttp.ClientConnectorCertificateError, lambda error: _of_certificate(error)),
    (ssl.SSLCertVerificationError, lambda error: _of_certificate(error)),
    (aiohttp.ClientConnectorSSLError, lambda error: "it does not speak TLS 1.3"),
    (ssl.SSLError, lambda error: "it does not speak TLS 1.3"),
    (TimeoutError, lambda error: "no answer in time"),
    (aiohttp.ServerDisconnectedError, lambda error: "it hung up"),
    (asyncio.IncompleteReadError, lambda error: "it hung up"),
    (aiohttp.ClientConnectionResetError, lambda error: "the connection was lost"),
    (OSError, lambda error: _of_errno(error)),
    (aiohttp.ClientPayloadError, lambda error: "the answer broke off"),
    (aiohttp.ClientResponseError, lambda error: "it does not answer as HTTP"),
)


def plain_words(error: BaseException) -> str:
    """Why the network failed, as a person would say it."""
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words(error)
    return str(error) or type(error).__name__


def translated(error: BaseException, called: str, unreachable: type[Unreachable] = Unreachable) -> AxonError:
    """The error of our family for one of `NETWORK_ERRORS`, met while calling `called` ("peer otter")."""
    if isinstance(error, aiohttp.ServerFingerprintMismatch):
        return BadSignature(
            f"{called}: another certificate answers at {error.host}:{error.port}",
            cause="the fingerprint of the certificate there is not the one that was announced",
            fix="get its current address; if it is right, somebody between here and there is listening in",
        )
    if isinstance(error, aiohttp.WSServerHandshakeError):
        kind = Busy if error.status in (429, 503) else Refused
        return kind(f"{called} opens no session", cause=f"HTTP status {error.status}")
    fix = WHOLE_ADDRESS if nobody_vouches(error) else ""
    return unreachable(f"{called} cannot be reached", cause=plain_words(error), fix=fix)


# OpenSSL's numbers (x509_vfy.h). Authorities are asked only where an address has no fingerprint.
_EXPIRED, _OTHER_NAMES = 10, (62, 64)


def nobody_vouches(error: BaseException | None) -> bool:
    """Whether the certificate there is no authority's: the address needs its fingerprint."""
    return _verify_code(error) not in (None, _EXPIRED, *_OTHER_NAMES)


def _verify_code(error: BaseException | None) -> int | None:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    return error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None


def _of_certificate(error: BaseException) -> str:
    number = _verify_code(error)
    if number == _EXPIRED:
        return "its certificate has expired"
    if number in _OTHER_NAMES:
        return "its certificate is for another host name"
    return "the address lacks #FINGERPRINT, and no authority that we trust vouches for its certificate"


def _of_errno(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    number = error.errno if isinstance(error, OSError) else None
    return _ERRNO_WORDS.get(number or 0) or str(error) or type(error).__name__
