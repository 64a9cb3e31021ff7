"""A TLS certificate signed by the identity key itself; its SHA-256 is what others pin.

No certificate authority: who knows the fingerprint from a signed row (or from a tracker's address) knows the peer.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from axonp2p.identity.certificate_bytes import certificate_der, pem, private_key_der
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key in one PEM file (0600)."""

    pem: Path
    fingerprint: bytes

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.3 with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.pem)
        return context


def make_certificate(key: PrivateKey, file: Path) -> Certificate:
    """Write the certificate of `key` to `file`.

    Ed25519 signatures, the dates and the serial number are fixed by the key, so the same key always gives the same
    bytes: a lost file changes nobody's pin.
    """
    serial = int.from_bytes(hashlib.sha256(b"axon/certificate/1\0" + key.peer_id.encode()).digest()[:8]) | 1
    der = certificate_der(key.peer_id, serial, public_key_of(key.peer_id), key.sign_certificate)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(pem("PRIVATE KEY", private_key_der(key.seed)) + pem("CERTIFICATE", der))
    return Certificate(file, hashlib.sha256(der).digest())
