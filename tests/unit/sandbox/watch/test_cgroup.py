"""Which control groups a daemon may have, and what a worker's group is told."""

from __future__ import annotations

from dataclasses import replace

from axonp2p.sandbox.limits import MIB, Limits
from axonp2p.sandbox.watch.cgroup import (
    WANTED,
    GroupClaim,
    GroupPlace,
    claim,
    count,
    daemon_of,
    haste,
    hold_cores,
    how_limits_hold,
    mount_point,
    name_of,
    old_place,
    own_group,
    settings,
)

LIMITS = Limits(cores=2, memory_mb=512, scratch_mb=64)
ALL = frozenset({"memory", "pids", "cpu", "io", "hugetlb"})
DELEGATED = GroupPlace(writable=True, top=False, others=0, offered=ALL)


def test_a_delegated_group_is_claimed_with_all_controllers_after_the_daemon_moved_down() -> None:
    assert claim(DELEGATED) == GroupClaim(move_daemon=True, enable=WANTED)


def test_only_what_is_offered_is_switched_on() -> None:
    offered = GroupPlace(writable=True, top=False, others=0, offered=frozenset({"pids", "memory"}))
    assert claim(offered) == GroupClaim(move_daemon=True, enable=("memory", "pids"))


def test_groups_without_controllers_can_still_be_frozen() -> None:
    assert claim(GroupPlace(writable=True, top=True, others=90, offered=frozenset())) == GroupClaim(
        move_daemon=False, enable=()
    )


def test_a_group_of_other_programs_is_left_alone() -> None:
    # A terminal's, for example: its shell would have to be moved.
    assert claim(GroupPlace(writable=True, top=False, others=1, offered=ALL)) is None


def test_without_the_right_to_write_there_is_no_claim() -> None:
    assert claim(GroupPlace(writable=False, top=False, others=0, offered=ALL)) is None
    assert claim(GroupPlace(writable=False, top=True, others=0, offered=ALL)) is None


FILES = {
    "memory.max",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
    "cpu.max",
    "cpu.weight",
    "cpu.idle",
    "io.weight",
}


def test_every_limit_has_its_file() -> None:
    assert settings(LIMITS, FILES) == {
        "memory.max": str((512 + 64 + 32) * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "80",
        "cpu.max": "200000 100000",
        "cpu.idle": "1",
        "io.weight": "default 1",
    }


def test_an_older_kernel_gets_the_least_weight_instead_of_idleness() -> None:
    assert settings(LIMITS, FILES - {"cpu.idle"})["cpu.weight"] == "1"


def test_a_group_without_controllers_has_nothing_to_set() -> None:
    assert settings(LIMITS, {"cgroup.procs", "cgroup.freeze", "cpu.stat"}) == {}


def test_a_priority_that_an_owner_chose_is_a_share_beside_other_programs() -> None:
    ordinary, low = (settings(replace(LIMITS, priority=one), FILES) for one in ("normal", "low"))
    assert settings(LIMITS, FILES).keys() - ordinary.keys() == {"cpu.idle", "io.weight"}
    assert {name: low[name] for name in low.keys() - ordinary.keys()} == {"cpu.weight": "10", "io.weight": "default 10"}


def test_what_was_killed_is_held_back_by_nothing_that_its_group_was_given() -> None:
    assert haste(FILES) == {"cpu.idle": "0", "cpu.weight": "10000", "cpu.max": "max"}
    assert haste({"cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"}) == {
        "cpu.shares": "262144",
        "cpu.cfs_quota_us": "-1",
    }
    assert not haste({"cgroup.procs", "cpu.stat"})


def test_the_owner_is_told_which_of_the_two_holds() -> None:
    assert "kernel's control groups" in how_limits_hold(("memory", "pids", "cpu"))
    assert "a watch ten times a second" in how_limits_hold(("pids",))
    assert "a watch ten times a second" in how_limits_hold(())


def test_where_the_daemon_runs_is_found_in_hybrid_and_pure_hierarchies() -> None:
    assert own_group("4:memory:/a\n0::/user.slice/u.service\n") == "/user.slice/u.service"
    assert own_group("4:memory:/a\n") is None
    one = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    two = "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    assert mount_point(one + two) == ("/", "/sys/fs/cgroup/unified")
    assert mount_point("30 25 0:26 / /sys rw - sysfs sysfs rw\n") is None


def test_where_the_old_kind_of_group_counts_processes() -> None:
    mounts = (
        "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 25 0:27 /x /sys/p rw - cgroup cgroup rw,pids\n"
    )
    assert old_place("pids", "8:pids:/x/y\n0::/\n", mounts) == ("/x/y", "/x", "/sys/p")
    assert old_place("pids", "0::/\n", mounts) is None
    assert old_place("pids", "8:pids:/x/y\n", "") is None


def test_the_old_kind_may_hold_several_controllers_in_one_tree() -> None:
    mounts = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    assert old_place("cpu", "4:cpu,cpuacct:/docker/1\n3:cpuset:/\n", mounts) == (
        "/docker/1",
        "/",
        "/sys/fs/cgroup/cpu,cpuacct",
    )
    assert old_place("cpu", "3:cpuset:/\n", mounts) is None


def test_cores_are_held_by_a_quota_of_either_kind() -> None:
    old = {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"}
    assert list(settings(LIMITS, old).items()) == [
        ("cpu.cfs_period_us", "100000"),
        ("cpu.cfs_quota_us", "200000"),
        ("cpu.shares", "15"),
    ]
    assert "cpu.idle" not in settings(LIMITS, old | {"cpu.idle"})
    assert hold_cores(settings(LIMITS, FILES))
    assert hold_cores(settings(LIMITS, old))
    assert not hold_cores(settings(LIMITS, FILES - {"cpu.max"}))


def test_a_workers_group_names_its_daemon() -> None:
    assert daemon_of(name_of(namespace=4026531836, daemon=77, number=3), 4026531836) == 77
    for other in (
        "axon-daemon",
        "axon-worker-",
        "axon-worker-77-1",
        "axon-worker-1-x-1",
        "1-7-3",
        "axon-worker-1-7-3-4",
    ):
        assert daemon_of(other, 1) is None


def test_a_process_number_of_another_namespace_says_nothing_here():
    assert daemon_of(name_of(namespace=4026531836, daemon=77, number=3), 4026532000) is None


def test_numbers_are_read_by_name() -> None:
    events = "low 0\noom 2\noom_kill 1\n"
    assert count(events, "oom_kill") == 1
    assert count(events, "oom") == 2
    assert count(events, "max") == 0
