"""A job's own key: made from the client's key and the job's id, so that whoever has both has it (pure).

It reserves peers and signs receipts for this one job, at the host. Nobody who has it can make the client's key of it,
or that of another job: BLAKE2b (RFC 7693), keyed with the client's secret for a purpose of its own, leads one way only.
"""

from __future__ import annotations

import hashlib

from axonp2p.identity.keys import PrivateKey

_PERSON = b"axon/job-key/1"


def job_key(client: PrivateKey, job: str) -> PrivateKey:
    """The key of the client's job with that id."""
    seed = hashlib.blake2b(job.encode(), key=client.seed, digest_size=32, person=_PERSON).digest()
    return PrivateKey(seed)
