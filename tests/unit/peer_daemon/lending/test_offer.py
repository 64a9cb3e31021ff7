from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from axonp2p.errors import SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS
from axonp2p.peers.capability import Need, as_map, read_capability, why_not
from axonp2p.sandbox.gpu_access import DriverFiles
from axonp2p.settings import PeerSettings
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.quantities import LATEST
from peer_daemon.gpus.seen_gpus import SeenGpu, SeenGpus
from peer_daemon.lending.lend_settings import limits_to_lend
from peer_daemon.lending.lent_gpus import GpuAssignment
from peer_daemon.lending.offer import (
    Distribution,
    LendingLimits,
    MeasuredMachine,
    capability_of,
    fit,
    lent_cores,
    lent_gpus,
    name_of,
    packages_worth_naming,
)

PEER = PrivateKey(b"p" * 32).peer_id
MACHINE = MeasuredMachine(
    cores=8, memory_mb=16000, disk_mb=50_000, gflops=99.5, python="3.11.7", packages={"torch": "2.13.0"}
)
HALF = LendingLimits(cores=0, memory_mb=0, disk_mb=2048, slots=1)
ROW = Row(
    peer=PEER, name="otter", sequence=2**52, addresses=["[2001:db8::1]:65535"] * 4, certificate=b"c" * 32,
    expires=LATEST, capability=None,
)  # fmt: skip


def test_half_of_the_machine_is_shared_among_the_slots():
    offer = capability_of(MACHINE, LendingLimits(cores=0, memory_mb=0, disk_mb=2048, slots=2), "")
    assert (offer.cores, offer.memory_mb, offer.slots, offer.free) == (2, 4000, 2, 2)
    assert lent_cores(1, HALF) == 1


def test_no_more_is_offered_than_there_is():
    offer = capability_of(MACHINE, LendingLimits(cores=64, memory_mb=10**6, disk_mb=10**6, slots=1), "")
    assert (offer.cores, offer.memory_mb, offer.disk_mb) == (8, 16000, 50_000)


