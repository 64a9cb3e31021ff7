"""The page as it first comes: whole without a script, true in each state."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import msgspec
import pytest

from axonp2p.transport.http.own_page import LOOK
from peer_daemon.control.status import Carried, HistoryTold, LedgerNow, LogNow, Status
from peer_daemon.page import words
from peer_daemon.page.headline import headline
from peer_daemon.page.render import page
from tests.laboratory.paper_steering import DAY, DIGITS, NOON, STATES, TRAINING, changed

NOTHING = HistoryTold(spans=[], happenings=[])


def html(status: Status, told: HistoryTold = DAY) -> str:
    return page(status, told, lambda at: datetime.fromtimestamp(at, UTC))


class Reader(HTMLParser):
    """Reads a page as a person does, and notes what a strict policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.fields: set[str] = set()
        self.forbidden: list[str] = []
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in = tag
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag == "label":
            self.labels.add(given.get("for") or "")
        if tag in ("input", "textarea"):
            self.fields.add(given.get("id") or "")
        self.forbidden += [name for name in given if name == "style" or name.startswith("on")]
        self.forbidden += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []
        self.forbidden += [
            url for url in (given.get("src"), given.get("href")) if url and not url.startswith(("/", "#"))
        ]

    def handle_data(self, data: str) -> None:
        self.words += data.split() if self._in not in ("script",) else []

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read(status: Status, told: HistoryTold = DAY) -> Reader:
    reader = Reader()
    reader.feed(html(status, told))
    return reader


@pytest.mark.parametrize("name", STATES)
def test_each_state_says_its_word_its_sentence_and_shows_its_sign(name: str) -> None:
    status = STATES[name]
    reader = read(status)
    first = headline(status)
    assert f"<title>{first.word} - otter</title>" in html(status)
    assert first.word in reader.text
    assert first.sentence in reader.text
    assert f'href="/icon/{first.look}.svg"' in html(status)


@pytest.mark.parametrize("name", STATES)
def test_nothing_that_the_policy_forbids_stands_in_it(name: str) -> None:
    reader = read(STATES[name])
    assert reader.forbidden == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.fields == reader.labels


def test_a_running_job_is_told_in_numbers() -> None:
    text = read(TRAINING).text
    for part in (
        "digits-7f3a",
        "running",
        "2 of 4",
        "611 MiB of 4 GiB",
        "1 h 28 min more",
        "58 °C",
        "Rounds done 14",
    ):
        assert part in text, part


def test_a_frozen_job_is_told_as_frozen() -> None:
    assert "frozen" in read(STATES["waiting"]).text


def test_what_the_machine_does_not_tell_is_a_dash() -> None:
    bare = msgspec.structs.replace(
        TRAINING.machine, memory_free_mb=None, disk_free_mb=None, on_battery=None, temperature_c=None, input_idle_s=None
    )
    text = read(changed(machine=bare)).text
    for part in ("Temperature -", "Power -", "Disk free -", "Keyboard/mouse idle -", "Memory free - of"):
        assert part in text, part


def test_without_a_sandbox_it_names_the_mending() -> None:
    text = read(STATES["refused"]).text
    assert "No sandbox: this computer cannot run jobs" in text
    assert "Fix: sudo sysctl -w kernel.unprivileged_userns_clone=1" in text


def test_not_findable_and_unreachable_are_said_large() -> None:
    assert "Not findable: nobody can send this peer work" in read(STATES["not findable"]).text
    text = read(STATES["unreachable"]).text
    assert "Unreachable: others cannot call this computer" in text
    assert "port 7071" in text
    assert 'class="banner' not in html(TRAINING).partition("<main")[2]


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        ("training", {"pause-900", "pause-3600", "pause-7200", "finish", "stop"}),
        ("ready", {"pause-900", "pause-3600", "pause-7200", "stop"}),
        ("paused", {"resume", "pause-900", "pause-3600", "pause-7200", "stop"}),
        ("finishing", {"resume", "stop"}),
        ("refused", set()),
    ],
)
def test_a_state_has_the_buttons_that_mean_something_in_it(state: str, buttons: set[str]) -> None:
    found = re.findall(r'<button type="button" id="([a-z0-9-]+)"[^>]* disabled', html(STATES[state]))
    assert set(found) == buttons


def test_a_pause_says_its_end() -> None:
    assert "until 13:55 (in 1 h 55 min)" in read(STATES["paused"]).text


def test_tables_stand_behind_the_pictures() -> None:
    reader = read(TRAINING)
    assert "somebody sits at the machine" in reader.text
    assert html(TRAINING).count("data-earned=") == 30


