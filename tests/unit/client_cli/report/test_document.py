"""The page as a whole: every state, strangers' words, the numbers behind the pictures."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.transport.http.own_page import LOOK
from client_cli.report import tables
from client_cli.report.document import HERE, Made, make, policy
from client_cli.report.folding import fold
from client_cli.report.job_summary import View, summary_of
from tests.laboratory.paper_job import HOSTILE, STATES, PaperJob

OVER = ("finished", "failed", "paused")


def command(*words: str) -> str:
    return " ".join(["axon", *words])


def view_of(job: PaperJob, *, at_work: bool) -> View:
    story = fold(job.folder.read_events(), "train")
    return View(job.folder.read(), story, at_work, job.clock.time, str(job.folder.path))


def page_of(job: PaperJob, *, at_work: bool = True, live: bool = False) -> Made:
    return make(view_of(job, at_work=at_work), command, lambda at: datetime.fromtimestamp(at, UTC), live=live)


class Elements(HTMLParser):
    """What is in a document: (tag, attributes)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def ids(self) -> list[str]:
        return [str(told["id"]) for _, told in self.found if "id" in told]


@pytest.mark.parametrize(
    ("state", "word", "banner", "fix"),
    [
        ("starting", "RUNNING", None, None),
        ("running", "RUNNING", None, None),
        ("lost", "RUNNING", "wren is gone", None),
        ("waiting", "WAITING", "The job waits for heron", None),
        ("resumed", "RUNNING", None, None),
        ("finished", "FINISHED", "The weights are here", "axon fetch digits-7f3a -o OUT"),
        ("failed", "FAILED", "AX-102: only 2 of at least 3 peers are left", "axon resume digits-7f3a"),
        ("paused", "PAUSED", "The job is paused", "axon resume digits-7f3a"),
    ],
)
def test_each_state_has_its_word_and_its_remedy(
    tmp_path: Path, state: str, word: str, banner: str | None, fix: str | None
) -> None:
    stands = summary_of(view_of(STATES[state](tmp_path), at_work=state not in OVER), command)
    assert stands.word == word
    assert [one.title for one in stands.banners] == ([banner] if banner else [])
    assert [one.fix for one in stands.banners if one.fix] == ([fix] if fix else [])


def test_while_workers_start_the_page_says_whose_and_for_how_long(tmp_path: Path) -> None:
    stands = summary_of(view_of(STATES["starting"](tmp_path), at_work=True), command)
    assert re.fullmatch(r"waits for the workers of otter, heron: 12 s", stands.sentence)


def test_a_job_whose_program_was_killed_is_interrupted(tmp_path: Path) -> None:
    stands = summary_of(view_of(STATES["running"](tmp_path), at_work=False), command)
    assert stands.word == "INTERRUPTED"
    assert stands.banners[0].fix == "axon resume digits-7f3a"


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("state", sorted(STATES))
def test_every_page_is_whole(tmp_path: Path, state: str, live: bool) -> None:
    page = Elements(page_of(STATES[state](tmp_path), at_work=state not in OVER, live=live).html)
    assert len(page.ids()) == len(set(page.ids()))
    for tag, told in page.found:
        assert "style" not in told, tag
        assert not any(name.startswith("on") for name in told), tag
        if tag in ("a", "link"):
            assert str(told["href"]).startswith(("data:", "#") if not live else ("data:", "#", *CSV)), told
        assert "src" not in told
    pictures = [told for _, told in page.found if told.get("role") == "img"]
    assert len(pictures) >= (5 if state == "starting" else 6)  # no curve before the first round
    assert all(told.get("aria-label") for told in pictures)
    assert sum(tag == "table" for tag, _ in page.found) == 5


CSV = ("rounds.csv", "work.csv", "bytes.csv", "round-trips.csv", "peers.csv", "events.csv")


