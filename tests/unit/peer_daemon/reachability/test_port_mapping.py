"""A router is asked for a port only where that is wanted and can be, and the owner is told what came of it."""

from __future__ import annotations

import pytest
from aiohttp import web

from axonp2p.errors import Refused, Unreachable
from peer_daemon.reachability.port_mapping import LEASE_S, NOT_INSTALLED, OFF, ONE_ADDRESS, PortMapping, port_mapping

DESCRIPTION = """<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion><device>
<deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><friendlyName>box</friendlyName>
<manufacturer>m</manufacturer><modelName>m</modelName><UDN>uuid:1</UDN><serviceList><service>
<serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>
<serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId><controlURL>/control</controlURL>
<eventSubURL>/events</eventSubURL><SCPDURL>/scpd.xml</SCPDURL></service></serviceList></device></root>"""


def _action(name: str, *arguments: tuple[str, str]) -> tuple[str, str]:
    told = "".join(
        f"<argument><name>{one}</name><direction>in</direction><relatedStateVariable>{kind}</relatedStateVariable>"
        "</argument>"
        for one, kind in arguments
    )
    return name, f"<action><name>{name}</name><argumentList>{told}</argumentList></action>"


_HEAD = (("NewRemoteHost", "Text"), ("NewExternalPort", "Port"), ("NewProtocol", "Text"))
_TAIL = (
    *(("NewInternalPort", "Port"), ("NewInternalClient", "Text"), ("NewEnabled", "Flag")),
    *(("NewPortMappingDescription", "Text"), ("NewLeaseDuration", "Seconds")),
)
ACTIONS = dict([_action("AddPortMapping", *_HEAD, *_TAIL), _action("DeletePortMapping", *_HEAD)])
_KINDS = {"Text": "string", "Port": "ui2", "Flag": "boolean", "Seconds": "ui4"}
SCPD = (
    '<?xml version="1.0"?><scpd xmlns="urn:schemas-upnp-org:service-1-0"><specVersion><major>1</major>'
    f"<minor>0</minor></specVersion><actionList>{''.join(ACTIONS.values())}</actionList><serviceStateTable>"
    + "".join(
        f'<stateVariable sendEvents="no"><name>{name}</name><dataType>{kind}</dataType></stateVariable>'
        for name, kind in _KINDS.items()
    )
    + "</serviceStateTable></scpd>"
)


class Box:
    """A home router, as far as UPnP asks for it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.willing = True

    async def control(self, request: web.Request) -> web.Response:
        action = request.headers["SOAPAction"].strip('"').rpartition("#")[2]
        self.heard.append((action, await request.text()))
        kind = "urn:schemas-upnp-org:service:WANIPConnection:1"
        if self.willing:
            body = f'<u:{action}Response xmlns:u="{kind}"/>'
        else:
            body = (
                "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>"
                '<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>718</errorCode>'
                "<errorDescription>ConflictInMappingEntry</errorDescription></UPnPError></detail></s:Fault>"
            )
        envelope = (
            f'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>{body}</s:Body></s:Envelope>'
        )
        return web.Response(text=envelope, content_type="text/xml", status=200 if self.willing else 500)


@pytest.fixture
async def box():
    box, app = Box(), web.Application()

    def page(text: str):
        async def answer(request: web.Request) -> web.Response:
            return web.Response(text=text, content_type="text/xml")

        return answer

    app.router.add_get("/description.xml", page(DESCRIPTION))
    app.router.add_get("/scpd.xml", page(SCPD))
    app.router.add_post("/control", box.control)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    box.location = f"http://127.0.0.1:{runner.addresses[0][1]}/description.xml"
    yield box
    await runner.cleanup()


@pytest.fixture
def upnp():
    pytest.importorskip("async_upnp_client", reason="axonp2p[upnp] is not installed")
    from peer_daemon.reachability import upnp

    return upnp


async def test_the_router_forwards_both_ports_and_gets_them_back(box, upnp):
    mapping = PortMapping(lambda: upnp.router_at(box.location))
    await mapping.open(7071)
    assert mapping.state == "forwards port 7071 (UPnP)"
    assert [action for action, _ in box.heard] == ["AddPortMapping"] * 2
    assert "<NewInternalClient>127.0.0.1</NewInternalClient>" in box.heard[0][1]
    assert f"<NewLeaseDuration>{LEASE_S}</NewLeaseDuration>" in box.heard[0][1]
    await mapping.close()
    assert [action for action, _ in box.heard[2:]] == ["DeletePortMapping"] * 2


async def test_a_router_that_says_no_is_named_with_its_reason(box, upnp):
    box.willing = False
    mapping = PortMapping(lambda: upnp.router_at(box.location))
    await mapping.open(7071)
    assert mapping.state.startswith("the router does not forward the port (")
    await mapping.close()
    assert len(box.heard) == 1  # there is nothing to give back


async def test_only_a_router_of_this_network_is_asked(upnp):
    assert upnp._is_own_network("http://192.168.1.1:80/x.xml", "192.168.1.1")
    assert not upnp._is_own_network("http://192.168.1.7:80/x.xml", "192.168.1.1")
    assert not upnp._is_own_network("http://8.8.8.8:80/x.xml", "8.8.8.8")
    assert not upnp._is_own_network("http://router/x.xml", "router")
    with pytest.raises(Unreachable):
        await upnp.router_at("http://127.0.0.1:1/x.xml")


async def test_what_is_not_wanted_or_not_installed_is_said(monkeypatch):
    off = port_mapping(wanted=False, everywhere=True)
    await off.open(7071)
    assert off.state == OFF
    assert port_mapping(wanted=True, everywhere=False).state == ONE_ADDRESS
    monkeypatch.setattr("peer_daemon.reachability.port_mapping.find_spec", lambda name: None)
    assert port_mapping(wanted=True, everywhere=True).state == NOT_INSTALLED


async def test_a_later_no_is_told_too():
    answers = [None, Refused("the router does not forward the port")]

    class Moody:
        async def forward(self, port, protocol, seconds):
            if protocol == "TCP" and (error := answers.pop(0)):
                raise error

        async def give_back(self, port, protocol):
            raise Unreachable("the router does not answer")

    async def find():
        return Moody()

    mapping = PortMapping(find)
    await mapping.open(7071)
    await mapping.open(7071)
    assert mapping.state == "the router does not forward the port"
    await mapping.close()
