"""The TLS certificate of a key: always the same bytes, signed by the key itself, its file for its owner alone."""

from __future__ import annotations

import hashlib
import ssl
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.certificate_bytes import fingerprint_of_text, fingerprint_text
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of

KEY = PrivateKey(bytes(range(32)))


def test_the_same_key_always_gives_the_same_certificate(tmp_path: Path) -> None:
    first = make_certificate(KEY, tmp_path / "a.pem")
    content = first.pem.read_bytes()
    again = make_certificate(KEY, tmp_path / "a.pem")
    assert again.fingerprint == first.fingerprint
    assert again.pem.read_bytes() == content
    assert make_certificate(PrivateKey(bytes(32)), tmp_path / "b.pem").fingerprint != first.fingerprint
    # Pinned: volunteers' rows and tracker addresses hold this number, so a new version must not change it.
    assert first.fingerprint.hex() == "1ce1dfae17617bcf9df2ffa7742b8e6beaa38fd1f0dafb91f80e9c2012623a74"


def test_it_is_signed_by_and_for_the_identity_key(tmp_path: Path) -> None:
    made = make_certificate(KEY, tmp_path / "a.pem")
    certificate = x509.load_pem_x509_certificate(made.pem.read_bytes())
    raw = certificate.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    assert raw == public_key_of(KEY.peer_id)
    certificate.verify_directly_issued_by(certificate)
    assert hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).digest() == made.fingerprint


def test_its_file_holds_the_secret_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    pem = tmp_path / "a.pem"
    pem.write_text("an old one")
    pem.chmod(0o644)
    make_certificate(KEY, pem)
    assert stat.S_IMODE(pem.stat().st_mode) == 0o600


def test_its_server_speaks_tls_1_3_only(tmp_path: Path) -> None:
    context = make_certificate(KEY, tmp_path / "a.pem").server_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3


@given(st.binary(min_size=32, max_size=32))
def test_a_fingerprint_survives_being_written_down(fingerprint: bytes) -> None:
    text = fingerprint_text(fingerprint)
    assert len(text) == 52
    assert fingerprint_of_text(text) == fingerprint


@given(st.text(max_size=80))
def test_any_other_text_is_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert len(fingerprint_of_text(text)) == 32


def test_a_short_fingerprint_is_none() -> None:
    with pytest.raises(ValueError, match="52 letters"):
        fingerprint_of_text("abcdefgh")
