"""Items that wait for another opinion: each peer has one, and those that lose against several are believed no more."""

from __future__ import annotations

from axonp2p.kinds.map.opinions.open_items import OpenItems
from axonp2p.kinds.map.opinions.quorum import Accepted, Vote, WantsAnother
from axonp2p.kinds.map.queue_actions import Distrust


def with_peers(*names: str) -> OpenItems:
    items = OpenItems([])
    for rank, name in enumerate(names):
        items.came(rank, name)
    return items


def test_the_first_opinion_says_how_many_are_needed() -> None:
    items = with_peers("heron", "otter")
    assert items.vote(7, 0, 0, 2) == (WantsAnother(frozenset({"heron"})), 2)
    assert len(items) == 1
    assert items.vote(7, 1, 0, 1) == (Accepted(0, ("heron", "otter")), 2)
    items.close(7)
    assert len(items) == 0


def test_a_peer_that_is_back_at_another_rank_has_given_its_opinion() -> None:
    items = with_peers("heron", "otter")
    items.vote(7, 0, 0, 2)
    items.forget(0)
    items.came(5, "heron")
    assert items.has_opinion(5, [3, 7])
    assert not items.has_opinion(5, [3])
    assert not items.has_opinion(1, [7])


def test_one_who_loses_against_several_is_believed_nowhere() -> None:
    items = with_peers("heron", "otter", "liar")
    items.open(3, 2, [Vote("liar", 0), Vote("heron", 1)])
    accepted = Accepted(0, ("heron", "otter"), ("liar",))
    assert items.judge(7, accepted) == [Distrust("liar", 2, 2, 7)]
    assert items.is_outvoted(2)
    assert not items.has_opinion(2, [3])
    assert items.has_opinion(0, [3])
    assert items.judge(8, accepted) == [], "once is enough"


def test_one_against_one_proves_nothing() -> None:
    items = with_peers("heron", "otter")
    assert items.judge(7, Accepted(0, ("heron",), ("otter",))) == []
    assert not items.is_outvoted(1)


def test_one_who_is_gone_is_outvoted_all_the_same() -> None:
    items = with_peers("heron", "otter", "liar")
    items.forget(2)
    assert items.judge(7, Accepted(0, ("heron", "otter"), ("liar",))) == [Distrust("liar", None, 2, 7)]
    items.came(9, "liar")
    assert items.is_outvoted(9)
