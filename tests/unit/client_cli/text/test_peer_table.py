"""What `axon peers` shows of a survey, and of what changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.queries import PeerState, SeenPeer, Survey
from axonp2p.table.sightings import DHT, SourceAnswer
from client_cli.context import Context
from client_cli.text.peer_table import changes, survey_text
from client_cli.text.render import age_text
from client_cli.watching import watch as watching
from client_cli.watching.watch import survey_data
from tests.fakes import make_offer

ONE, TWO = "tracker 127.0.0.1:7070", "tracker 127.0.0.1:7071"


def peer(name: str = "otter", **changes: Any) -> SeenPeer:
    usual: dict[str, Any] = {"rtt_s": 0.0012, "age_s": 252.0, "sources": (TWO, ONE, DHT)}
    offer = changes.pop("offer", make_offer())
    return SeenPeer(name, name[0] * 52, ("127.0.0.1:4001",), offer, **(usual | changes))


def answer(source: str, **changes: Any) -> SourceAnswer:
    usual: dict[str, Any] = {"seconds": 0.012, "fitting": 1, "alive": 4}
    return SourceAnswer(source, **(usual | changes))


def survey(*peers: SeenPeer, answers: list[SourceAnswer] | None = None, silent: dict[str, str] | None = None) -> Survey:
    return Survey(list(peers), answers or [answer(TWO), answer(ONE), answer(DHT)], silent or {})


def test_a_line_a_peer_with_state_distance_age_and_sources() -> None:
    lines = survey_text(survey(peer()), wide=False).splitlines()
    assert " ".join(lines[0].split()) == "peer id state rtt cores memory GFLOPS free GPU trust row from"
    assert " ".join(lines[1].split()) == "otter oooooooo free 1.2 ms 4 8 GiB 40 2 of 2 - new 4 min 1 2 dht"
    assert lines[2] == "1 peer, 1 free"
    assert any(line.startswith(f"1 = {ONE}") for line in lines)
    assert any(line.startswith(f"2 = {TWO}") for line in lines)


def test_what_is_wrong_is_said_in_place() -> None:
    dead = answer(TWO, trouble="connection refused")
    text = survey_text(
        survey(
            peer("lynx", state=PeerState.REFUSING, offer=make_offer(refuses="no sandbox"), rtt_s=None, estimate_s=0.03),
            peer("wren", state=PeerState.SILENT, rtt_s=None, age_s=None, sources=(ONE,), stale=(DHT,)),
            answers=[answer(ONE, dropped=2), dead],
            silent={"q" * 52: "no answer"},
        ),
        wide=False,
    )
    assert "refusing: no sandbox" in text
    assert "~30 ms" in text
    assert "1 dht (older)" in text
    assert "connection refused" in text
    assert "2 rows of it were not to be believed" in text
    assert "qqqqqqqq   no answer" in text


def test_the_wide_table_has_every_capability_and_no_column_out_of_place() -> None:
    offer = make_offer(datasets=["imagenet-64"], upload_mbit=20)
    text = survey_text(survey(peer(offer=offer)), wide=True)
    head, line = text.splitlines()[:2]
    assert "\npackages of otter: numpy 2.4.6, torch 2.13.0\n" in text
    for word in ("imagenet-64", "20 Mbit/s", "3.11.2", "127.0.0.1:4001", "4 GiB"):
        assert word in line
    assert line.index("imagenet-64") == head.index("data")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("wide", [False, True])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int, wide: bool) -> None:
    packages = {f"package-{number}": "2026.10.1+cu130" for number in range(32)}
    offer = make_offer(datasets=["imagenet-64", "text"], packages=packages, refuses="paused by its owner until 15:19")
    peers = [peer(name, offer=offer, state=PeerState.REFUSING) for name in ("otter", "wren", "marten-5lbt")]
    text = survey_text(survey(*peers), wide=wide, width=width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("otter", "refusing: paused by its owner until 15:…", "8 GiB", "4 min", "2 of 2"):
        assert word in text
    if wide:
        assert "127.0.0.1:4001" in text
        # Machines that have the same packages name them once.
        assert text.count("package-31 2026.10.1+cu130") + text.count("package-31\n  2026.10.1+cu130") == 1
        assert "packages of otter, wren, marten-5lbt: " in text


def test_in_a_pipe_a_peer_is_one_line() -> None:
    lines = survey_text(survey(peer("otter"), peer("wren")), wide=True).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["otter", "wren"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [([answer(ONE, alive=7)], "7 peers known, none meets this need"), ([answer(ONE, alive=0)], "axon-peer run")],
)
def test_nobody(answers: list[SourceAnswer], words: str) -> None:
    assert words in survey_text(survey(answers=answers), wide=False)


def test_how_far_guesses_are_from_what_was_measured() -> None:
    peers = [peer(rtt_s=0.1, estimate_s=guess) for guess in (0.09, 0.12, 0.15, None)]
    assert "off by 20% (median)" in survey_text(survey(*peers), wide=False)
    assert "off by" not in survey_text(survey(*peers[:2]), wide=False), "two say little"


def test_a_part_of_a_large_swarm_is_called_a_part() -> None:
    text = survey_text(survey(peer(), answers=[answer(ONE, fitting=5200), answer(DHT)]), wide=False)
    assert "1 of 5,200 peers, 1 free" in text


def test_changes_between_two_looks() -> None:
    before = survey(peer("otter"), peer("wren"), peer("lynx"), answers=[answer(ONE), answer(TWO)])
    after = survey(
        peer("otter", state=PeerState.BUSY),
        peer("lynx"),
        peer("hare"),
        answers=[answer(ONE), answer(TWO, trouble="connection refused")],
    )
    assert changes(before, after) == [
        "hare is there: free",
        "wren is gone",
        "otter: free, now busy",
        f"{TWO}: connection refused",
    ]
    assert f"{TWO}: answers" in changes(after, before)
    assert changes(before, before) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_watching_without_a_terminal_is_a_line_a_change_or_json(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([survey(peer("otter")), survey(peer("otter", state=PeerState.BUSY))])
    monkeypatch.setattr(watching, "EVERY_S", 0.0)
    with pytest.raises(StopIteration):
        watching.look_again_and_again(lambda: next(looks), Context(tmp_path, as_json), wide=False)
    lines = capsys.readouterr().out.splitlines()
    if as_json:
        assert [json.loads(line)["peers"][0]["state"] for line in lines] == ["free", "busy"]
    else:
        assert [line.partition("  ")[2] for line in lines] == ["otter is there: free", "otter: free, now busy"]


def test_its_data_has_every_source() -> None:
    data = json.loads(json.dumps(survey_data(survey(peer(), silent={"q" * 52: "no answer"}))))
    assert data["peers"][0]["state"] == "free"
    assert data["peers"][0]["offer"]["cores"] == 4
    assert [source["source"] for source in data["sources"]] == [TWO, ONE, DHT]
    assert data["silent"] == {"q" * 52: "no answer"}
    assert msgspec.to_builtins(peer())["sources"] == (TWO, ONE, DHT)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (12.4, "12 s"), (59, "59 s"), (75, "1 min"), (252, "4 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert age_text(seconds) == text
