"""When a card goes back to its owner, and when it is lent again."""

from __future__ import annotations

from peer_daemon.gpus.gpu_use import QUIET_S, GpuHolder, OwnersUse, power_limit_mw, why_over
from peer_daemon.gpus.seen_gpus import GpuLook, GpuProcess

HOLDER = GpuHolder(frozenset({50, 51}), memory_mb=8000)
OURS = GpuProcess(51, "python3.11", 3000, computes=True, busy=99)
DESKTOP = GpuProcess(7, "gnome-shell", 400, computes=False, busy=4)
GAME = GpuProcess(8, "game", 5000, computes=False, busy=80)
TRAINING = GpuProcess(9, "python3", 600, computes=True)
HIDDEN = GpuProcess(123456, "", 2000, computes=True)


def look(*processes: GpuProcess, temperature: int | None = 60) -> dict[str, GpuLook]:
    return {"GPU-1": GpuLook("GPU-1", temperature, processes)}


def why(*processes: GpuProcess, held: bool = True, temperature: int | None = 60) -> str:
    use, holders = OwnersUse(), {"GPU-1": HOLDER} if held else {}
    use.decide(look(*processes, temperature=temperature), holders, 90, 0)
    return use.decide(look(*processes, temperature=temperature), holders, 90, 0.5).get("GPU-1", "")


def test_its_own_worker_and_a_desktop_are_no_reason() -> None:
    assert why(OURS, DESKTOP) == ""
    assert why(DESKTOP, held=False) == ""


def test_a_game_is() -> None:
    assert why(OURS, DESKTOP, GAME) == "another program uses 84 % of the GPU (limit 20 %): game, gnome-shell"


def test_a_window_that_opens_is_not() -> None:
    use, holders = OwnersUse(), {"GPU-1": HOLDER}
    for now, processes in enumerate(((OURS, GAME), (OURS, DESKTOP), (OURS, GAME))):
        assert use.decide(look(*processes), holders, 90, now) == {}


def test_a_program_that_computes_is_from_its_first_moment() -> None:
    assert why(OURS, TRAINING) == "another program computes on the GPU: python3"


def test_a_worker_without_the_card_is_another_program() -> None:
    assert why(OURS, held=False) == "another program computes on the GPU: python3.11"


def test_heat_is_and_lasts_until_it_is_cooler() -> None:
    use = OwnersUse()
    holders = {"GPU-1": HOLDER}
    hot = use.decide(look(OURS, temperature=91), holders, 90, 0)
    assert hot == {"GPU-1": "the GPU is too hot: 91 C (limit 90)"}
    assert use.decide(look(OURS, temperature=87), holders, 90, 1) == {"GPU-1": "the GPU is too hot: 87 C (limit 85)"}
    assert use.decide(look(OURS, temperature=84), holders, 90, 2) == {}
    assert use.decide(look(OURS, temperature=120), holders, 0, 3) == {}
    assert why(OURS, temperature=None) == ""


def test_a_card_is_lent_again_after_a_time_of_quiet() -> None:
    use = OwnersUse()
    for now in (-0.5, 0):
        use.decide(look(GAME), {}, 90, now)
    assert use.decide(look(DESKTOP), {}, 90, QUIET_S - 1) == {"GPU-1": "another program used the GPU just now"}
    assert use.decide(look(DESKTOP), {}, 90, QUIET_S + 1) == {}


def test_a_card_that_does_not_answer_is_not_judged() -> None:
    assert OwnersUse().decide({}, {"GPU-1": HOLDER}, 90, 0) == {}


def test_a_worker_ends_at_its_limit_by_all_its_processes_together() -> None:
    child = GpuProcess(50, "python3.11", 5000, computes=True)
    assert why_over(look(OURS, child)["GPU-1"], HOLDER) == ""
    more = GpuProcess(50, "python3.11", 5001, computes=True)
    assert why_over(look(OURS, more)["GPU-1"], HOLDER) == (
        "used 8001 MiB of the GPU's memory where 8000 MiB are allowed"
    )
    assert why_over(look(OURS, GAME)["GPU-1"], HOLDER) == ""


def test_what_cannot_be_seen_from_a_container_counts_as_the_holders() -> None:
    assert why(HIDDEN) == ""
    assert why(HIDDEN, held=False) == "another program computes on the GPU: one that cannot be seen from here"
    assert why_over(look(OURS, HIDDEN, HIDDEN, HIDDEN)["GPU-1"], HOLDER)


def test_a_power_limit_is_a_share_of_the_usual_one_within_what_the_card_takes() -> None:
    assert power_limit_mw(450_000, 150_000, 600_000, 70) == 315_000
    assert power_limit_mw(450_000, 150_000, 600_000, 10) == 150_000
    assert power_limit_mw(450_000, 150_000, 400_000, 100) == 400_000
