"""Refused jobs in the history: told once, and never many."""

from __future__ import annotations

from peer_daemon.history.refusals import A_MINUTE, SAME_AGAIN_S, Refusals


def test_the_same_refusal_is_news_again_after_ten_minutes():
    refusals = Refusals()
    assert refusals.is_worth_noting("ada", "every slot is taken", 0.0)
    assert not refusals.is_worth_noting("ada", "every slot is taken", 599.0)
    assert refusals.is_worth_noting("ada", "on battery", 599.0)
    assert refusals.is_worth_noting("ada", "every slot is taken", SAME_AGAIN_S)


def test_many_strangers_are_a_few_lines():
    refusals = Refusals()
    noted = [refusals.is_worth_noting(f"client {number}", "no", number / 100) for number in range(1000)]
    assert sum(noted) == A_MINUTE
    assert refusals.is_worth_noting("client 1", "no", 700.0)
