"""A job reaches nothing: no network, no files, no processes, no rights."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import axonp2p
from axonp2p.sandbox.environment import find_environment
from axonp2p.sandbox.walls import landlock
from axonp2p.sandbox.walls.command_line import NOBODY, variables
from axonp2p.sandbox.walls.drop_privileges import FIRST_USER, RANGE

CHECKOUT = Path(axonp2p.__file__).resolve().parent.parent

# --- the network ---


async def test_no_network_is_reachable_not_even_this_machine(sandboxed: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0axon-test-{os.getpid()}")
        local.listen()
        task = f"""
            import socket
            def interfaces():
                try:
                    return [name for _, name in socket.if_nameindex()]
                except OSError as error:
                    return error.strerror
            def tried(family, address):
                try:
                    socket.socket(family).connect(address)
                except OSError as error:
                    return error.strerror
                return "connected"
            answer({{
                "interfaces": interfaces(),
                "loopback": tried(socket.AF_INET, ("127.0.0.1", {listener.getsockname()[1]})),
                "outside": tried(socket.AF_INET, ("192.0.2.1", 80)),
                "outside six": tried(socket.AF_INET6, ("2001:db8::1", 80)),
                "abstract": tried(socket.AF_UNIX, "\\0axon-test-{os.getpid()}"),
            }})
        """
        assert await sandboxed.answer(task) == {
            # No sockets of any kind but Unix ones, which the one that lists the interfaces is not.
            **dict.fromkeys(("interfaces", "loopback", "outside", "outside six"), "Operation not permitted"),
            "abstract": "Connection refused",
        }


# --- files ---


async def test_only_python_and_the_job_can_be_seen(sandboxed: Any, tmp_path: Path) -> None:
    hidden = [Path.home(), CHECKOUT, tmp_path, "/etc/shadow", "/etc/hostname", "/sys", "/var", "/run", "/usr/bin"]
    task = f"""
        import os
        def listed(folder):
            try:
                return sorted(os.listdir(folder))
            except PermissionError:
                return None
        seen = {{folder: listed(folder) for folder in "/ /etc /axon /proc /dev /tmp /job".split()}}
        hidden = [path for path in {list(map(str, hidden))!r} if os.path.exists(path)]
        answer([seen, hidden, open("/etc/passwd").read()])
    """
    seen, hidden_but_seen, passwd = await sandboxed.answer(task)
    assert hidden_but_seen == []
    # Where there is Landlock, folders that are only on the way to others cannot be listed.
    top = set(seen["/"] or [])
    assert top <= set("axon blobs data dev etc job lib lib32 lib64 packages proc python tmp usr".split())  # noqa: SIM905
    assert seen["/etc"] == ["group", "ld.so.cache", "nsswitch.conf", "passwd"]
    assert seen["/axon"] == ["axonp2p"]
    assert seen["/proc"] in (None, ["cpuinfo", "meminfo"])
    assert seen["/dev"] in (None, ["full", "null", "random", "shm", "urandom"])
    assert seen["/tmp"] == []
    assert seen["/job"] == ["probe.py", "task.py"]
    assert passwd == "axon:x:65534:65534::/tmp:/none\n"


async def test_nothing_can_be_written_but_tmp(sandboxed: Any) -> None:
    task = """
        import os, sys
        def tried(path):
            try:
                open(path, "w").close()
            except OSError as error:
                return error.strerror
            return "written"
        folders = "/ /etc /dev /job /axon /axon/axonp2p /usr/lib /proc /packages /python /tmp".split()
        folders += [path for path in sys.path if path.startswith("/packages")]
        found = {folder: tried(folder + "/x") for folder in folders}
        found["task"] = tried("/job/task.py")
        found["passwd"] = tried("/etc/passwd")
        answer(found)
    """
    found = await sandboxed.answer(task)
    assert found.pop("/tmp") == "written"
    assert set(found.values()) <= {"Read-only file system", "No such file or directory"}
    assert found["task"] == found["passwd"] == "Read-only file system"


async def test_tmp_and_shared_memory_hold_their_size_together(sandboxed: Any) -> None:
    task = """
        import os
        written, why = 0, []
        for number in range(8):
            with open(f"{'/tmp' if number % 2 else '/dev/shm'}/{number}", "wb", buffering=0) as file:
                try:
                    for _ in range(4):
                        written += file.write(bytes(2**20))
                except OSError as error:
                    why.append(error.strerror)
        answer([written, why])
    """
    written, why = await sandboxed.answer(task)
    assert written <= 16 * 2**20
    assert set(why) == {"No space left on device"}


async def test_a_single_file_is_cut_at_its_limit(sandboxed: Any) -> None:
    task = """
        import os
        try:
            os.truncate(os.open("/tmp/x", os.O_CREAT | os.O_RDWR), 17 * 2**20)
            answer("grown")
        except OSError as error:
            answer(error.strerror)
    """
    assert await sandboxed.answer(task) == "File too large"


async def test_a_flood_of_empty_files_is_ended(sandboxed: Any) -> None:
    task = """
        for number in range(10**6):
            open(f"/tmp/{number}", "w").close()
    """
    end = await sandboxed.end(task)
    assert end.limit == "files"


# --- processes, users and rights ---


async def test_no_other_process_can_be_seen_or_signalled(sandboxed: Any) -> None:
    task = f"""
        import os, signal
        def tried(pid, number):
            try:
                os.kill(pid, number)
            except OSError as error:
                return error.strerror
            return "sent"
        answer([
            os.getpid() < 10,
            tried({os.getpid()}, 0),
            tried(-1, signal.SIGKILL),  # all but itself and the first
            tried(1, signal.SIGKILL),
            os.getsid(0) < 10,
        ])
    """
    small, daemon, all_others, _, own_session = await sandboxed.answer(task)
    assert small
    assert own_session
    assert daemon == "No such process"
    assert all_others in ("sent", "No such process")


async def test_no_right_is_left(sandboxed: Any) -> None:
    task = """
        import ctypes, os, struct
        libc = ctypes.CDLL(None, use_errno=True)
        def tried(call, *arguments):
            return "done" if getattr(libc, call)(*arguments) == 0 else os.strerror(ctypes.get_errno())
        sets = ctypes.create_string_buffer(24)
        libc.capget(struct.pack("=Ii", 0x20080522, 0), sets)
        CLONE_NEWUSER, CLONE_NEWNS, PR_GET_NO_NEW_PRIVS, PR_CAPBSET_READ = 0x10000000, 0x20000, 39, 23
        answer({
            "ids": [os.getuid(), os.geteuid(), os.getgid(), *set(os.getgroups())],
            "no new privileges": libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
            "bounding set": [n for n in range(41) if libc.prctl(PR_CAPBSET_READ, n, 0, 0, 0) == 1],
            "capabilities": struct.unpack("6I", sets.raw),
            "new user namespace": tried("unshare", CLONE_NEWUSER),
            "new mount namespace": tried("unshare", CLONE_NEWNS),
            "mount": tried("mount", b"none", b"/tmp", b"tmpfs", 0, None),
            "unmount": tried("umount2", b"/job", 2),
            "chroot": tried("chroot", b"/tmp"),
            "become root": tried("setuid", 0),
            "become root by another way": tried("setresuid", 0, 0, 0),
            "become the next worker": tried("setresuid", 0x7A000000, 0x7A000000, 0x7A000000),
            "join the root group": tried("setgroups", 1, struct.pack("I", 0)),
            "rename the machine": tried("sethostname", b"x", 1),
            "be nicer to itself": tried("setpriority", 0, 0, 0),
            "nice": os.nice(0),
        })
    """
    sandboxed.priority = "idle"  # as an owner has it who says nothing
    found = await sandboxed.answer(task)
    (user,) = set(found.pop("ids"))
    # Whom nobody is, so that the kernel counts the processes of this worker alone.
    assert user & RANGE == FIRST_USER if os.geteuid() == 0 else user == NOBODY
    assert found.pop("capabilities") == [0, 0, 0, 0, 0, 0]
    assert found.pop("no new privileges") == 1
    assert found.pop("bounding set") == []
    assert found.pop("nice") == 19
    assert found.pop("new user namespace") in ("No space left on device", "Operation not permitted")
    assert found.pop("become the next worker") in ("Operation not permitted", "Invalid argument")
    assert found.pop("be nicer to itself") == "Permission denied"
    assert set(found.values()) == {"Operation not permitted"}


async def test_only_the_channel_is_inherited(sandboxed: Any) -> None:
    task = """
        import os, stat, sys
        found = {}
        for number in range(256):
            try:
                found[number] = stat.S_IFMT(os.fstat(number).st_mode)
            except OSError:
                pass
        answer([found, int(sys.argv[1]), os.read(0, 1).decode()])
    """
    secret = os.memfd_create("secret")
    os.set_inheritable(secret, True)
    found, channel, typed = await sandboxed.answer(task)
    os.close(secret)
    assert set(map(int, found)) == {0, 1, 2, channel}
    assert typed == ""  # standard input is empty


async def test_the_environment_is_made_from_nothing(sandboxed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "swordfish")
    async with sandboxed.worker("import os; answer(dict(os.environ)); import time; time.sleep(60)") as worker:
        environment = json.loads(bytes((await worker.channel.receive())[1]))
        first = psutil.Process(worker.pid)
        processes = [first, *first.children(recursive=True)]
        # bubblewrap's own are the parents of the worker, and could be read from inside if there were a /proc.
        assert not [process for process in processes if "swordfish" in str(process.environ())]
        assert first.environ() == {}
    expected = variables(find_environment(), sandboxed.LIMITS)
    expected["PYTHONPATH"] += ":/job"
    environment.pop("PWD", None)
    assert environment == expected


async def test_two_workers_list_a_set_of_text_in_the_same_order(sandboxed: Any) -> None:
    """Else no two honest peers would agree on what a function returns that does so."""
    found = [await sandboxed.answer("answer([list({str(i) for i in range(50)}), hash('otter')])") for _ in range(2)]
    assert found[0] == found[1]


# --- programs ---


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("executes", [False, True])
async def test_a_bundle_is_executed_where_its_kind_may_and_what_a_job_wrote_never(
    sandboxed: Any, executes: bool
) -> None:
    # No interpreter but Python's is inside.
    program = sandboxed.job / "program"
    program.write_text(f"#!{find_environment().python}\nprint('ran')\n")
    program.chmod(0o755)
    task = """
        import os, shutil, subprocess
        def tried(path):
            try:
                return subprocess.run([path], capture_output=True, text=True).stdout
            except OSError as error:
                return error.strerror
        shutil.copy("/job/program", "/tmp/copy")
        os.symlink("/tmp/copy", "/tmp/link")
        try:
            os.chmod("/job/program", 0o644)
            changed = True
        except OSError:
            changed = False
        answer([tried("/job/program"), tried("/tmp/copy"), tried("/tmp/link"), changed])
    """
    own, *written, changed = await sandboxed.answer(task, replace(sandboxed.LIMITS, executes=executes))
    assert own == ("ran\n" if executes else "Permission denied")
    assert written == ["Permission denied", "Permission denied"]
    assert not changed
