"""How often a hosted job's process may die."""

from __future__ import annotations

from axonp2p.hosting.lives import Again, Lives, StopTrying


def test_it_is_started_again_later_and_later() -> None:
    lives = Lives()
    assert [lives.died(0) for _ in range(4)] == [Again(1), Again(4), Again(16), Again(60)]
    assert lives.died(0) == StopTrying(5)


def test_a_new_round_forgives_all() -> None:
    lives = Lives()
    for _ in range(4):
        lives.died(3)
    assert lives.died(4) == Again(1)
    assert lives.died(4) == Again(4)
