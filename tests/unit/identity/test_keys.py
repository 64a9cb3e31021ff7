"""Ids and signatures: one spelling a key, one purpose a signature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import BadSignature
from axonp2p.identity.keys import SIGNATURE_BYTES, PrivateKey, verify
from axonp2p.identity.peer_id import ID_LENGTH, peer_id_of, public_key_of, short

KEY = PrivateKey(bytes(range(32)))
PURPOSE = "axon/test/1"
seeds = st.binary(min_size=32, max_size=32)


@given(seeds)
def test_an_id_is_the_key_in_another_form(public: bytes) -> None:
    peer = peer_id_of(public)
    assert len(peer) == ID_LENGTH
    assert public_key_of(peer) == public
    assert peer.startswith(short(peer))


@given(seeds, st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_key_has_only_one_spelling(public: bytes, letter: str) -> None:
    peer = peer_id_of(public)
    other = peer[:-1] + letter
    if other != peer:
        try:
            found = public_key_of(other)
        except ValueError:
            return
        assert found != public


@pytest.mark.parametrize("end", ["", "aa", "b", "\n", "A", "1", "ä", "a\n"])
def test_what_is_no_id(end: str) -> None:
    with pytest.raises(ValueError, match="peer id"):
        public_key_of("a" * 51 + end)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_public_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        peer_id_of(bytes(size))


def test_rfc_8032_first_vector_names_the_same_key() -> None:
    key = PrivateKey(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert public_key_of(key.peer_id).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


@given(st.binary(max_size=300))
def test_a_signature_holds_for_its_signer_purpose_and_payload_only(payload: bytes) -> None:
    signature = KEY.sign(PURPOSE, payload)
    assert len(signature) == SIGNATURE_BYTES
    verify(KEY.peer_id, PURPOSE, payload, signature)
    other = PrivateKey(bytes(32))
    for signer, purpose, content in [
        (other.peer_id, PURPOSE, payload),
        (KEY.peer_id, "axon/test/2", payload),
        (KEY.peer_id, PURPOSE, payload + b"\0"),
    ]:
        with pytest.raises(BadSignature):
            verify(signer, purpose, content, signature)


def test_purpose_and_payload_do_not_run_together() -> None:
    signature = KEY.sign("axon/a", b"b\0c")
    with pytest.raises(BadSignature):
        verify(KEY.peer_id, "axon/ab", b"c", signature)
    with pytest.raises(BadSignature):
        verify(KEY.peer_id, "axon/a\0b", b"c", KEY.sign("axon/a", b"b\0c")[:-1] + b"\0")


@given(signer=st.text(max_size=60), signature=st.binary(max_size=100))
def test_rubbish_is_a_bad_signature_and_nothing_else(signer: str, signature: bytes) -> None:
    for who in (signer, KEY.peer_id):
        with pytest.raises(BadSignature):
            verify(who, PURPOSE, b"payload", signature)


def test_the_secret_is_not_shown() -> None:
    assert KEY.seed.hex() not in repr(KEY)
    assert repr(KEY) == f"PrivateKey({short(KEY.peer_id)})"
    assert PrivateKey.generate().seed != PrivateKey.generate().seed


def test_what_is_derived_is_the_same_each_time_and_another_for_each_key_and_purpose() -> None:
    derived = KEY.derived("axon/a/1")
    assert len(derived) == 32
    assert PrivateKey(KEY.seed).derived("axon/a/1") == derived
    others = {KEY.derived("axon/b/1"), PrivateKey(bytes(32)).derived("axon/a/1"), KEY.seed}
    assert derived not in others
