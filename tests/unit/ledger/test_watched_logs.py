"""Heads as a watcher hears them, one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.errors import AxonError, BadSignature, MalformedMessage
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.log_messages import HEADS_LIMIT, MOST_EVIDENCE, PROOF_LIMIT, HeadsTold
from axonp2p.ledger.merkle import LONGEST_PATH, consistency_path, leaf_hash, root
from axonp2p.ledger.tiles import node_reader, tiles_after
from axonp2p.ledger.tree_head import ConsistencyProof, ForkEvidence, TreeHead, open_head, why_forked, why_shrunk
from axonp2p.ledger.watched_logs import MOST_WATCHED, WATCHED_LIMIT, ProofWanted, WatchedLogs
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from axonp2p.wire.quantities import LATEST
from tests.fakes import key_of

TRACKER, OTHER = key_of("tracker"), key_of("other tracker")
LOG, NEW_LOG = "a" * 32, "b" * 32


class Log:
    """A tracker's, with entries that a test names."""

    def __init__(self, *entries: str, name: str = LOG, key: PrivateKey = TRACKER) -> None:
        self.name, self.key, self.size = name, key, len(entries)
        tiles = tiles_after(0, [leaf_hash(entry.encode()) for entry in entries], lambda height, index: b"")
        self.node = node_reader(lambda height, index: tiles.get((height, index), b""))

    def head(self, size: int, time: int | None = None) -> Signed[TreeHead]:
        time = 1000 + size if time is None else time
        head = TreeHead(tracker=self.key.peer_id, log=self.name, size=size, root=root(size, self.node), time=time)
        return sign(self.key, head)

    def proof(self, wanted: ProofWanted, **changes: Any) -> Signed[ConsistencyProof]:
        first, second = wanted.sizes
        path = consistency_path(first, second, self.node)
        usual: dict[str, Any] = {"tracker": self.key.peer_id, "log": self.name, "first": first, "second": second}
        return sign(self.key, ConsistencyProof(**(usual | {"path": path} | changes)))


HONEST = Log(*"abcdefghijklmnop")
REWRITTEN = Log(*"abXdefghijklmnop")


def hear(watched: WatchedLogs, log: Log, size: int, **changes: Any) -> None:
    """A head from a tracker with this log, which proves what it is asked to."""
    wanted = watched.heard(log.head(size, **changes))
    if wanted is not None:
        watched.proved(wanted, log.proof(wanted))


def last_size(watched: WatchedLogs) -> int:
    kept = watched.last(TRACKER.peer_id)
    assert kept is not None
    return open_head(kept.head).size


def test_a_log_that_grows_is_followed():
    watched = WatchedLogs()
    for size in (0, 3, 3, 7, 16):
        hear(watched, HONEST, size)
        assert last_size(watched) == size
    assert not watched.convicted


def test_an_older_head_from_somebody_else_is_proved_too_and_changes_nothing():
    watched = WatchedLogs()
    hear(watched, HONEST, 12)
    hear(watched, HONEST, 5)
    assert last_size(watched) == 12
    assert not watched.convicted


def test_a_rewritten_log_is_convicted_by_its_own_proof():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    hear(watched, REWRITTEN, 9)
    (one,) = watched.convicted
    assert (one.tracker, one.log) == (TRACKER.peer_id, LOG)
    assert "rewrote its past" in one.why
    assert "5 entries" in one.why
    assert last_size(watched) == 5


def test_two_logs_of_one_size_need_no_proof():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    assert watched.heard(REWRITTEN.head(5)) is None
    assert "two logs of 5 entries" in watched.convicted[0].why


def test_a_log_that_lost_entries_is_not_believed_until_it_has_them_again():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    wanted = watched.heard(HONEST.head(3, time=2000))
    assert wanted is not None
    small, large = open_head(wanted.first), open_head(wanted.second)
    assert (small.size, large.size) == (3, 5)
    assert "5 of them (1970-01-01 00:16:45 UTC), then 3" in why_shrunk(small, large)
    assert not watched.convicted
    hear(watched, HONEST, 7, time=3000)
    assert (last_size(watched), watched.convicted) == (7, [])


def test_a_log_that_lost_entries_and_goes_on_with_others_is_convicted():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    assert watched.heard(HONEST.head(2, time=2000)) is not None
    hear(watched, REWRITTEN, 7, time=3000)
    assert "rewrote its past" in watched.convicted[0].why


def test_an_old_conviction_for_lost_entries_alone_is_forgotten():
    """Evidence that an earlier version kept, or shows."""
    watched = WatchedLogs()
    watched.told(ForkEvidence(first=HONEST.head(3, time=2000), second=HONEST.head(5)))
    assert not watched.convicted


def test_one_that_does_not_prove_is_not_convicted_and_not_believed():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    assert watched.heard(REWRITTEN.head(9)) is not None
    assert not watched.convicted
    assert last_size(watched) == 5


@pytest.mark.parametrize("changes", [{"tracker": OTHER.peer_id}, {"log": NEW_LOG}, {"first": 4}, {"second": 10}])
def test_a_proof_about_something_else_is_none(changes: dict[str, Any]):
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    wanted = watched.heard(HONEST.head(9))
    assert wanted is not None
    with pytest.raises(BadSignature):
        watched.proved(wanted, HONEST.proof(wanted, **changes))
    with pytest.raises(BadSignature):
        watched.proved(
            wanted, sign(OTHER, ConsistencyProof(tracker=TRACKER.peer_id, log=LOG, first=5, second=9, path=[]))
        )
    assert not watched.convicted


