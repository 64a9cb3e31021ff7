from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import (
    AxonError,
    BadSignature,
    Busy,
    MalformedMessage,
    MessageTooLarge,
    Refused,
    TokenRefused,
    TooOften,
    VersionMismatch,
)
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.messages import TakeLease
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import USED_WITHIN_S, Token, TokenHolder
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.vouching import sign_vouching
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, encode_signed, sign
from axonp2p.wire.schema import SCHEMAS
from peer_daemon.lending.leases import FIRST_PAUSE_S, LEAST_AGE_S, LONGEST_PAUSE_S, Interrupted, Leases
from peer_daemon.lending.lending import Lending

TRACKER, CLIENT, PEER, STRANGER = (PrivateKey(letter * 32) for letter in (b"t", b"c", b"p", b"s"))
NOW = 1_000_000.0
ADDRESS = "192.0.2.1"
UUID = "00000000-0000-4000-8000-{:012x}"
OFFER = Capability(
    cores=2, memory_mb=1024, disk_mb=512, gflops=1, slots=1, free=1, python="3.11", packages={}, kinds=["train"]
)


def make_leases(**changes) -> Leases:
    leases = Leases(PEER.peer_id, Lending(msgspec.structs.replace(OFFER, **changes)), check_address=True)
    leases.trust(TRACKER.peer_id)
    return leases


def token(number: int = 1, **changes) -> Token:
    fields = {
        "uuid": UUID.format(number),
        "issuer": TRACKER.peer_id,
        "client": CLIENT.peer_id,
        "client_address": ADDRESS,
        "peers": [PEER.peer_id],
        "kinds": ["train"],
        "not_before": int(NOW) - 10,
        "expires": int(NOW) + 100,
    }
    return Token(**{**fields, **changes})


def ask(
    token_: Token, *, signer: PrivateKey = TRACKER, cores: int = 1, memory_mb: int = 256, kind="train"
) -> TakeLease:
    return TakeLease(
        schema=SCHEMAS.get(kind, ""),
        token=encode_signed(signer, token_),
        job="digits",
        kind=kind,
        cores=cores,
        memory_mb=memory_mb,
    )


CALLER = TokenHolder(CLIENT.peer_id, ADDRESS)


def test_a_good_token_gets_what_the_job_asks_for_until_it_expires():
    lease = make_leases().take(ask(token()), CALLER, NOW)
    assert (lease.client, lease.job, lease.until) == (CLIENT.peer_id, "digits", int(NOW) + 100)
    assert (lease.kind, lease.cores, lease.memory_mb, lease.disk_mb) == ("train", 1, 256, 512)


@pytest.fixture
def toy(monkeypatch):
    """A second kind of job that this build knows."""
    monkeypatch.setitem(KINDS, "toy", replace(KINDS["train"], name="toy"))
    monkeypatch.setitem(SCHEMAS, "toy", "0" * 16)


@pytest.mark.usefixtures("toy")
def test_the_refusal_of_a_kind_names_those_that_are_taken():
    with pytest.raises(Refused, match="takes no jobs of the kind 'toy', only: train"):
        make_leases().take(ask(token(kinds=["toy"]), kind="toy"), CALLER, NOW)


@pytest.mark.usefixtures("toy")
def test_a_client_that_comes_back_with_another_kind_does_not_get_its_worker():
    leases, kinds = make_leases(kinds=["train", "toy"]), ["train", "toy"]
    lease = leases.take(ask(token(kinds=kinds)), CALLER, NOW)
    assert leases.returning(ask(token(kinds=kinds)), CALLER, NOW) == lease
    assert leases.returning(ask(token(kinds=kinds), kind="toy"), CALLER, NOW) is None


def test_after_a_crash_no_slot_waits_for_a_kind_that_is_lent_for_no_more():
    leases = make_leases()
    leases.interrupted([Interrupted(UUID.format(1), CLIENT.peer_id, "toy", int(NOW) + 3600)], NOW)
    assert leases.free(NOW) == 1


def test_a_job_that_asks_for_no_memory_gets_what_there_is():
    assert make_leases().take(ask(token(), memory_mb=0), CALLER, NOW).memory_mb == 1024


