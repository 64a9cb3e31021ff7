"""One attack on each part of the wall: enough to tell whether that part stands on this machine."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import resource
import socket
import struct
import sys

from axonp2p.sandbox.attacks.attack import Attack, AttackHeld, AttackTarget, attack
from axonp2p.sandbox.walls.command_line import NOBODY
from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER, RANGE

OPENED: list[int] = []
"""Descriptors that `inside` itself made for this attempt."""
_WAIT_S = 1.0
_SEEN = 4096
"""Numbers of descriptors that are looked at."""
_CAPBSET_READ, _GET_NO_NEW_PRIVILEGES = 23, 39
_NEW_USER = 0x10000000
_I386_GETPID = 20


# Mounts


@attack
def home_folder(target: AttackTarget) -> str:
    """tries to look into the home folder of the person"""
    return f"saw {len(os.listdir(target.home))} names in {target.home}"


@attack
def secret_file(target: AttackTarget) -> str:
    """tries to read a file of the daemon, such as its key, by its path"""
    with open(target.secret, "rb") as file:
        return f"read {len(file.read(4096))} bytes of {target.secret}"


@attack
def job_folder(target: AttackTarget) -> str:
    """tries to change its own job's files, which later jobs may share"""
    os.close(os.open("/job/left-behind", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC))
    return "could have written to /job/left-behind"


@attack
def devices(target: AttackTarget) -> str:
    """tries to open the machine's memory, its log, its disks and its terminals"""
    names = "mem kmem port kmsg vda sda nvme0n1 tty console ptmx fuse kvm net/tun loop-control uinput".split()  # noqa: SIM905
    refused: OSError | None = None
    for name in names:
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error:
            refused = error
        else:
            return f"opened /dev/{name}"
    raise refused or AttackHeld("there are none")


@attack
def list_of_processes(target: AttackTarget) -> str:
    """tries to list the programs that run on this machine"""
    found = [name for name in os.listdir("/proc") if name.isdigit() or name == "self"]
    if found:
        return f"saw {len(found)} of them"
    raise AttackHeld("none is to be seen")


# Namespaces, and what a new process is given


@attack
def variables_of_the_daemon(target: AttackTarget) -> str:
    """tries to read the environment variables of the daemon in its own"""
    found = sorted(set(target.variables) & set(os.environ))
    if found:
        return f"saw {', '.join(found)}"
    raise AttackHeld("none of them is here")


@attack
def name_of_the_machine(target: AttackTarget) -> str:
    """tries to learn the name of this machine"""
    if target.hostname in (os.uname().nodename, *_words("/etc/hostname"), *_words("/etc/hosts")):
        return f"learned {target.hostname}"
    raise AttackHeld(f"it is called {os.uname().nodename} in here")


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


@attack
def loopback(target: AttackTarget) -> str:
    """tries to connect to a program of this machine over loopback"""
    return _connect(socket.AF_INET, ("127.0.0.1", target.port))


@attack
def abstract_socket(target: AttackTarget) -> str:
    """tries to connect to a program of this machine over a Unix socket without a file"""
    return _connect(socket.AF_UNIX, f"\0{target.abstract}")


def _connect(family: int, address: tuple[str, int] | str) -> str:
    """The fact that it learnt: somebody listens there."""
    with socket.socket(family, socket.SOCK_STREAM) as caller:
        caller.settimeout(_WAIT_S)
        caller.connect(address)
    return f"connected to {address!r}"


@attack
def signal_to_the_daemon(target: AttackTarget) -> str:
    """tries to signal the daemon by its number"""
    os.kill(target.pid, 0)
    return "could have signalled it"


@attack
def inherited_descriptors(target: AttackTarget) -> str:
    """tries to find files that the daemon had open"""
    found = []
    # The one that every worker has besides 0, 1 and 2 is the channel.
    for number in set(range(_SEEN)) - {0, 1, 2, int(sys.argv[1]), *OPENED}:
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    if found:
        return f"found {found[:8]}"
    raise AttackHeld("only the channel is open")


