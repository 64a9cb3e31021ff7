"""Everything that goes wrong in a round among strangers' machines, and how each is answered. Pure."""

from __future__ import annotations

from enum import Enum


class Fault(Enum):
    """What may happen to a round. docs/training.md has them as a table; each is committed by a test."""

    SENDER_LATE = "sender late"
    """Owners close their parts without it at its deadline; it puts its values back and sends them next time."""
    SENDER_GONE = "sender gone"
    """Owners close their parts without it at its deadline; the round is redone without it if its end is missed."""
    OWNER_GONE_BEFORE = "owner gone before handing back"
    """Nobody has its part of the mean: the round is redone without it from the last accepted state."""
    OWNER_GONE_DURING = "owner gone during handing back"
    """Some have parts that others lack: the round is redone without it from the last accepted state."""
    OWNER_GONE_AFTER = "owner gone after handing back"
    """All others have the whole mean and report the same state: the round counts, and goes on without it."""
    LINK_CUT = "link cut between two members"
    """The round is redone with slices that neither of the two owns, so they need not reach each other."""
    COORDINATOR_GONE = "coordinator gone and back"
    """Members end the round that they are in and wait; it goes on from the state that they hold."""
    MEMBER_FROZEN = "member frozen for a minute"
    """It is late as a sender; where it owns a slice the round is redone without it, and it joins again when awake."""
    SLICE_CORRUPTED = "corrupted slice"
    """What cannot be decoded is refused and changes nothing: as if the sender were late, or the owner gone."""
    SLICE_LYING = "lying slice"
    """An owner that tells members different means is found by the hashes of its slice, and dropped."""
    GIVER_GONE = "joiner's giver gone"
    """The joiner asks the other members for the pieces that are missing."""
    PIECE_WRONG = "wrong piece"
    """Its hash does not fit: it is thrown away and named, and fetched from another member."""
