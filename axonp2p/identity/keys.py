"""Ed25519 signatures (RFC 8032, through PyNaCl), each bound to a named purpose."""

from __future__ import annotations

import hmac

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey

from axonp2p.errors import BadSignature
from axonp2p.identity.peer_id import PeerId, peer_id_of, public_key_of

SIGNATURE_BYTES = 64
PUBLIC_KEY_BYTES = 32


class PrivateKey:
    """The secret half of an identity. Its repr never shows the secret."""

    def __init__(self, seed: bytes) -> None:
        self._key = SigningKey(seed)
        self.peer_id: PeerId = peer_id_of(bytes(self._key.verify_key))

    @classmethod
    def generate(cls) -> PrivateKey:
        """A fresh key from the operating system's randomness."""
        return cls(bytes(SigningKey.generate()))

    @property
    def seed(self) -> bytes:
        """The 32 secret bytes, for the key file, the certificate and `derived` only."""
        return bytes(self._key)

    def sign(self, purpose: str, payload: bytes) -> bytes:
        """64 bytes that prove: this key signed this payload for this purpose."""
        return self._key.sign(_bound(purpose, payload)).signature

    def sign_certificate(self, to_be_signed: bytes) -> bytes:
        """64 bytes without a purpose, as X.509 wants them: only for the certificate of this very key."""
        return self._key.sign(to_be_signed).signature

    def derived(self, purpose: str) -> bytes:
        """32 secret bytes that this key alone makes, the same each time: for what must outlive a restart."""
        return hmac.digest(self.seed, purpose.encode("ascii"), "sha256")

    def __repr__(self) -> str:
        return f"PrivateKey({self.peer_id[:8]})"


def verify(signer: PeerId, purpose: str, payload: bytes, signature: bytes) -> None:
    """Raise `BadSignature` unless `signer` signed `payload` for `purpose`."""
    try:
        public_key = public_key_of(signer)
    except ValueError as error:
        raise BadSignature(f"the signer of {purpose} has no key") from error
    verify_by_key(public_key, purpose, payload, signature)


def verify_by_key(public_key: bytes, purpose: str, payload: bytes, signature: bytes) -> None:
    """`verify` for whoever has the 32 bytes of the key and no id."""
    if len(public_key) != PUBLIC_KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        raise BadSignature(f"the signer of {purpose} has no key, or no signature")
    try:
        # The function that `VerifyKey` calls; making one takes as long as a tenth of it.
        crypto_sign_open(signature + _bound(purpose, payload), public_key)
    except BadSignatureError as error:
        raise BadSignature(f"the signature does not fit its signer for {purpose}") from error


def _bound(purpose: str, payload: bytes) -> bytes:
    # A NUL cannot stand in a purpose, so no purpose and payload run together into another pair.
    return purpose.encode("ascii") + b"\0" + payload
