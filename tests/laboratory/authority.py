"""A certificate authority of a test's own, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """The files that an operator gets from it."""

    certificate: Path
    key: Path


class Authority:
    """`root` is the file that callers trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of a test")])
        self._root = self._build(self._name, self._key, days=30, authority=True)
        self.root = folder / "authority.pem"
        self.root.write_bytes(self._root.public_bytes(serialization.Encoding.PEM))
        self._number = 0

    def sign(self, *hosts: str, days: float = 10) -> Signed:
        """A certificate for these names and addresses; over already with `days` below 0."""
        self._number += 1
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        signed = Signed(self._folder / f"{self._number}-chain.pem", self._folder / f"{self._number}-key.pem")
        leaf = self._build(name, key, days=days, hosts=hosts)
        signed.certificate.write_bytes(
            leaf.public_bytes(serialization.Encoding.PEM) + self._root.public_bytes(serialization.Encoding.PEM)
        )
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        signed.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
        return signed

    def _build(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        days: float,
        hosts: tuple[str, ...] = (),
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_name_of(host) for host in hosts]), False)
        return builder.sign(self._key, hashes.SHA256())


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
