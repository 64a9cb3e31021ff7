"""A TLS certificate signed by the identity key itself; its SHA-256 is what others pin.

No certificate authority: who knows the fingerprint from a signed row (or from a tracker's address) knows the peer.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import SettingsError
from axonp2p.identity.certificate_bytes import certificate_der, pem, private_key_der
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of


@dataclass(frozen=True)
class Certificate:
    """A certificate in a PEM file, with its key there (0600) or in a file of its own."""

    pem: Path
    fingerprint: bytes
    key: Path | None = None

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.3 with this certificate. Raises `SettingsError` when certificate and key are of no use together."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """New connections of `context` show it. Raises as `server_context`."""
        try:
            context.load_cert_chain(self.pem, self.key, password=_no_password)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"the certificate {self.pem} cannot be used",
                cause=f"{self.key or self.pem} is not its key, has a password, or cannot be read ({error})",
                fix="name both as your authority gave them: --certificate fullchain.pem --key privkey.pem",
            ) from error


def _no_password() -> str:
    raise ValueError("a daemon has nobody to ask for a password")


def authority_certificate(certificate: Path, key: Path) -> Certificate:
    """The operator's own, which an authority vouches for. Raises `SettingsError`."""
    try:
        text = certificate.read_text()
        leaf = ssl.PEM_cert_to_DER_cert(text[text.index(_BEGIN) : text.index(_END) + len(_END)])
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{certificate} holds no certificate",
            cause=(error.strerror or str(error)) if isinstance(error, OSError) else f"no block {_BEGIN}",
            fix="--certificate FILE takes PEM, the tracker's own certificate first: certbot calls it fullchain.pem",
        ) from error
    found = Certificate(certificate, hashlib.sha256(leaf).digest(), key)
    found.server_context()
    return found


_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


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