@pytest.mark.usefixtures("only_train")
def test_the_kinds_are_those_that_the_owner_allows_and_the_wall_holds(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", replace(KINDS["train"], name="toy", executes=True))
    walled = replace(MACHINE, landlock=7)
    assert capability_of(walled, HALF, "").kinds == ["train", "toy"]
    assert capability_of(walled, replace(HALF, kinds=("toy",)), "").kinds == ["toy"]
    assert capability_of(MACHINE, HALF, "").kinds == ["train"]
    assert capability_of(MACHINE, replace(HALF, kinds=("toy",)), "").kinds == []


@pytest.mark.usefixtures("only_train")
def test_a_word_that_is_no_kind_names_those_that_are():
    with pytest.raises(SettingsError) as caught:
        limits_to_lend(PeerSettings(kinds=["train", "trian"]))
    assert "'trian'" in caught.value.message
    assert "train" in caught.value.cause
    assert 'kinds = ["train"]' in caught.value.fix


def test_a_reason_to_refuse_stands_in_the_offer():
    offer = capability_of(MACHINE, HALF, "no bubblewrap " * 20)
    assert why_not(offer, Need()).startswith("no bubblewrap")
    assert read_capability(fit(ROW, offer).capability or {}).refuses == offer.refuses


@pytest.mark.parametrize(
    "limits",
    [LendingLimits(-1, 0, 1, 1), LendingLimits(0, -1, 1, 1), LendingLimits(0, 0, 0, 1), LendingLimits(0, 0, 1, 0)],
)
def test_limits_that_cannot_be_meant(limits):
    with pytest.raises(SettingsError):
        limits.check()


def test_packages_that_nothing_else_needs_and_those_that_every_job_needs():
    installed = [
        Distribution("torch", "2.13.0+cpu", ("sympy>=1", "numpy ; extra == 'opt'")),
        Distribution("sympy", "1.14.0", ()),
        Distribution("Scikit_Learn", "1.7.0", ("numpy",)),
        Distribution("numpy", "2.4.6", ()),
        Distribution("pip", "25.0", ()),
        Distribution("optional", "1.0", ("extra-thing ; extra == 'all'", "never; python_version < '3'", "?!")),
        Distribution("extra.thing", "3.0", ()),
    ]
    named = packages_worth_naming(installed)
    assert list(named) == ["torch", "numpy", "extra-thing", "optional", "scikit-learn"]
    assert named["torch"] == "2.13.0+cpu"


def test_tools_for_work_on_axon_itself_are_not_told_to_strangers():
    installed = [
        Distribution(
            "axonp2p",
            "0.1.0",
            (
                *("mypy ; extra == 'test'", "mkdocs-material ; extra == 'docs'", "wandb ; extra == 'wandb'"),
                *("sqlite-utils ; extra == 'tracker'", "transformers ; extra == 'libraries'"),
            ),
        ),
        *(Distribution(name, "2.4.1", ()) for name in ("mypy", "mkdocs-material", "wandb", "sqlite-utils")),
        Distribution("transformers", "5.23.0", ()),
        Distribution("torch", "2.13.0", ()),
    ]
    assert list(packages_worth_naming(installed)) == ["torch", "axonp2p", "transformers"]


def test_the_first_of_two_versions_is_the_one_that_is_imported():
    assert packages_worth_naming([Distribution("a", "2", ()), Distribution("A", "1", ())]) == {"a": "2"}


@example({f"package-{number}": "" for number in range(32)})
@given(st.dictionaries(st.text("abcdefgh-", min_size=1, max_size=60), st.text("0123456789.", max_size=40), max_size=32))
def test_a_row_is_never_larger_than_a_row_may_be(packages):
    machine = MeasuredMachine(8, 16000, 50_000, 1e9, "3.11.7", {"torch": "2.13.0", **packages})
    offer = capability_of(machine, HALF, "r" * 200)
    row = fit(ROW, offer)
    assert decode_as(encode(row), Row, Row.LIMIT) == row
    assert read_capability(row.capability or {}).packages.get("torch") == machine.packages["torch"]


def test_cards_leave_room_for_what_every_job_asks_for():
    packages = {f"package-with-a-long-name-{number}": "2026.10.1+cu130" for number in range(30)}
    machine = replace(MACHINE, packages={"torch": "2.13.0+cu130", "numpy": "2.4.6", **packages})
    names = [f"{number}th NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition" for number in range(12)]
    cards = tuple(SeenGpu(f"GPU-{number}", name, 97_887, "12.0", number) for number, name in enumerate(names))
    nodes = frozenset(f"/dev/nvidia{name}" for name in ("ctl", "-uvm", *range(12)))
    libraries = tuple((f"lib{name}.so.1", "/l/x.so.580.159.04") for name in ("cuda", "nvidia-ptxjitcompiler"))
    files = DriverFiles("580.159.04", nodes, libraries)
    seen = SeenGpus(cards, "580.159.04", "13.0", torch_cuda="13.0", files=files)
    machine = replace(machine, gpus=seen)
    assert capability_of(machine, HALF, "").gpus == []
    gpus = GpuAssignment(lent_gpus(machine, replace(HALF, gpu=True, gpu_memory_mb=90_000)))
    for number in range(11):
        gpus.take(f"GPU-{number}", f"lease {number}")
    offer = msgspec.structs.replace(capability_of(machine, replace(HALF, gpu=True), "r" * 120), gpus=gpus.told(()))
    row = fit(ROW, offer)
    told = read_capability(decode_as(encode(row), Row, Row.LIMIT).capability or {})
    # The free one is told before those that are taken.
    assert [(gpu.memory_mb, gpu.taken) for gpu in told.gpus][:2] == [(90_000, msgspec.UNSET), (90_000, True)]
    assert {"torch", "numpy"} <= told.packages.keys()


def test_a_name_is_made_from_the_key_or_checked():
    assert name_of("", PEER) == name_of("", PEER)
    assert name_of("", PEER).endswith("-" + PEER[:4])
    assert name_of("my-box.1", PEER) == "my-box.1"
    for wrong in ("has space", "-dash", "x" * 33, "naïve"):
        with pytest.raises(SettingsError):
            name_of(wrong, PEER)


def test_the_row_says_which_packages_are_taken_and_nothing_where_none_are():
    machine = replace(MACHINE, platform="cp311-manylinux_2_36_x86_64")
    any_ = capability_of(machine, replace(HALF, wheels="any"), "")
    assert (any_.platform, any_.wheels) == ("cp311-manylinux_2_36_x86_64", "any")
    for limits in (HALF, replace(HALF, wheels="none")):
        assert not {"platform", "wheels"} & as_map(capability_of(machine, limits, "")).keys()
    assert "wheels" not in as_map(capability_of(MACHINE, replace(HALF, wheels="any"), ""))
    assert limits_to_lend(PeerSettings()).wheels == "any"
    assert limits_to_lend(PeerSettings(wheels_mb=0)).wheels == "none"
    for wrong in (PeerSettings(wheels="some"), PeerSettings(wheels_mb=-1)):
        with pytest.raises(SettingsError, match="wheels"):
            limits_to_lend(wrong)
