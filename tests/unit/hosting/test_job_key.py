"""A job's own key."""

from __future__ import annotations

from axonp2p.hosting.host import job_key
from tests.fakes import key_of

ADA = key_of("ada")


def test_who_has_the_clients_key_and_the_jobs_id_has_the_jobs_key() -> None:
    assert job_key(ADA, "digits-7f3a").seed == job_key(key_of("ada"), "digits-7f3a").seed


def test_each_job_and_each_client_has_another_one() -> None:
    keys = [job_key(ADA, "digits-7f3a"), job_key(ADA, "digits-7f3b"), job_key(key_of("bob"), "digits-7f3a"), ADA]
    assert len({key.peer_id for key in keys}) == 4


def test_it_stays_what_it_is() -> None:
    """A job that is hosted now must be found by the next version too."""
    assert job_key(ADA, "digits-7f3a").peer_id == GOLDEN


GOLDEN = "cb5t5w4t4so3bppag3l72gsgdupq5talczzqjr6ijpowo343z4kq"
