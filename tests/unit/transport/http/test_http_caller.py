"""Short questions over real HTTPS: answers, refusals, caps, and every way in which the network fails."""

from __future__ import annotations

import asyncio
import gzip
import ssl

import aiohttp
import msgspec
import pytest
from aiohttp import web

from axonp2p.errors import (
    AxonError,
    BadSignature,
    Busy,
    MalformedMessage,
    MessageTooLarge,
    Refused,
    SettingsError,
    StaleRow,
    TooOften,
    TrackerUnreachable,
    Unreachable,
)
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import read_message, reply
from axonp2p.transport.messages import Address, refusal_of
from axonp2p.wire.codec import Message


class Question(Message, frozen=True):
    text: str


class Answer(Message, frozen=True):
    text: str
    caller: str


async def echo(request: web.Request) -> web.Response:
    question = await read_message(request, Question, 1000)
    return reply(Answer(text=question.text, caller=request.remote or ""))


def routes(**handlers: object):
    """Adds `POST /v1/echo` and `GET /NAME` for each handler."""

    def prepare(app: web.Application) -> None:
        app.router.add_post("/v1/echo", echo)
        for name, handler in handlers.items():
            app.router.add_get(f"/{name}", handler)

    return prepare


async def test_a_question_is_answered_over_a_connection_that_is_kept(hosts) -> None:
    host = await hosts.start(prepare=routes())
    async with HttpCaller(host.address, called="tracker lab", local_address="127.0.0.2") as caller:
        for text in ("one", "two"):
            answer = await caller.call("/v1/echo", Question(text=text), Answer, 1000)
            assert answer == Answer(text=text, caller="127.0.0.2")
        assert 0 < await caller.round_trip() < 5


async def test_what_is_no_message_is_fetched_as_it_is_up_to_its_cap(hosts) -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="x" * 100)

    host = await hosts.start(prepare=routes(page=page))
    async with HttpCaller(host.address, called="tracker lab") as caller:
        assert await caller.fetch("/page", 100) == b"x" * 100
        with pytest.raises(MessageTooLarge):
            await caller.fetch("/page", 99)
        with pytest.raises(Refused, match="not found"):
            await caller.fetch("/nowhere", 100)


@pytest.mark.parametrize(
    ("raised", "status", "seen"),
    [
        (StaleRow("too old", cause="a reason", fix="a cure"), 409, StaleRow),
        (Busy("full"), 503, Busy),
        (Refused("no"), 403, Refused),
        (BadSignature("forged"), 403, BadSignature),
        (MalformedMessage("rubbish"), 400, MalformedMessage),
        (MessageTooLarge("much"), 413, MessageTooLarge),
    ],
)
async def test_refusals_keep_their_class_words_and_status(hosts, raised, status, seen) -> None:
    async def refuse(request: web.Request) -> web.Response:
        raise raised

    host = await hosts.start(prepare=routes(no=refuse))
    async with HttpCaller(host.address, called="tracker lab") as caller:
        with pytest.raises(seen) as caught:
            await caller.call("/no", None, Answer, 1000)
    assert caught.value.message == f"tracker lab: {raised.message}"
    assert (caught.value.cause, caught.value.fix) == (raised.cause, raised.fix)
    assert await plain_status(host, "/no") == status


async def test_who_is_busy_says_for_how_long(hosts) -> None:
    async def refuse(request: web.Request) -> web.Response:
        raise TooOften("enough", wait_s=41.5)

    host = await hosts.start(prepare=routes(no=refuse))
    async with HttpCaller(host.address, called="tracker lab") as caller:
        with pytest.raises(TooOften) as caught:
            await caller.call("/no", None, Answer, 1000)
    assert caught.value.wait_s == 42
    assert await plain_status(host, "/no") == 429


async def plain_status(host, path: str, method: str = "GET", **more: object) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = host.address.url + path
    async with aiohttp.ClientSession() as client, client.request(method, url, ssl=context, **more) as response:
        return response.status


async def test_errors_of_ours_stay_ours(hosts) -> None:
    async def stumble(request: web.Request) -> web.Response:
        raise RuntimeError("the secret is 42")

    async def misconfigured(request: web.Request) -> web.Response:
        raise SettingsError("/home/me/secret is missing")

    host = await hosts.start(prepare=routes(stumble=stumble, misconfigured=misconfigured))
    async with HttpCaller(host.address, called="tracker lab") as caller:
        for path in ("/stumble", "/misconfigured"):
            with pytest.raises(Refused) as caught:
                await caller.call(path, None, Answer, 1000)
            assert "secret" not in f"{caught.value.message}{caught.value.cause}{caught.value.fix}"
            assert await plain_status(host, path) == 500


async def test_unknown_paths_and_methods_are_refused_in_our_form(hosts) -> None:
    host = await hosts.start(prepare=routes())
    async with HttpCaller(host.address, called="tracker lab") as caller:
        with pytest.raises(Refused, match="GET /v1/nothing: not found"):
            await caller.call("/v1/nothing", None, Answer, 1000)
        with pytest.raises(Refused, match="GET /v1/echo: method not allowed"):
            await caller.call("/v1/echo", None, Answer, 1000)
    assert await plain_status(host, "/v1/nothing") == 404
    assert await plain_status(host, "/v1/echo") == 405


async def test_bodies_are_bounded_on_both_sides(hosts) -> None:
    host = await hosts.start(prepare=routes())
    async with HttpCaller(host.address, called="tracker lab") as caller:
        with pytest.raises(MessageTooLarge, match="tracker lab: a body of"):
            await caller.call("/v1/echo", Question(text="x" * 2000), Answer, 1000)
        with pytest.raises(MessageTooLarge, match="tracker lab answers with more than 100 bytes"):
            await caller.call("/v1/echo", Question(text="x" * 500), Answer, 100)

    async def endless():
        while True:
            yield bytes(1000)

    assert await plain_status(host, "/v1/echo", "POST", data=endless()) == 413


