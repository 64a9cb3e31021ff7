"""Which cards are lent, and what an owner is told of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from axonp2p.findings import Check, FindingState
from axonp2p.sandbox.gpu_access import DriverFiles
from peer_daemon.gpus.gpu_lending import checks_of_gpus, gpu_words, lendable, why_no_power_limit
from peer_daemon.gpus.seen_gpus import SeenGpu, SeenGpus

CARD = SeenGpu("GPU-1", "NVIDIA RTX 4090", 24_564, "8.9", minor=0)
OTHER = SeenGpu("GPU-2", "NVIDIA RTX 3060", 12_288, "8.6", minor=1)
FILES = DriverFiles(
    "580.1",
    frozenset(f"/dev/nvidia{name}" for name in ("0", "1", "ctl", "-uvm")),
    tuple((f"lib{name}.so.1", f"/l/lib{name}.so.580.1") for name in ("cuda", "nvidia-ptxjitcompiler")),
)
SEEN = SeenGpus(cards=(CARD, OTHER), driver="580.1", driver_cuda="13.0", torch_cuda="13.0", files=FILES)


def told(seen: SeenGpus, *, allowed: bool) -> list[Check]:
    return list(checks_of_gpus(seen, allowed=allowed))


def test_all_cards_are_lent_once_their_owner_allows_it() -> None:
    assert lendable(SEEN) == [CARD, OTHER]
    (line,) = told(SEEN, allowed=True)
    assert (
        line.text == "NVIDIA RTX 4090 with 23.9 GiB, NVIDIA RTX 3060 with 12 GiB (driver 580.1), 2 jobs at a time: lent"
    )


def test_an_owner_who_did_not_allow_it_hears_how() -> None:
    (line,) = told(SEEN, allowed=False)
    assert line.state is FindingState.OK
    assert "not lent, as you did not allow it: gpu = true under [peer] in config.toml" in line.text


@pytest.mark.parametrize(
    ("change", "why", "fix"),
    [
        ({"torch_cuda": ""}, "the installed torch computes on processors alone", "the build of torch for CUDA"),
        ({"driver_cuda": "12.8"}, "needs CUDA 13.0, and driver 580.1 runs 12.8", "install a driver for CUDA 13.0"),
        ({"machine": "aarch64"}, "beside x86_64 processors only, and this is aarch64", ""),
        ({"files": replace(FILES, libraries=FILES.libraries[:1])}, "no libnvidia-ptxjitcompiler.so.1", "libraries"),
        ({"cards": (), "unseen": "no driver", "unseen_fix": "get one"}, "no driver", "get one"),
    ],
)
def test_what_is_in_the_way_of_every_card(change: dict[str, Any], why: str, fix: str) -> None:
    seen = replace(SEEN, **change)
    assert lendable(seen) == []
    (line,) = told(seen, allowed=True)
    assert line.state is FindingState.WARN
    assert why in line.text
    assert fix in line.fix
    assert all(one.state is FindingState.OK for one in told(seen, allowed=False))


def test_a_newer_cuda_of_the_same_number_runs_on_an_older_driver() -> None:
    assert lendable(replace(SEEN, torch_cuda="13.2"))


@pytest.mark.parametrize(
    ("card", "why", "fix"),
    [
        (replace(CARD, sliced=True), "cut into slices (MIG)", "sudo nvidia-smi -i 0 -mig 0"),
        (replace(CARD, virtual=True), "a share of a card that a hypervisor gives (vGPU)", ""),
        (replace(CARD, minor=7), "/dev/nvidia7 is not there", "sudo nvidia-modprobe -u -c=7"),
    ],
)
def test_what_is_in_the_way_of_one_card(card: SeenGpu, why: str, fix: str) -> None:
    seen = replace(SEEN, cards=(card, OTHER))
    assert lendable(seen) == [OTHER]
    refused, lent = told(seen, allowed=True)
    assert why in refused.text
    assert fix in refused.fix
    assert lent.text.startswith(OTHER.name)


def test_cards_of_other_vendors_are_seen_and_said_not_to_be_lent() -> None:
    seen = SeenGpus(unseen="no NVIDIA driver is installed", others=("an AMD card (ROCm)",))
    (line,) = told(seen, allowed=False)
    assert line.text.startswith("an AMD card (ROCm) is seen but not lent:")


def test_a_power_limit_that_only_root_may_set_is_said() -> None:
    assert why_no_power_limit(0, root=False) == why_no_power_limit(70, root=True) == ""
    lines = list(checks_of_gpus(SEEN, allowed=True, no_power_limit=why_no_power_limit(70, root=False)))
    assert lines[1].text == "gpu-power-percent = 70 holds only where axon-peer runs as root"
    assert lines[1].fix.startswith("sudo nvidia-smi -pl WATTS")


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (SEEN, "NVIDIA RTX 4090, NVIDIA RTX 3060"),
        (
            replace(SEEN, cards=(CARD,), torch_cuda=""),
            "NVIDIA RTX 4090 with 23.9 GiB (cannot be lent: the installed torch computes on processors alone)",
        ),
        (
            SeenGpus(unseen="pynvml is not installed, so GPUs were not looked for", unseen_fix="pip install it"),
            "no GPU to lend (pynvml is not installed, so GPUs were not looked for)",
        ),
        (
            SeenGpus(others=("an AMD card (ROCm)",)),
            "an AMD card (ROCm) (cannot be lent: jobs compute on NVIDIA's cards and on processors only)",
        ),
    ],
)
def test_setup_says_of_each_gpu_whether_it_can_be_lent_and_why_none_was_seen(seen: SeenGpus, words: str) -> None:
    assert gpu_words(seen) == words
    (line, *_) = told(seen, allowed=False)
    assert line.name == "gpu"  # the doctor has a line in each of these cases