# Users, rights, limits


@attack
def user_of_the_daemon(target: AttackTarget) -> str:
    """tries to run as the user who started it"""
    numbers = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
    # A user namespace shows everybody as nobody; a worker of root's is a user whom nobody is.
    if numbers == {NOBODY} or (len(numbers) == 1 and next(iter(numbers)) & RANGE == FIRST_USER):
        raise AttackHeld("nobody else is the user it is in here")
    return f"is user {os.getuid()} in {os.getgroups()}"


@attack
def left_rights(target: AttackTarget) -> str:
    """tries to find a right that was forgotten"""
    libc = ctypes.CDLL(None)
    left = ctypes.create_string_buffer(24)
    libc.capget(struct.pack("=Ii", 0x20080522, 0), left)
    bounding = [number for number in range(64) if libc.prctl(_CAPBSET_READ, number, 0, 0, 0) == 1]
    if any(left.raw) or bounding or libc.prctl(_GET_NO_NEW_PRIVILEGES, 0, 0, 0, 0) != 1:
        return f"has rights {left.raw.hex()}, and could have {bounding}"
    raise AttackHeld("it has none, and can be given none")


@attack
def ordinary_scheduling(target: AttackTarget) -> str:
    """tries to go back from idle to ordinary scheduling, beside the person's programs"""
    if os.sched_getscheduler(0) == os.SCHED_IDLE:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if os.getpriority(os.PRIO_PROCESS, 0) < 19:
            return "is scheduled as they are"
    raise AttackHeld(f"it stays at nice {os.getpriority(os.PRIO_PROCESS, 0)}")


@attack
def laid_limits(target: AttackTarget) -> str:
    """tries to find a limit that was forgotten"""
    needed = ("DATA", "NOFILE", "FSIZE", "CORE", "MEMLOCK", "SIGPENDING")
    open_ended = [
        name for name in needed if resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1] == resource.RLIM_INFINITY
    ]
    if open_ended:
        return f"found no limit for {', '.join(open_ended)}"
    raise AttackHeld("each has its limit")


# The filter of system calls: by name, by argument, and by another entrance of the kernel


@attack
def new_user(target: AttackTarget) -> str:
    """tries to become root of a user namespace of its own"""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "is root of one"


@attack
def shared_memory(target: AttackTarget) -> str:
    """tries to take memory that stays when who filled it has ended"""
    if target.gpu_nodes:
        raise AttackHeld("CUDA has to share memory in this way, so a job with a card may")
    mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS).close()
    return "took some"


@attack
def call_32_bits(target: AttackTarget) -> str:
    """tries to reach the kernel as a 32-bit program does (int 0x80)"""
    answer = call_by_int_0x80(_I386_GETPID)
    if answer != os.getpid():
        raise AttackHeld(f"the kernel answered {answer}")
    return "was told its number by a 32-bit call"


def call_by_int_0x80(number: int) -> int:
    """The answer to a 32-bit call without arguments that mean anything. Ends this process where there are none."""
    if platform.machine() != "x86_64":
        raise AttackHeld(f"{platform.machine()} has no such calls")
    # push rbx; xor ebx, ebx; xor ecx, ecx; xor edx, edx; mov eax, NUMBER; int 0x80; pop rbx; ret
    code = b"\x53\x31\xdb\x31\xc9\x31\xd2\xb8" + number.to_bytes(4, "little") + b"\xcd\x80\x5b\xc3"
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    page = mmap.mmap(-1, mmap.PAGESIZE, kind, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return int(call())


ATTACKS: tuple[Attack, ...] = (
    *(home_folder, secret_file, job_folder, devices, list_of_processes),
    *(variables_of_the_daemon, name_of_the_machine, loopback, abstract_socket),
    *(signal_to_the_daemon, inherited_descriptors),
    *(user_of_the_daemon, left_rights, ordinary_scheduling, laid_limits),
    *(new_user, shared_memory, call_32_bits),
)
"""Each is harmless and a matter of milliseconds."""