def test_it_stays_named_after_a_restart_and_whatever_comes_then():
    watched = WatchedLogs()
    hear(watched, HONEST, 5)
    hear(watched, REWRITTEN, 9)
    watched = WatchedLogs(watched.encoded())
    assert not watched.changed
    hear(watched, HONEST, 9)
    hear(watched, Log("a", name=NEW_LOG), 1, time=3000)
    assert watched.conviction_of(TRACKER.peer_id) is not None


def test_a_new_log_is_told_with_the_last_head_of_the_old_one():
    watched = WatchedLogs()
    hear(watched, HONEST, 9)
    hear(watched, Log("a", name=NEW_LOG), 1, time=3000)
    kept = watched.last(TRACKER.peer_id)
    assert kept is not None
    assert kept.before == HONEST.head(9)
    # Others may still show what they saw of the old one: that begins nothing anew.
    hear(watched, HONEST, 7)
    assert last_size(watched) == 1
    assert watched.heard(REWRITTEN.head(9)) is None
    assert "two logs of 9" in watched.convicted[0].why


def test_evidence_convinces_whoever_sees_it():
    finder, other = WatchedLogs(), WatchedLogs()
    hear(finder, HONEST, 5)
    hear(finder, REWRITTEN, 9)
    other.told(finder.convicted[0].evidence)
    assert other.convicted == finder.convicted


def test_what_convicts_nobody():
    five, nine = HONEST.head(5), HONEST.head(9)
    good = HONEST.proof(ProofWanted(five, nine))
    forged = Log(*"abXdefghijklmnop", key=OTHER).proof(ProofWanted(five, nine))
    told: list[ForkEvidence] = [
        ForkEvidence(first=five, second=nine),
        ForkEvidence(first=five, second=nine, proof=good),
        ForkEvidence(first=five, second=nine, proof=forged),
        ForkEvidence(first=five, second=five),
        ForkEvidence(first=five, second=Log("x", name=NEW_LOG).head(1)),
        ForkEvidence(first=five, second=Signed(signer=OTHER.peer_id, payload=nine.payload, signature=nine.signature)),
    ]
    watched = WatchedLogs()
    for evidence in told:
        watched.told(evidence)
        with pytest.raises(AxonError):
            why_forked(evidence)
    assert not watched.convicted


def test_a_forged_head_is_not_heard():
    head = HONEST.head(5)
    with pytest.raises(BadSignature):
        WatchedLogs().heard(Signed(signer=OTHER.peer_id, payload=head.payload, signature=head.signature))
    with pytest.raises(BadSignature, match="was signed by"):
        WatchedLogs().heard(sign(OTHER, open_head(head)))


def test_a_damaged_file_is_told():
    with pytest.raises(MalformedMessage):
        WatchedLogs(b"garbage")


def test_the_largest_of_everything_fits_its_limit():
    log = Log(*map(str, range(100)))
    long = sign(
        TRACKER,
        ConsistencyProof(tracker=TRACKER.peer_id, log=LOG, first=2**62, second=2**62, path=[b"x" * 32] * LONGEST_PATH),
    )
    assert len(encode(long)) <= PROOF_LIMIT
    watched = WatchedLogs()
    for number in range(MOST_WATCHED + 5):
        watched.heard(Log("a", key=key_of(f"tracker {number}")).head(1, time=LATEST))
    evidence = ForkEvidence(first=log.head(64), second=log.head(100), proof=long)
    told = HeadsTold(own=log.head(99), seen=watched.heads, evidence=[evidence] * MOST_EVIDENCE)
    assert len(encode(told)) <= HEADS_LIMIT
    assert len(watched.encoded()) + MOST_WATCHED * len(encode(evidence)) + 2 * MOST_WATCHED * 512 <= WATCHED_LIMIT


def _two_logs(key: PrivateKey, name: str) -> ForkEvidence:
    """What convicts a tracker of two logs of one name: it costs its maker two signatures."""
    return ForkEvidence(first=Log("x", name=name, key=key).head(1), second=Log("y", name=name, key=key).head(1))


def test_strangers_that_convict_themselves_take_nobodys_place():
    watched = WatchedLogs()
    watched.trusted = {TRACKER.peer_id, OTHER.peer_id}.__contains__
    hear(watched, HONEST, 5)
    watched.told(_two_logs(OTHER, LOG))
    for number in range(2 * MOST_WATCHED):
        watched.told(_two_logs(key_of("stranger"), f"{number:032x}"))
    assert [one.tracker for one in watched.convicted] == [OTHER.peer_id, key_of("stranger").peer_id]
    for number in range(2 * MOST_WATCHED):
        stranger = key_of(f"stranger {number}")
        hear(watched, Log("x", key=stranger), 1)
        watched.told(_two_logs(stranger, LOG))
    hear(watched, REWRITTEN, 5)
    assert watched.conviction_of(TRACKER.peer_id) is not None
    assert watched.conviction_of(OTHER.peer_id) is not None
    assert watched.last(TRACKER.peer_id) is not None
    assert (len(watched.heads), len(watched.convicted)) == (MOST_WATCHED, MOST_WATCHED)
    assert WatchedLogs(watched.encoded()).convicted == watched.convicted


def test_who_was_heard_of_longest_ago_gives_way():
    watched = WatchedLogs()
    for number in range(MOST_WATCHED):
        hear(watched, Log("x", key=key_of(f"stranger {number}")), 1)
    hear(watched, Log("x", key=key_of("stranger 0")), 1)
    hear(watched, HONEST, 5)
    assert watched.last(TRACKER.peer_id) is not None
    assert watched.last(key_of("stranger 0").peer_id) is not None
    assert watched.last(key_of("stranger 1").peer_id) is None
