"""What the doctor makes of what it found."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

import pytest

from axonp2p.findings import Check, FindingState, broken, report_data, report_text
from client_cli.doctor.checks import checks_of, groups_of
from client_cli.doctor.facts import ClientFacts, ClientMachineFacts, ClientTrackerFacts, DhtFacts, LogFacts
from peer_daemon.doctor import checks as peer_checks
from peer_daemon.doctor.facts import ContainFacts, MachineFacts, PeerFacts, PortFacts, Trouble
from peer_daemon.lending.offer import MeasuredMachine
from peer_daemon.setup.probe import computer_text

MACHINE = ClientMachineFacts(
    home="/h",
    versions={"python": "3.11.7", "torch": "2.13.0"},
    key_trouble="",
    key_fix="",
    sandbox_trouble="",
    disk_free_mb=95_367,
    memory_mb=19_073,
)
DHT = DhtFacts(wanted=True, known=4, answering=4)


def tracker(name: str, peers: str = "abcd", **changes: Any) -> ClientTrackerFacts:
    """One that shows these peers; more are alive when `alive` says so."""
    usual: dict[str, Any] = {"configured": True, "alive": len(peers), "names": {peer: f"name-{peer}" for peer in peers}}
    return ClientTrackerFacts(name=name, peers=frozenset(peers), **(usual | changes))


def checks(
    *trackers: ClientTrackerFacts, machine: ClientMachineFacts = MACHINE, dht: DhtFacts = DHT, **more: Any
) -> list[Check]:
    return checks_of(ClientFacts(machine, list(trackers), dht, **more))


def wrong(found: list[Check]) -> list[Check]:
    return [check for check in found if check.state is not FindingState.OK]


def test_a_healthy_swarm_has_nothing_wrong() -> None:
    found = checks(tracker("a:1"), tracker("b:2", clock_off_s=0.2))
    assert wrong(found) == []
    text = report_text(found)
    assert "2 of 2 answer" in text
    assert "4 peers, the same at all 2 trackers" in text
    assert "+0.2 s" in text
    assert text.endswith("All is well.")


def test_a_tracker_that_answers_and_cannot_do_its_work_is_named() -> None:
    (one,) = wrong(checks(tracker("a:1", hindered="it cannot store anything: disk is full"), tracker("b:2")))
    assert one.state is FindingState.WARN
    assert one.text == "a:1 answers, and says: it cannot store anything: disk is full"
    assert "make room there" in one.fix


def test_a_dead_tracker_is_named_with_its_reason_and_what_to_do() -> None:
    (one,) = wrong(checks(tracker("a:1"), tracker("b:2", trouble="connection refused")))
    assert (one.state, one.code) == (FindingState.FAIL, "AX-302")
    assert "b:2 does not answer (connection refused)" in one.text
    assert "axon-tracker run" in one.fix


def test_a_learnt_tracker_that_is_dead_is_a_warning_while_others_live() -> None:
    (one,) = wrong(checks(tracker("a:1"), tracker("b:2", trouble="connection refused", configured=False)))
    assert one.state is FindingState.WARN
    alone = wrong(checks(tracker("b:2", trouble="connection refused", configured=False)))
    assert [check.state for check in alone] == [FindingState.FAIL]


@pytest.mark.parametrize(
    ("offsets", "words", "state"),
    [
        ([0.1, -0.2, 3.0], [], None),
        ([45.0], ["differ by 45 s"], FindingState.FAIL),
        ([-8.0], ["differ by 8 s"], FindingState.WARN),
        ([60.0, 61.0], ["this computer's is 60 s behind"], FindingState.FAIL),
        ([-60.0, -61.0, -60.5], ["this computer's is 60 s ahead of"], FindingState.FAIL),
        ([0.0, 0.1, 120.0], ["t2's is 120 s ahead of everybody"], FindingState.FAIL),
        ([0.0, -10.0], ["t1's is 10 s behind everybody"], FindingState.WARN),
    ],
)
def test_the_wrong_clock_is_named(offsets: list[float], words: list[str], state: FindingState | None) -> None:
    trackers = [tracker(f"t{number}", clock_off_s=off) for number, off in enumerate(offsets)]
    found = wrong(checks(*trackers))
    assert [check.state for check in found] == ([state] if state else [])
    for check, word in zip(found, words, strict=True):
        assert word in check.text
        assert "timedatectl set-ntp true" in check.fix
        assert check.code == "AX-411"


def test_a_split_swarm_names_both_halves() -> None:
    (one,) = wrong(checks(tracker("a:1", "ab"), tracker("b:2", "ab"), tracker("c:3", "cd")))
    assert (one.state, one.code) == (FindingState.FAIL, "AX-413")
    assert "a:1 and b:2: 2 peers (name-a, name-b); c:3: 2 peers (name-c, name-d)" in one.text
    assert "axon-tracker status" in one.fix


def test_a_tracker_that_shows_nothing_is_a_split() -> None:
    (one,) = wrong(checks(tracker("a:1", "abcd"), tracker("b:2", "")))
    assert "b:2: 0 peers" in one.text


def test_one_peer_that_comes_or_goes_is_no_split() -> None:
    assert wrong(checks(tracker("a:1", "abcd"), tracker("b:2", "abc"))) == []


@pytest.mark.parametrize("size", [300, 3000, 7000])
def test_samples_tell_a_large_swarm_from_two_halves(size: int) -> None:
    chance = random.Random(size)
    everyone = [f"peer {number}" for number in range(2 * size)]

    def sees(name: str, part: list[str]) -> ClientTrackerFacts:
        return ClientTrackerFacts(name, True, alive=len(part), peers=frozenset(chance.sample(part, 200)))

    one = everyone[:size]
    assert len(groups_of([sees("a", one), sees("b", one), sees("c", one)])) == 1
    split = groups_of([sees("a", one), sees("b", everyone[size:]), sees("c", one)])
    assert sorted(len(group) for group in split) == [1, 2]


def test_where_samples_say_nothing_only_numbers_are_compared() -> None:
    def sees(name: str, alive: int) -> ClientTrackerFacts:
        return ClientTrackerFacts(name, True, alive=alive, peers=frozenset(f"{name} {number}" for number in range(200)))

    assert len(groups_of([sees("a", 1_000_000), sees("b", 990_000)])) == 1
    assert len(groups_of([sees("a", 1_000_000), sees("b", 500_000)])) == 2


@pytest.mark.parametrize(
    ("dht", "state", "words"),
    [
        (DhtFacts(wanted=True, known=4, answering=0), FindingState.FAIL, "none of 4 nodes answers over UDP"),
        (
            DhtFacts(wanted=True, known=4, over_tcp=2),
            FindingState.FAIL,
            "UDP is blocked: the same peers answer over TCP",
        ),
        (DhtFacts(wanted=True, known=4, over_tcp=0), FindingState.FAIL, "do not answer over TCP either"),
        (DhtFacts(wanted=True, trouble="no socket"), FindingState.FAIL, "no socket"),
        (DhtFacts(wanted=True), FindingState.WARN, "no peer is a DHT node"),
        (DhtFacts(wanted=False), FindingState.WARN, "switched off"),
    ],
)
def test_the_dht(dht: DhtFacts, state: FindingState, words: str) -> None:
    (one,) = wrong(checks(tracker("a:1"), dht=dht))
    assert one.state is state
    assert words in one.text
    assert one.fix


def test_without_a_tracker_the_dht_may_be_enough() -> None:
    known = {"settings_trouble": "no tracker is known", "settings_fix": "--tracker"}
    assert [check.state for check in wrong(checks(**known))] == [FindingState.WARN]
    nobody = wrong(checks(dht=DhtFacts(wanted=True), **known))
    assert [check.state for check in nobody] == [FindingState.FAIL]


def test_this_computer() -> None:
    machine = dataclasses.replace(
        MACHINE,
        versions={"python": "3.11.7", "torch": "", "aiohttp": ""},
        key_trouble="the key /h/client.key can be read by others",
        key_fix="chmod 600 /h/client.key",
        sandbox_trouble="user namespaces are switched off; to fix it: sudo sysctl -w user.max_user_namespaces=65536",
        disk_free_mb=95,
    )
    found = {check.name: check for check in wrong(checks(tracker("a:1"), machine=machine))}
    assert found["versions"].fix == "pip install torch aiohttp"
    assert (found["key"].state, found["key"].fix) == (FindingState.FAIL, "chmod 600 /h/client.key")
    assert (found["sandbox"].code, found["sandbox"].fix) == ("AX-605", "sudo sysctl -w user.max_user_namespaces=65536")
    assert "95 MiB free" in found["room"].text


def test_a_client_without_torch_lacks_nothing() -> None:
    machine = dataclasses.replace(MACHINE, versions={"python": "3.11.7", "torch": "", "safetensors": ""})
    (found,) = [check for check in checks(tracker("a:1"), machine=machine) if check.name == "versions"]
    assert found.state is FindingState.OK
    assert 'only axon check needs (pip install "axonp2p[torch]")' in found.text


def test_the_report_counts_and_its_data_has_everything() -> None:
    found = checks(tracker("a:1"), tracker("b:2", trouble="gone"), dht=DhtFacts(wanted=False))
    assert broken(found) == 1
    text = report_text(found)
    assert text.splitlines()[-1].startswith("1 thing is broken, 1 could be better.")
    assert "fail  trackers: b:2 does not answer (gone)   [AX-302]\n      fix: " in text
    data = json.loads(json.dumps(report_data(found)))
    assert data["ok"] is False
    assert {"state", "name", "text", "fix", "code"} == data["checks"][0].keys()


@pytest.mark.parametrize(
    ("logs", "state", "words"),
    [
        (
            LogFacts(entries={"a:1": 1234}),
            FindingState.OK,
            "every log continues what was seen of it before: a:1 (1,234)",
        ),
        (
            LogFacts(false={"a:1 (abcd)": "it lies"}, kept="/h/logs-seen"),
            FindingState.FAIL,
            "a:1 (abcd) is false: it lies",
        ),
        (LogFacts(unproved={"a:1": "no answer"}), FindingState.WARN, "a:1 does not prove that its log continues"),
        (
            LogFacts(anew={"a:1": (70, 12)}),
            FindingState.WARN,
            "a:1 began a new log of 12 entries; the one before had 70",
        ),
        (LogFacts(trouble="it is damaged", fix="move it"), FindingState.WARN, "is lost: it is damaged"),
    ],
)
def test_what_the_logs_show(logs: LogFacts, state: FindingState, words: str) -> None:
    (one,) = [check for check in checks(tracker("a:1"), logs=logs) if check.name == "ledger"]
    assert one.state is state
    assert words in one.text
    assert (one.code == "AX-204") == (state is FindingState.FAIL)


def test_a_new_log_that_has_everything_again_is_no_trouble() -> None:
    assert wrong(checks(tracker("a:1"), logs=LogFacts(entries={"a:1": 70}, anew={"a:1": (70, 70)}))) == []


def test_the_memory_of_one_machine_is_named_alike_by_every_program() -> None:
    memory_mb, disk_mb = 24_076, 78_700
    client = dataclasses.replace(MACHINE, memory_mb=memory_mb, disk_free_mb=disk_mb)
    (room,) = [check.text for check in checks(tracker("a:1"), machine=client) if check.name == "room"]
    seen = MachineFacts("/h", {"python": "3"}, Trouble(), Trouble(), disk_mb, 1024, memory_mb, cores=2)
    contain = ContainFacts("", "held", Trouble(), 6, "idle", "")
    peer = PeerFacts(seen, contain, [], PortFacts("0.0.0.0:7071", ""), [])
    (of_peer,) = [check.text for check in peer_checks.checks_of(peer) if check.name == "room"]
    of_setup = computer_text(MeasuredMachine(2, memory_mb, disk_mb, 0.0, "3.11", {}))
    for text in (room, of_peer, of_setup):
        assert "23.5 GiB memory" in text
        assert "76.8 GiB free" in text
