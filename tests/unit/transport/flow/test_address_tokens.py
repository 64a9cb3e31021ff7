"""Who heard an answer can prove its address for some minutes, and nobody else can."""

from __future__ import annotations

import pytest

from axonp2p.transport.flow.address_tokens import TOKEN_BYTES, TOKEN_LIFE_S, AddressTokens
from tests.fakes import NOW

HERE, THERE = "192.0.2.1", "192.0.2.2"
TOKENS = AddressTokens(b"secret of this test")


def test_a_token_counts_for_five_minutes_and_at_most_ten() -> None:
    token = TOKENS.token_for(HERE, NOW)
    assert len(token) == TOKEN_BYTES
    assert TOKENS.knows(HERE, token, NOW)
    assert TOKENS.knows(HERE, token, NOW + TOKEN_LIFE_S)
    assert not TOKENS.knows(HERE, token, NOW + 2 * TOKEN_LIFE_S)


@pytest.mark.parametrize("token", [b"", bytes(TOKEN_BYTES), TOKENS.token_for(HERE, NOW)[:-1]])
def test_what_was_never_given_proves_nothing(token: bytes) -> None:
    assert not TOKENS.knows(HERE, token, NOW)


def test_a_token_is_of_one_address_and_one_program() -> None:
    assert not TOKENS.knows(THERE, TOKENS.token_for(HERE, NOW), NOW)
    assert not TOKENS.knows(HERE, AddressTokens(b"another").token_for(HERE, NOW), NOW)