def test_the_last_jobs_are_told_with_what_is_pending_apart():
    text = read(TRAINING).text
    assert "digits-7f3a 11:59 14 9.1, 6.4 pending" in text
    assert "text-11c0 08:06 71 88.4" in text
    assert "digits-02b6 Tue 7 Oct 6 3.7" in text


def test_whether_trackers_proved_the_receipts_is_told_with_the_time():
    text = read(TRAINING).text
    proved = "lab.local:7070 : 6 receipts that were picked are proved to be in its log of 88,123 receipts."
    assert f"11:40 ● {proved} It counts 412.0 credits of this peer." in text
    wrong = LogNow(tracker="lab.local:7070", at=NOON, wrong="its log is false: two logs of 5 entries", counts=3.0)
    text = read(changed(ledger=LedgerNow(logs=[wrong]))).text
    assert "12:00 ▲ lab.local:7070 : its log is false: two logs of 5 entries" in text
    silent = LedgerNow(silent="tracker lab: does not answer", silent_at=NOON)
    assert "At 12:00 nothing could be checked: tracker lab: does not answer." in read(changed(ledger=silent)).text
    assert "Not yet: a few receipts are looked up" in read(changed(ledger=LedgerNow())).text


def test_a_new_peer_has_nothing_to_boast_of() -> None:
    fresh = changed(
        state="ready",
        jobs=[],
        credits=msgspec.structs.replace(
            TRAINING.credits, today=0.0, confirmed=0.0, pending=0.0, days=[0.0] * 30, jobs=[]
        ),
        ledger=LedgerNow(),
        done=msgspec.structs.replace(TRAINING.done, jobs=0, rounds=0, samples=0, flops=0),
        network=msgspec.structs.replace(TRAINING.network, trackers=[]),
    )
    text = read(fresh, NOTHING).text
    for part in (
        "No round of this machine has been accepted yet.",
        "No job runs on this machine.",
        "None is known.",
        "No receipt yet.",
        "Nothing is confirmed yet.",
    ):
        assert part in text, part


def test_a_strangers_name_for_a_job_stays_a_name() -> None:
    evil = msgspec.structs.replace(DIGITS, job="<img src=x onerror=alert(1)>")
    assert "<img" not in html(changed(jobs=[evil]))


def test_words_for_numbers() -> None:
    assert [words.duration(s) for s in (-5, 0, 59.4, 61, 3599, 3660, 7200, 200_000)] == [
        "0 s", "0 s", "59 s", "1 min", "1 h", "1 h 1 min", "2 h", "2 days",
    ]  # fmt: skip
    assert [words.credit(c) for c in (0, 0.00048, 0.01, 31.24, 41_234.5)] == [
        "0.0",
        "0.00048",
        "0.01",
        "31.2",
        "41,234",
    ]
    assert words.credit(0.00001) == "<0.0001"
    assert [words.mebibytes(m) for m in (None, 310, 80_896)] == ["-", "310 MiB", "79 GiB"]
    assert [words.arithmetic(f) for f in (0, 5_000_000_000, 2_740_000_000_000_000)] == [
        "0.000 GFLOP",
        "5.0 GFLOP",
        "2.7 PFLOP",
    ]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_letters_are_readable_on_every_ground_they_stand_on(scheme: int) -> None:
    sheet = LOOK.read_text()
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", re.findall(r":root \{(.*?)\}", sheet, re.S)[scheme]))
    pairs = [(ink, "card") for ink in ("text", "muted", "blue", "amber", "green", "red")]
    pairs += [
        ("muted", "ground"),
        ("muted", "quiet-ground"),
        ("green", "good-ground"),
        ("amber", "warn-ground"),
        ("red", "bad-ground"),
    ]
    for ink, ground in pairs:
        light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


def test_a_peer_behind_a_router_is_no_trouble_once_relays_have_it() -> None:
    hidden = msgspec.structs.replace(
        TRAINING.network, reachable="no", relays=["192.0.2.1:7070"], router="not asked for a port: map-port is off"
    )
    text = read(changed(network=hidden)).text
    assert "through relays" in text
    assert "192.0.2.1:7070" in text
    assert "map-port is off" in text
    assert "Unreachable" not in text


def test_what_is_carried_for_others_is_told() -> None:
    carrying = msgspec.structs.replace(TRAINING.network, carried=Carried(on=True, peers=3, streams=5, bytes=7 * 2**20))
    assert "3 peers, 5 connections, 7 MiB" in read(changed(network=carrying)).text
