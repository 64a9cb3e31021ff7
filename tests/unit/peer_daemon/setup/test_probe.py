"""Which trackers setup offers a fingerprint for: real listeners on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from axonp2p.clock import SystemClock
from axonp2p.errors import Busy
from axonp2p.identity.certificate import Certificate, authority_certificate, make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions.listener import Listener
from peer_daemon.setup.probe import try_trackers
from peer_daemon.setup.tracker_trial import TrackerTrial
from tests.laboratory.authority import Authority


async def _tried(certificate: Certificate) -> TrackerTrial:
    """A tracker with that certificate, which starts just now, called by its address without a fingerprint."""

    async def starts(request: web.Request) -> web.Response:
        raise Busy("this tracker starts just now")

    app = web.Application()
    add_ping(app)
    app.router.add_get("/v1/health", starts)
    listener = Listener(PrivateKey.generate(), certificate, app)
    port = await listener.start("127.0.0.1", 0)
    try:
        [trial] = await try_trackers([str(PinnedAddress("127.0.0.1", port, None))], SystemClock())
    finally:
        await listener.stop()
    return trial


async def test_the_trackers_own_certificate_is_offered_to_the_owner(tmp_path: Path) -> None:
    certificate = make_certificate(PrivateKey.generate(), tmp_path / "certificate.pem")
    trial = await _tried(certificate)
    assert trial.presented == certificate.fingerprint
    assert "lacks #FINGERPRINT" in trial.text


@pytest.mark.parametrize(
    ("hosts", "days", "said"),
    [
        (("127.0.0.1",), 10, "starts just now"),
        (("127.0.0.1",), -1, "its certificate has expired"),
        (("localhost",), 10, "its certificate is for another host name"),
    ],
)
async def test_an_authoritys_certificate_is_never_offered_it_is_another_one_next_month(
    authority: Authority, hosts: tuple[str, ...], days: float, said: str
) -> None:
    signed = authority.sign(*hosts, days=days)
    trial = await _tried(authority_certificate(signed.certificate, signed.key))
    assert trial.offered == ""
    assert said in trial.text
    assert "FINGERPRINT" not in trial.text