def test_what_runs_on_the_page_is_what_its_policy_names(tmp_path: Path) -> None:
    html = page_of(STATES["running"](tmp_path)).html
    for tag in ("style", "script"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy(live=False)
    assert "unsafe" not in policy(live=True)
    assert "connect-src" not in policy(live=False)
    assert "https://" not in html.replace("http://www.w3.org", "")


def test_names_and_reasons_of_strangers_stay_words(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(["otter", HOSTILE])
    job.train(3)
    job.pause("otter", HOSTILE)
    job.resume_peer("otter")
    job.lose(HOSTILE, HOSTILE)
    job.train(1)
    job.fail("AX-102", HOSTILE, HOSTILE, HOSTILE)
    for live in (True, False):
        page = Elements(page_of(job, at_work=False, live=live).html)
        assert not any(tag == "img" for tag, _ in page.found)
        assert sum(tag == "script" for tag, _ in page.found) == 1
        assert not any(name.startswith("on") for _, told in page.found for name in told)
        assert HOSTILE in "".join(page.text)


def test_the_numbers_behind_the_pictures_are_those_of_metrics_csv(tmp_path: Path) -> None:
    job = STATES["finished"](tmp_path)
    made = page_of(job, at_work=False)
    rows = list(csv.DictReader(io.StringIO(made.csv["rounds"])))
    kept = MetricsFile(job.folder.metrics).rows()
    assert len(rows) == len(kept) == 20
    for row, other in zip(rows, kept, strict=True):
        for name in ("round", "loss", "held_out_accuracy", "held_out_loss", "samples", "seconds"):
            assert float(row[name]) == pytest.approx(float(other[name]))
    told = Elements(made.html)
    inside = {str(one.get("download")): str(one["href"]) for tag, one in told.found if tag == "a" and "download" in one}
    assert set(inside) == set(CSV)
    assert base64.b64decode(inside["rounds.csv"].partition("base64,")[2]).decode() == made.csv["rounds"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])
def test_no_name_becomes_a_formula(name: str) -> None:
    table = tables.Table("x", [], [], ["peer", "n"], [[name, -3.5], ["otter", None]])
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows == [["peer", "n"], [f"'{name}", "-3.5"], ["otter", ""]]


@pytest.mark.slow
def test_a_job_of_many_rounds_stays_a_page_that_opens(tmp_path: Path) -> None:
    job = PaperJob(tmp_path, rounds=500)
    job.begin(["otter", "heron", "lynx", "wren"])
    job.train(500)
    html = page_of(job).html
    assert len(html) < 800_000
    assert html.count("<tr data-x") == 400


@pytest.mark.parametrize("dark", [False, True])
def test_letters_have_enough_contrast(dark: bool) -> None:
    sheets = (LOOK, HERE / "static" / "job.css")
    colours: dict[str, str] = {}
    for sheet in sheets:
        colours |= _colours(sheet.read_text(), dark)
    for ground in ("card", "ground"):
        for letters in ("text", "muted", "blue"):
            assert contrast(colours[letters], colours[ground]) >= 4.5, (letters, ground)
    for letters in ("amber", "green", "red"):
        assert contrast(colours[letters], colours["card"]) >= 4.5, letters
    for letters, ground in (("green", "good-ground"), ("amber", "warn-ground"), ("red", "bad-ground")):
        assert contrast(colours[letters], colours[ground]) >= 4.5, letters
        assert contrast(colours["text"], colours[ground]) >= 4.5, ground
    for shape in ("ran", "exchange", "waited", "refused"):
        assert contrast(colours[shape], colours["card"]) >= 2, shape


def _colours(sheet: str, dark: bool) -> dict[str, str]:
    light, _, rest = sheet.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", light))
    return found | (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", rest)) if dark else {})


def contrast(one: str, other: str) -> float:
    """As WCAG 2 has it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    bright, dim = sorted((light(one), light(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_a_job_that_waits_for_peers_says_so_before_it_trains(tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.journal.enter(JobState.FINDING)
    job.journal.change(waits_for=["1 more peer"])
    stands = summary_of(view_of(job, at_work=True), command)
    assert (stands.word, stands.banners[0].title) == ("WAITING", "The job waits for 1 more peer")


def test_the_one_ratio_of_bytes_says_what_it_leaves_out(tmp_path: Path) -> None:
    html = page_of(STATES["finished"](tmp_path)).html
    assert "exchange, against dense" in html
    assert "The bundle, weights that travel whole and checks are not in this ratio" in html
    assert "fewer bytes than dense</dt>" not in html


def test_axes_of_charts_are_named(tmp_path: Path) -> None:
    html = page_of(STATES["finished"](tmp_path)).html
    assert html.count(">round</text>") >= 3