BAD = {
    "expired": (ask(token(expires=int(NOW))), CALLER, TokenRefused),
    "for longer than a day": (ask(token(expires=int(NOW) + 86_400)), CALLER, TokenRefused),
    "too early": (ask(token(not_before=int(NOW) + 31)), CALLER, TokenRefused),
    "for another peer": (ask(token(peers=[STRANGER.peer_id])), CALLER, TokenRefused),
    "used by another key": (ask(token()), TokenHolder(STRANGER.peer_id, ADDRESS), TokenRefused),
    "from another address": (ask(token()), TokenHolder(CLIENT.peer_id, "192.0.2.9"), TokenRefused),
    "by a stranger": (ask(token(), signer=STRANGER), CALLER, TokenRefused),
    "for another issuer": (ask(token(issuer=STRANGER.peer_id)), CALLER, TokenRefused),
    "of another kind": (ask(token(kinds=["infer"])), CALLER, TokenRefused),
    "of a kind that is not known": (ask(token(kinds=["os"]), kind="os"), CALLER, VersionMismatch),
    "for too many cores": (ask(token(), cores=3), CALLER, Refused),
    "for too much memory": (ask(token(), memory_mb=1025), CALLER, Refused),
    "of another version": (msgspec.structs.replace(ask(token()), schema=""), CALLER, VersionMismatch),
    "nothing": (
        TakeLease(schema=SCHEMAS["train"], token=b"", job="j", kind="train", cores=1, memory_mb=1),
        CALLER,
        MalformedMessage,
    ),
    "endless": (
        TakeLease(schema=SCHEMAS["train"], token=b"x" * 9000, job="j", kind="train", cores=1, memory_mb=1),
        CALLER,
        MessageTooLarge,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_refused_and_changes_nothing(name):
    request, caller, error = BAD[name]
    leases = make_leases()
    with pytest.raises(error):
        leases.take(request, caller, NOW)
    assert leases.free(NOW) == 1
    leases.take(ask(token()), CALLER, NOW)


@settings(max_examples=60)
@given(st.data())
def test_a_flipped_bit_is_refused_wherever_it_is(data):
    good = encode_signed(TRACKER, token())
    position = data.draw(st.integers(0, len(good) * 8 - 1))
    bad = bytearray(good)
    bad[position // 8] ^= 1 << position % 8
    leases = make_leases()
    with pytest.raises((BadSignature, MalformedMessage, MessageTooLarge, TokenRefused)):
        leases.take(
            TakeLease(schema=SCHEMAS["train"], token=bytes(bad), job="j", kind="train", cores=1, memory_mb=1),
            CALLER,
            NOW,
        )
    assert leases.free(NOW) == 1


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(noise):
    with pytest.raises(AxonError):
        make_leases().take(
            TakeLease(schema=SCHEMAS["train"], token=noise, job="j", kind="train", cores=1, memory_mb=1), CALLER, NOW
        )


def test_a_token_signed_for_another_purpose_is_none():
    plain = token()
    envelope = sign(TRACKER, plain)
    other = Signed(
        signer=TRACKER.peer_id, payload=envelope.payload, signature=TRACKER.sign("axon/reserve/1", envelope.payload)
    )
    with pytest.raises(BadSignature):
        make_leases().take(
            TakeLease(schema=SCHEMAS["train"], token=encode(other), job="j", kind="train", cores=1, memory_mb=1),
            CALLER,
            NOW,
        )


def test_the_same_reservation_is_in_use_while_its_lease_lives():
    leases = make_leases(slots=2, free=2)
    lease = leases.take(ask(token()), CALLER, NOW)
    with pytest.raises(Busy, match="in use"):
        leases.take(ask(token()), CALLER, NOW)
    leases.ended(lease)
    assert leases.free(NOW) == 2
    leases.take(ask(token()), CALLER, NOW)


def test_no_slot_is_lent_twice_even_when_the_worker_outlives_its_time():
    leases = make_leases()
    lease = leases.take(ask(token(1)), CALLER, NOW)
    with pytest.raises(Busy):
        leases.take(ask(token(2)), CALLER, NOW)
    later = NOW + 200
    with pytest.raises(Busy):
        leases.take(ask(token(3, expires=int(later) + 100)), CALLER, later)
    leases.ended(lease)
    leases.take(ask(token(3, expires=int(later) + 100)), CALLER, later)


def test_a_peer_without_a_sandbox_refuses_and_says_why():
    leases = make_leases(refuses="no bubblewrap: apt install bubblewrap")
    with pytest.raises(Refused, match="apt install bubblewrap"):
        leases.take(ask(token()), CALLER, NOW)


def test_the_address_is_not_compared_when_the_volunteer_says_so():
    leases = Leases(PEER.peer_id, Lending(OFFER), check_address=False)
    leases.trust(TRACKER.peer_id)
    assert leases.take(ask(token()), TokenHolder(CLIENT.peer_id, "192.0.2.9"), NOW)


def test_after_a_crash_a_slot_waits_a_minute_for_its_client_and_for_nobody_else():
    leases = make_leases()
    leases.interrupted([Interrupted(UUID.format(1), CLIENT.peer_id, "train", int(NOW) + 3600)], NOW)
    assert leases.free(NOW) == 0
    with pytest.raises(Busy):
        leases.take(ask(token(2)), CALLER, NOW + 1)
    lease = leases.take(ask(token(1)), CALLER, NOW + 2)
    assert leases.free(NOW + 2) == 0
    leases.ended(lease)
    assert leases.free(NOW + 3) == 1


def test_a_client_that_does_not_come_back_loses_the_slot():
    leases = make_leases()
    leases.interrupted([Interrupted(UUID.format(1), CLIENT.peer_id, "train", int(NOW) + 3600)], NOW)
    assert leases.free(NOW + 61) == 1
    leases.take(ask(token(2)), CALLER, NOW + 61)


def test_no_new_lease_while_the_owner_needs_the_machine():
    lending = Lending(OFFER)
    leases = Leases(PEER.peer_id, lending, check_address=True)
    leases.trust(TRACKER.peer_id)
    assert lending.refuse("on battery (62 %)")
    assert not lending.refuse("on battery (61 %)")  # no news for others
    with pytest.raises(Refused, match=r"on battery \(62 %\)"):
        leases.take(ask(token()), CALLER, NOW)
    assert lending.refuse("")
    leases.take(ask(token()), CALLER, NOW)


def test_tokens_count_of_trackers_that_are_configured_or_vouched_for_and_only_as_long_as_they_are():
    settings_name, friends, strangers = (f"https://10.{number}.0.1:7070" for number in (1, 2, 3))
    friend = PrivateKey(b"f" * 32)
    health = TrackerHealth([settings_name])
    leases = Leases(PEER.peer_id, Lending(OFFER), check_address=True)
    leases.trackers = health.trusted

    def takes(issuer: PrivateKey, number: int) -> bool:
        try:
            lease = leases.take(ask(token(number, issuer=issuer.peer_id), signer=issuer), CALLER, NOW)
        except TokenRefused:
            return False
        leases.ended(lease)
        return True

    # The configured one answers; it says that there are two others, and a stranger's answers too.
    health.hear_vouching(settings_name, TRACKER.peer_id, None, NOW)
    for address, key in ((friends, friend), (strangers, STRANGER)):
        health.learn(address, NOW, key.peer_id)
        health.answered(address, NOW, tracker=key.peer_id)
    assert [takes(TRACKER, 1), takes(friend, 2), takes(STRANGER, 3)] == [True, False, False]
    # Its operator vouches for the one.
    health.hear_vouching(settings_name, TRACKER.peer_id, sign_vouching(TRACKER, {friend.peer_id: friends}, NOW), NOW)
    assert [takes(TRACKER, 4), takes(friend, 5), takes(STRANGER, 6)] == [True, True, False]
    # The friend vouches for the stranger, which counts nothing; then it is struck out itself.
    health.hear_vouching(friends, friend.peer_id, sign_vouching(friend, {STRANGER.peer_id: strangers}, NOW), NOW)
    assert not takes(STRANGER, 7)
    health.hear_vouching(settings_name, TRACKER.peer_id, sign_vouching(TRACKER, {}, NOW + 1), NOW + 1)
    assert [takes(TRACKER, 8), takes(friend, 9)] == [True, False]


def another(number: int, client: PrivateKey = STRANGER, address: str = "192.0.2.8"):
    """Another client's request, with a reservation of that number."""
    return ask(token(number, client=client.peer_id, client_address=address)), TokenHolder(client.peer_id, address)


def test_a_lease_under_which_nothing_is_done_gives_way_once_it_had_its_time():
    leases = make_leases()
    idle = leases.take(ask(token(1)), CALLER, NOW)
    leases.seen(idle, LEAST_AGE_S - 1, NOW + 50)
    with pytest.raises(Busy, match="every slot is taken"):
        leases.take(*another(2), NOW + 50)
    assert leases.free(NOW + 50) == 0
    leases.seen(idle, LEAST_AGE_S + 1, NOW + 52)
    assert leases.free(NOW + 52) == 1
    newer = leases.take(*another(3), NOW + 52)
    assert newer.instead_of == (idle.reservation,)
    assert leases.free(NOW + 52) == 0
    leases.ended(idle)
    with pytest.raises(Busy):
        leases.take(ask(token(4)), CALLER, NOW + 53)
    leases.ended(newer)
    assert leases.free(NOW + 53) == 1


def test_a_lease_that_is_worked_gives_way_to_nobody():
    leases = make_leases()
    lease = leases.take(ask(token(1)), CALLER, NOW)
    leases.seen(lease, 90, NOW + 95)
    leases.seen(lease, 0, NOW + 99)
    with pytest.raises(Busy):
        leases.take(*another(2), NOW + 99)


def test_one_client_and_one_household_leave_every_fourth_slot_to_others():
    leases = make_leases(slots=8, free=8)
    for number in range(6):
        leases.take(ask(token(number)), CALLER, NOW)
    with pytest.raises(TooOften, match="one key"):
        leases.take(ask(token(6)), CALLER, NOW)
    with pytest.raises(TooOften, match=ADDRESS):
        leases.take(*another(7, STRANGER, ADDRESS), NOW)
    leases.take(*another(8), NOW)


def test_who_does_not_pay_gets_no_lease_for_a_while_nor_does_its_household():
    leases = make_leases()
    lease = leases.take(ask(token(1)), CALLER, NOW)
    leases.ended(lease)
    leases.unworked(lease, NOW, unpaid=True)
    late = int(NOW + LONGEST_PAUSE_S) - 1
    with pytest.raises(TooOften, match="not worked here, or not paid"):
        leases.take(ask(token(2)), CALLER, NOW + 1)
    with pytest.raises(TooOften, match="not worked here, or not paid"):
        leases.take(ask(token(6, not_before=late, expires=late + 9)), CALLER, late)
    with pytest.raises(TooOften, match="not worked here, or not paid"):
        leases.take(*another(3, STRANGER, ADDRESS), NOW + 1)
    leases.ended(leases.take(*another(4), NOW + 1))
    later = int(NOW + LONGEST_PAUSE_S)
    leases.take(ask(token(5, not_before=later, expires=later + 9)), CALLER, later)


def test_a_reservation_that_is_not_used_for_long_is_void_and_one_that_was_used_is_not():
    leases, late = make_leases(), NOW + USED_WITHIN_S + 60
    with pytest.raises(TokenRefused, match="not used here within 15"):
        leases.take(ask(token(1, expires=int(late) + 99)), CALLER, late)
    used = ask(token(2, expires=int(late) + 99))
    leases.ended(leases.take(used, CALLER, NOW))
    leases.ended(leases.take(used, CALLER, late))
    leases.interrupted([Interrupted(UUID.format(3), CLIENT.peer_id, "train", int(late) + 99)], late)
    leases.take(ask(token(3, expires=int(late) + 99)), CALLER, late)


def test_who_holds_slots_for_nothing_waits_longer_each_time_until_it_pays():
    leases, now = make_leases(), NOW
    for number, pause in enumerate((1, 2, 4, 8, 16, 32, 60, 60), start=1):
        request = ask(token(number, not_before=int(now), expires=int(now) + 9999))
        lease = leases.take(request, CALLER, now)
        leases.ended(lease)
        leases.unworked(lease, now, unpaid=False)
        with pytest.raises(TooOften):
            leases.take(request, CALLER, now + pause * FIRST_PAUSE_S - 1)
        now += pause * FIRST_PAUSE_S
    leases.paid(lease)
    lease = leases.take(request, CALLER, now)
    leases.ended(lease)
    leases.unworked(lease, now, unpaid=False)
    leases.take(request, CALLER, now + FIRST_PAUSE_S)
