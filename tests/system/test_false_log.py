"""Two real trackers, one of which is rewritten by hand: the other one and `axon doctor` name it, with the proof."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.receipt import DoublySigned
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.table.tracker_client import announce, line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import sign
from tests.fakes import make_receipt, make_row, sign_both
from tests.laboratory.fork_server import fork_server
from tests.system.processes import Processes
from tests.unit.tracker.logs import rewrite

WITHIN_S = 60
CLIENT, PEER, ISSUER = (PrivateKey.generate() for _ in range(3))


def job(rounds: int) -> tuple[list[DoublySigned], bytes]:
    """Receipts, and the token that they stand on."""
    uuid, now = new_uuid(), int(time.time())
    token = Token(
        uuid=uuid,
        issuer=ISSUER.peer_id,
        client=CLIENT.peer_id,
        client_address="127.0.0.1",
        peers=[PEER.peer_id],
        kinds=["train"],
        not_before=now,
        expires=now + 600,
    )
    receipts = [sign_both(CLIENT, PEER, make_receipt(CLIENT, PEER, uuid, number + 1)) for number in range(rounds)]
    return receipts, encode(sign(ISSUER, token))


async def pay(address: str, rounds: int) -> None:
    receipts, token = job(rounds)
    async with line_to(PinnedAddress.parse(address)) as line:
        # On a reservation of a tracker that nobody knows: the peer has to be one that is known.
        await announce(line, sign(PEER, make_row(PEER, now=time.time(), sequence=int(time.time() * 1000))))
        assert (await hand_in(line, receipts, [token])).new == rounds


def ask(*words: object) -> dict[str, Any]:
    module, *rest = map(str, words)
    done = fork_server().run(module, [*rest, "--json"], 60)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def log_of_the_first(base: Path) -> str:
    """As the second tracker says."""
    (other,) = ask("tracker.main", "status", "--home", base / "second")["trackers"]
    return str(other["log"])


def until_it_says(base: Path, words: str) -> str:
    ends = time.monotonic() + WITHIN_S
    while words not in (said := log_of_the_first(base)):
        assert time.monotonic() < ends, said
        time.sleep(0.5)
    return said


def doctors_word(home: Path, *addresses: str) -> list[dict[str, Any]]:
    named = [word for address in addresses for word in ("--tracker", address)]
    checks: list[dict[str, Any]] = ask("client_cli.main", "doctor", "--home", home, *named)["checks"]
    return [check for check in checks if check["name"] == "ledger"]


async def test_a_rewritten_log_is_named_within_a_minute_and_after_restarts(tmp_path: Path):
    with Processes(tmp_path, "first") as swarm:
        first = swarm.tracker
        swarm.start_tracker("second", knows=[first])
        second = swarm.trackers["second"]
        await pay(first, 10)
        until_it_says(tmp_path, "10 entries")
        (good,) = doctors_word(tmp_path / "regular", first, second)
        assert good["state"] == "ok"

        swarm.kill("first")
        receipts, _ = job(1)
        rewrite(tmp_path / "first", lambda entries: [*entries[:3], encode(receipts[0]), *entries[4:]])
        swarm.start_tracker("first")
        await pay(first, 2)

        said = until_it_says(tmp_path, "FALSE")
        assert "its own proof does not lead from its 10 entries" in said
        for home in ("regular", "newcomer"):
            (bad,) = doctors_word(tmp_path / home, first, second)
            assert (bad["state"], bad["code"]) == ("fail", "AX-204")
            assert "rewrote its past" in bad["text"]

        swarm.stop("second")
        swarm.start_tracker("second", knows=[first])
        until_it_says(tmp_path, "FALSE")
        swarm.kill("first")
        assert "FALSE" in log_of_the_first(tmp_path)
