"""Ask a tracker, or a peer for itself, for a token, and check that it is the one asked for."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence

from axonp2p.errors import PeerMisbehaved
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.reservation.token import ReserveRequest, Token, TokenGiven
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed, open_signed, sign

RESERVE_PATH = "/v1/reserve"
_ANSWER_LIMIT = Token.LIMIT + 2 * ENVELOPE_OVERHEAD


def new_uuid() -> str:
    """A random UUID (version 4), for a reservation."""
    return str(uuids.uuid4())


async def reserve(
    caller: HttpCaller,
    key: PrivateKey,
    peers: Sequence[PeerId],
    *,
    uuid: str,
    kinds: Sequence[str],
    seconds: int,
    now: float,
    issuer: PeerId = "",
) -> Signed[Token]:
    """A token for `peers`, valid for `seconds` from now on. The same `uuid` and wish again gives the same token.

    `now` is Unix time. A peer issues tokens for itself alone: `issuer` names it then. Raises `Refused` with the
    reason, `PeerMisbehaved` when the answer is another token than the one asked for, and what `HttpCaller.call` raises.
    """
    request = ReserveRequest(uuid=uuid, peers=list(peers), kinds=list(kinds), seconds=seconds, time=int(now))
    answer = await caller.call(RESERVE_PATH, sign(key, request), TokenGiven, _ANSWER_LIMIT)
    token = open_signed(answer.token, Token)
    asked = (uuid, key.peer_id, request.peers, request.kinds)
    wrong_issuer = token.issuer != answer.token.signer or (issuer and token.issuer != issuer)
    if wrong_issuer or (token.uuid, token.client, token.peers, token.kinds) != asked:
        raise PeerMisbehaved(f"{caller.called} answers with another token than the one asked for")
    return answer.token
