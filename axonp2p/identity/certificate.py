"""A TLS certificate signed by the identity key itself; its SHA-256 is what others pin.

No certificate authority: who knows the fingerprint from a signed row (or from a tracker's address) knows the peer.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from axonp2p.identity.keys import PrivateKey

# Its trust comes from the pin, not from its dates; the dates only have to hold.
_VALID_FROM = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
_VALID_UNTIL = datetime.datetime(2124, 1, 1, tzinfo=datetime.UTC)


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


def make_certificate(key: PrivateKey, pem: Path) -> Certificate:
    """Write the certificate of `key` to `pem`.

    Ed25519 signatures, the dates and the serial number are fixed by the key, so the same key always gives the same
    bytes: a lost file changes nobody's pin.
    """
    secret = Ed25519PrivateKey.from_private_bytes(key.seed)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, key.peer_id)])
    serial = int.from_bytes(hashlib.sha256(b"axon/certificate/1\0" + key.peer_id.encode()).digest()[:8]) | 1
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(serial)
        .not_valid_before(_VALID_FROM)
        .not_valid_after(_VALID_UNTIL)
        .sign(secret, algorithm=None)
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    private = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.unlink(missing_ok=True)
    descriptor = os.open(pem, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(private + certificate.public_bytes(serialization.Encoding.PEM))
    return Certificate(pem, hashlib.sha256(der).digest())
