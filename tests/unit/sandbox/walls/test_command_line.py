from __future__ import annotations

from dataclasses import replace

from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.walls.command_line import Descriptors, Environment, bubblewrap_command, made_up, variables
from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER

ENVIRONMENT = Environment(
    binds=(("/usr/lib", "/usr/lib"), ("/home/ann/axon/axonp2p", "/axon/axonp2p")),
    links=(("usr/lib", "/lib"),),
    python="/python/bin/python3.11",
    python_path=("/axon", "/packages/0"),
    library_path="/python/lib",
)
LIMITS = Limits(cores=3, memory_mb=512, scratch_mb=64)
FILES_PASSED = ((10, "/etc/passwd"), (11, "/etc/group"), (12, "/etc/nsswitch.conf"))


def command(user: int | None = None, limits: Limits = LIMITS, blobs: str = "") -> list[str]:
    return bubblewrap_command(
        "/usr/bin/bwrap",
        ENVIRONMENT,
        limits,
        job_folder="/home/ann/jobs/1",
        descriptors=Descriptors(files=FILES_PASSED, info=13, go=14, filter=15),
        run=["worker", "7"],
        user=user,
        blobs=blobs,
    )


def arguments_of(option: str, count: int, blobs: str = "") -> list[list[str]]:
    words = command(blobs=blobs)
    return [words[place + 1 : place + 1 + count] for place, word in enumerate(words) if word == option]


def test_all_namespaces_are_left_and_no_capability_is_kept() -> None:
    words = set(command())
    assert words >= {"--unshare-all", "--unshare-user", "--disable-userns"}
    assert words >= {"--die-with-parent", "--new-session", "--clearenv"}
    assert arguments_of("--cap-drop", 1) == [["ALL"]]
    assert arguments_of("--uid", 1) == arguments_of("--gid", 1) == [["65534"]]


