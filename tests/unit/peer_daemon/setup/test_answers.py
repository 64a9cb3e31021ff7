"""What people answer to the questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings
from peer_daemon.lending.offer import MeasuredMachine
from peer_daemon.setup.answers import (
    Amounts,
    Answers,
    Times,
    amounts,
    is_answered,
    times,
    trackers,
    usual_amounts,
    with_answers,
    yes_or_no,
)

MACHINE = MeasuredMachine(cores=8, memory_mb=16384, disk_mb=100_000, gflops=0, python="3.11", packages={})
USUAL = usual_amounts(MACHINE, PeerSettings())


def test_half_is_suggested_and_never_more_disk_than_half_of_what_is_free():
    assert Amounts(4, 8192, 2048) == USUAL
    small = MeasuredMachine(cores=1, memory_mb=1000, disk_mb=1000, gflops=0, python="3.11", packages={})
    assert usual_amounts(small, PeerSettings()) == Amounts(1, 500, 500)


def test_what_was_answered_before_is_suggested_again():
    assert usual_amounts(MACHINE, PeerSettings(cores=2, memory_mb=1024, disk_mb=512)) == Amounts(2, 1024, 512)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (str(USUAL), USUAL),
        ("", USUAL),
        ("2 cores", Amounts(2, 8192, 2048)),
        ("1 core, 4 GiB memory, 10 GiB disk", Amounts(1, 4096, 10240)),
        ("1 core, 4 GiB", Amounts(1, 4096, 2048)),
        ("4 GiB, 10 GiB", Amounts(4, 4096, 10240)),
        ("10 GiB disk, 4 GiB", Amounts(4, 4096, 10240)),
        ("512 MiB memory", Amounts(4, 512, 2048)),
        ("4GB", Amounts(4, 3815, 2048)),
        ("25 %", Amounts(2, 4096, 2048)),
        ("25% of the cores", Amounts(2, 8192, 2048)),
    ],
)
def test_how_much(text, meant):
    assert amounts(text, MACHINE, USUAL) == meant


@pytest.mark.parametrize(
    "text",
    ["9 cores", "0 cores", "32 GiB memory", "200 GiB disk", "much", "1 GiB, 1 GiB, 1 GiB", "150 %", "2 cores 4 GiB"],
)
def test_more_than_there_is_or_nothing_that_is_understood(text):
    with pytest.raises(SettingsError) as raised:
        amounts(text, MACHINE, USUAL)
    assert raised.value.fix == str(USUAL)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (str(Times()), Times()),
        ("any", Times()),
        ("Mon-Fri 18:00-08:00; Sat,Sun", Times(("Mon-Fri 18:00-08:00", "Sat,Sun"))),
        ("22:00-06:00; also on battery", Times(("22:00-06:00",), on_battery=True)),
        ("on battery", Times(on_battery=True)),
        (str(Times(("Sat",), on_battery=True)), Times(("Sat",), on_battery=True)),
    ],
)
def test_when(text, meant):
    assert times(text) == meant


def test_the_hint_for_hours_can_be_typed_in_as_it_is_shown():
    with pytest.raises(SettingsError) as raised:
        times("sometimes")
    for example in raised.value.fix.split("or:"):
        times(example.strip())


@pytest.mark.parametrize("text", ["whenever", "25:00-26:00", "perhaps on battery"])
def test_no_time(text):
    with pytest.raises(SettingsError):
        times(text)


def test_which_tracker():
    assert trackers("none") == ()
    assert trackers("https://lab.local:7070 https://b:1") == ("https://lab.local:7070", "https://b:1")
    with pytest.raises(SettingsError):
        trackers("lab.local")


ANSWERS = Answers(Amounts(2, 4096, 2048), Times(("Sat",)), ("https://lab.local:7070",))


def test_comments_and_other_settings_stay():
    before = '# mine\n[client]\nlan = false # why\n\n[peer]\n# small\ncores = 1 # one\nname = "otter"\n'
    after = with_answers(before, ANSWERS)
    for kept in ("# mine\n", "lan = false # why", "# small\n", "cores = 2 # one", 'name = "otter"'):
        assert kept in after
    assert with_answers(after, ANSWERS) == after


def test_a_fresh_file_says_where_it_came_from():
    assert not is_answered("# nothing\n[client]\n")
    after = with_answers("", ANSWERS)
    assert after.startswith("# Written by axon-peer setup")
    assert is_answered(after)


def test_no_toml():
    with pytest.raises(SettingsError):
        with_answers("[peer", ANSWERS)


def test_a_gpu_is_lent_only_by_who_says_yes():
    assert [yes_or_no(text) for text in ("yes", " Y ", "no", "n")] == [True, True, False, False]
    with pytest.raises(SettingsError) as raised:
        yes_or_no("perhaps")
    assert raised.value.fix == "yes, or: no"
    assert "gpu" not in with_answers("", ANSWERS)
    assert "gpu = true\n" in with_answers("", replace(ANSWERS, gpu=True))
    assert "gpu = false\n" in with_answers("[peer]\ngpu = true\n", replace(ANSWERS, gpu=False))