async def test_nothing_is_unfolded_before_it_is_measured(hosts) -> None:
    bomb = gzip.compress(bytes(1_000_000))

    async def explode(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    host = await hosts.start(prepare=routes(explode=explode))
    async with HttpCaller(host.address, called="tracker lab") as caller:
        with pytest.raises(MalformedMessage, match="tracker lab"):
            await caller.call("/explode", None, Answer, len(bomb))
    assert await plain_status(host, "/v1/echo", "POST", data=bomb, headers={"Content-Encoding": "gzip"}) in (400, 413)


@pytest.mark.parametrize(
    "response", [web.Response(status=502, text="a proxy speaks"), web.HTTPFound("https://elsewhere.example.org")]
)
async def test_who_is_no_tracker_is_unreachable(hosts, response) -> None:
    @web.middleware
    async def always(request: web.Request, handler: object) -> web.StreamResponse:
        return web.Response(status=response.status, headers=response.headers, body=b"a proxy speaks")

    host = await hosts.start(prepare=lambda app: app.middlewares.insert(0, always))
    async with HttpCaller(host.address, called="tracker lab", unreachable=TrackerUnreachable) as caller:
        with pytest.raises(TrackerUnreachable) as caught:
            await caller.call("/v1/echo", Question(text=""), Answer, 1000)
        assert str(response.status) in caught.value.cause
        with pytest.raises(TrackerUnreachable):
            await caller.round_trip()


async def test_another_certificate_is_not_spoken_to(hosts) -> None:
    asked = []

    async def listen(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response()

    host = await hosts.start(prepare=routes(listen=listen))
    async with HttpCaller(PinnedAddress.of(host.host_port, bytes(32)), called="tracker lab") as caller:
        with pytest.raises(BadSignature, match="another certificate answers at"):
            await caller.call("/listen", None, Answer, 1000)
    async with HttpCaller(PinnedAddress("127.0.0.1", host.listener.port, None), called="tracker lab") as caller:
        with pytest.raises(Unreachable) as caught:
            await caller.call("/listen", None, Answer, 1000)
        assert caught.value.cause.startswith("the address lacks #FINGERPRINT")
        assert "https://HOST:PORT#FINGERPRINT" in caught.value.fix
    assert not asked


async def test_a_closed_port_and_a_silent_host(hosts) -> None:
    host = await hosts.start()
    await host.listener.stop()
    async with HttpCaller(host.address, called="tracker lab", unreachable=TrackerUnreachable) as caller:
        with pytest.raises(TrackerUnreachable, match="tracker lab cannot be reached") as caught:
            await caller.round_trip()
        assert caught.value.cause == "connection refused"

    held = []  # from 3.13 on a writer that nobody holds closes its connection
    silent = await asyncio.start_server(lambda reader, writer: held.append(writer), "127.0.0.1", 0)
    address = PinnedAddress("127.0.0.1", silent.sockets[0].getsockname()[1], bytes(32))
    async with HttpCaller(address, called="tracker lab", timeout_s=0.1) as caller:
        with pytest.raises(Unreachable) as caught:
            await caller.call("/v1/echo", None, Answer, 1000)
        assert caught.value.cause == "no answer in time"
    silent.close()


async def test_what_does_not_speak_tls_is_said_so() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    plain = await asyncio.start_server(shout, "127.0.0.1", 0)
    address = PinnedAddress("127.0.0.1", plain.sockets[0].getsockname()[1], bytes(32))
    async with HttpCaller(address, called="tracker lab") as caller:
        with pytest.raises(Unreachable) as caught:
            await caller.round_trip()
    assert caught.value.cause == "it does not speak TLS 1.3"
    plain.close()


async def test_a_tracker_that_restarted_is_called_again_at_once(hosts) -> None:
    host = await hosts.start(prepare=routes())
    async with HttpCaller(host.address, called="tracker lab") as caller:
        await caller.call("/v1/echo", Question(text="one"), Answer, 1000)
        port = host.listener.port
        await host.listener.stop()
        again = hosts.make(host.key)
        routes()(again.app)
        await again.listener.start("127.0.0.1", port)
        assert (await caller.call("/v1/echo", Question(text="two"), Answer, 1000)).text == "two"


async def test_what_a_stranger_named_is_dialled_only_where_the_policy_allows_it():
    known_publicly = DialPolicy(lambda: ["8.8.8.8"])
    for host in ("127.0.0.1", "localhost"):  # a name is judged by what it leads to
        async with HttpCaller(PinnedAddress(host, 9, bytes(32)), called="tracker x", policy=known_publicly) as line:
            with pytest.raises(Unreachable, match="tracker x cannot be reached") as caught:
                await line.round_trip()
        assert "refused" not in caught.value.in_a_line


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".local", ".", "..", "-", "::::", "1.2.3.4.5"])
async def test_a_host_that_no_name_server_can_be_asked_for_is_unreachable(host: str) -> None:
    async with HttpCaller(PinnedAddress(host, 1, bytes(32)), called="a tracker", timeout_s=2) as caller:
        with pytest.raises(Unreachable):
            await caller.round_trip()


@pytest.mark.parametrize("text", ["a..b:1", ".:1", "a" * 64 + ":1", "a:1\n", "[:]:1", "a:123456"])
def test_such_addresses_are_none(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Address)


def test_strangers_hear_of_a_mistake_of_ours_that_it_was_one_and_no_more() -> None:
    told = refusal_of(AxonError("a mistake of ours in a look", cause="KeyError: 'secret'"))
    assert "secret" not in repr(told)
    assert told.code == Refused.code
