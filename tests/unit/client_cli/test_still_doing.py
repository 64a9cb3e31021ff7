"""Nobody waits for five seconds without a word, and hears what is done and since when."""

from __future__ import annotations

from client_cli.meanwhile import Meanwhile
from client_cli.still_doing import StillDoing


def test_what_is_short_is_not_said() -> None:
    doing = StillDoing(100.0)
    assert doing.due(106.0) == ""
    doing.begin("model()", 106.0)
    assert doing.due(106.5) == "model() ..."
    doing.begin("loss()", 107.0)
    assert doing.due(111.0) == ""


def test_what_takes_long_is_said_every_five_seconds_with_its_own_time() -> None:
    doing = StillDoing(0.0)
    doing.begin("model()", 0.0)
    doing.begin('data("train", 0, 1)', 3.0)
    said = [line for tenths in range(200) if (line := doing.due(tenths / 10))]
    assert said == [f'data("train", 0, 1) has taken {seconds}' for seconds in ("2.0 s", "7.0 s", "12 s")]


def test_the_same_said_again_goes_on() -> None:
    doing = StillDoing(0.0)
    doing.begin("loading torch", 0.0)
    doing.begin("loading torch", 4.0)
    assert doing.due(6.0) == "loading torch has taken 6.0 s"


def test_a_thread_says_it_while_the_command_waits() -> None:
    said: list[str] = []
    with Meanwhile(said.append, tick_s=0.001) as meanwhile:
        meanwhile.begin("loading torch")
    assert said == []