def test_a_worker_of_roots_has_no_user_namespace_and_becomes_a_user_first() -> None:
    words = command(FIRST_USER + 7)
    assert set(words) >= {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--die-with-parent"}
    assert not set(words) & {"--unshare-all", "--unshare-user", "--uid"}
    assert [words[place + 1] for place, word in enumerate(words) if word == "--cap-add"] == [
        *("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    ]
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words[-5:] == ["-m", "axonp2p.sandbox.walls.drop_privileges", str(FIRST_USER + 7), "worker", "7"]


def test_a_user_that_is_not_root_can_go_to_every_folder_and_write_to_tmp() -> None:
    assert [folder for (folder,) in arguments_of("--dir", 1)] == ["/axon", "/etc", "/usr", "/blobs"]
    words = command(FIRST_USER)
    place = words.index("--tmpfs", words.index("--tmpfs") + 1)
    assert words[place - 2 : place + 2] == ["--perms", "1777", "--tmpfs", "/tmp"]


def test_nothing_can_be_written_but_a_tmp_with_a_size() -> None:
    words = command()
    assert not {"--bind", "--bind-try", "--bind-data", "--file", "--proc", "--dev"} & set(words)
    assert arguments_of("--remount-ro", 1) == [["/dev"], ["/"]]
    place = words.index("--tmpfs", words.index("--tmpfs") + 1)
    assert words[place - 4 : place + 2] == ["--size", str(64 * 2**20), "--perms", "0700", "--tmpfs", "/tmp"]
    # After the last folder was made: what comes later could not be made any more.
    assert words.index("--remount-ro") > words.index("/job")


def test_what_a_job_is_brought_is_shown_and_its_folder_is_always_there() -> None:
    assert ["/srv/1/blobs", "/blobs"] in arguments_of("--ro-bind", 2, blobs="/srv/1/blobs")
    assert ["/blobs"] in arguments_of("--dir", 1)
    assert ["/blobs"] not in arguments_of("--dir", 1, blobs="/srv/1/blobs")


def test_only_what_the_environment_names_and_the_job_are_bound() -> None:
    assert arguments_of("--ro-bind", 2) == [
        ["/usr/lib", "/usr/lib"],
        ["/home/ann/axon/axonp2p", "/axon/axonp2p"],
        ["/home/ann/jobs/1", "/job"],
    ]
    assert arguments_of("--symlink", 2) == [["usr/lib", "/lib"], ["/tmp", "/dev/shm"], ["/tmp/out", "/out"]]
    assert {device for device, _ in arguments_of("--dev-bind", 2)} == {
        f"/dev/{name}" for name in ("null", "full", "random", "urandom")
    }


def test_files_about_people_and_groups_are_made_up() -> None:
    assert arguments_of("--ro-bind-data", 2) == [[str(descriptor), path] for descriptor, path in FILES_PASSED]
    assert b"axon" in made_up(LIMITS)["/etc/passwd"]


def test_a_worker_with_a_card_has_a_library_that_names_no_threads() -> None:
    with_card = replace(LIMITS, gpu=GpuAccess("GPU-1", (), (), 1024))
    assert made_up(with_card).keys() - made_up(LIMITS).keys() == {"/nvidia/thread-names.so", "/proc/self/maps"}
    assert variables(ENVIRONMENT, with_card)["LD_PRELOAD"] == "/nvidia/thread-names.so"
    assert "LD_PRELOAD" not in variables(ENVIRONMENT, LIMITS)


def test_the_worker_waits_for_our_word_and_is_run_last() -> None:
    assert arguments_of("--info-fd", 1) == [["13"]]
    assert arguments_of("--block-fd", 1) == [["14"]]
    assert command()[-7:] == ["--", "/python/bin/python3.11", "-s", "-P", "-m", "worker", "7"]


def test_variables_name_cores_and_paths_inside_and_nothing_outside() -> None:
    found = variables(ENVIRONMENT, LIMITS)
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "3"
    assert found["PYTHONPATH"] == "/axon:/packages/0"
    assert found["PATH"] == "/python/bin"
    assert found["HOME"] == "/tmp"
    assert found["TORCH_COMPILE_DISABLE"] == "1"
    assert not [value for value in found.values() if "ann" in value]
    assert arguments_of("--setenv", 2) == [list(pair) for pair in found.items()]


def test_two_peers_list_a_set_of_text_in_the_same_order() -> None:
    assert variables(ENVIRONMENT, LIMITS)["PYTHONHASHSEED"] == "0"


def test_a_library_path_is_set_only_where_one_is_needed() -> None:
    plain = Environment(binds=(), links=(), python="/usr/bin/python3.11", python_path=("/axon",), library_path="")
    assert "LD_LIBRARY_PATH" not in variables(plain, LIMITS)


def test_a_gpu_is_shown_with_its_driver_and_only_to_a_worker_that_has_one() -> None:
    gpu = GpuAccess(
        "GPU-1",
        (("/dev/nvidiactl",) * 2, ("/dev/nvidia0",) * 2),
        (("/usr/lib/libcuda.so.1", "/nvidia/libcuda.so.1"),),
        8,
    )
    limits = replace(LIMITS, gpu=gpu)
    words = command(limits=limits)
    devices = [words[place + 1] for place, word in enumerate(words) if word == "--dev-bind"]
    assert devices == ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom", "/dev/nvidiactl", "/dev/nvidia0"]
    # After /dev is there, before it can be changed no more.
    assert words.index("/dev") < words.index("/dev/nvidia0") < words.index("--remount-ro")
    assert variables(ENVIRONMENT, limits)["LD_LIBRARY_PATH"] == "/python/lib:/nvidia"
    assert variables(ENVIRONMENT, limits)["AXON_DEVICE"] == "cuda"
    assert limits.start().devices == ["/dev/nvidiactl", "/dev/nvidia0"]
    assert not [word for word in command() if "nvidia" in word or "AXON_DEVICE" in word]
    assert LIMITS.start().devices == []
