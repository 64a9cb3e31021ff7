"""Which calls to the kernel a worker may make, by name. Decides only.

An allow-list: what is not named as allowed is refused. Three answers, and why they differ:

    ALLOWED   the kernel answers as it would without us
    ABSENT    "no such call here" (ENOSYS): libraries know kernels without it and have another way
    REFUSED   "not permitted" (EPERM): nothing that trains a model asks for it

`REFUSED` makes no rule, since refusing is what the filter does with everything unnamed. It is here so that a test can
hold the list against all names that the system knows: each was thought about, none was forgotten. Calls newer than
the system's own list are absent: that is what C libraries expect of a kernel that is older than they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER, RANGE

NEWEST_KNOWN = 424
"""From here on calls have the same number on all kinds of processor; those that are not named below are absent."""
NUMBERS = 600
"""Numbers below this are looked through for calls without a name; the kernel is at about 470."""


@dataclass(frozen=True)
class Argument:
    """A call goes through when its argument at `position`, under `mask`, is one of `values`; else it is refused."""

    position: int
    mask: int
    values: tuple[int, ...]


# The kernel looks at 32 bits of these arguments, so we must too: a bit set above them may not change the answer.
_LOW = 0xFFFFFFFF

ALLOWED = {
    "memory of its own": "brk mprotect munmap mremap madvise msync membarrier pkey_alloc pkey_free pkey_mprotect",
    "open files": (
        "open openat creat close close_range read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2"
        " lseek dup dup2 dup3 pipe pipe2 sendfile fadvise64 readahead fallocate ftruncate fsync fdatasync flock"
    ),
    "names of files; what may be changed is the business of mounts and of Landlock": (
        "stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 getcwd chdir"
        " fchdir readlink readlinkat truncate rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat"
        " symlink symlinkat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime utimes futimesat"
        " utimensat getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr"
    ),
    "waiting for files and events": (
        "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd"
        " eventfd2 signalfd signalfd4"
    ),
    "Unix sockets: the channel, and those between processes of the job": (
        "bind listen connect accept accept4 getsockname getpeername getsockopt setsockopt shutdown sendto recvfrom"
        " sendmsg recvmsg sendmmsg recvmmsg"
    ),
    "threads and processes of its own": (
        "fork vfork execve exit exit_group wait4 waitid futex futex_wait futex_wake futex_requeue futex_waitv rseq"
        " set_robust_list get_robust_list set_tid_address arch_prctl getpid getppid gettid getpgrp getpgid setpgid"
        " getsid setsid getcpu"
    ),
    "signals; nobody but the job is in its process namespace": (
        "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo"
        " rt_tgsigqueueinfo rt_sigsuspend sigaltstack restart_syscall pause"
    ),
    "time": (
        "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer timer_create"
        " timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime"
        " times"
    ),
    "asking about itself and the machine": (
        "uname sysinfo getrandom getrusage getuid geteuid getgid getegid getresuid getresgid getgroups capget"
        " getpriority ioprio_get get_mempolicy sched_getaffinity sched_getparam sched_getscheduler sched_getattr"
        " sched_get_priority_max sched_get_priority_min sched_rr_get_interval"
    ),
    "giving way; the kernel lets nobody without rights take more": (
        "sched_yield setpriority getrlimit setrlimit prlimit64 landlock_create_ruleset landlock_add_rule"
        " landlock_restrict_self capset"
    ),
}
"""Reason -> names, for calls that are allowed with any arguments."""

_NEW_NAMESPACES = 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_CLONE_PIDFD, _CLONE_PTRACE = 0x1000, 0x2000
_MAP_KIND, _MAP_WITHOUT_FILE = 0xF, 0x20  # MAP_SHARED is 1, MAP_PRIVATE 2, MAP_SHARED_VALIDATE 3
_MAP_HUGE_PAGES = 0x40000
_MAP_FLAGS = _MAP_KIND | _MAP_WITHOUT_FILE | _MAP_HUGE_PAGES

LIMITED = {
    # Of a file, shared or not; without a file, its own alone. Memory that is shared without a file counts for nobody
    # when who filled it has ended, while another only holds it. Torch's shared memory lies in /dev/shm, which has a
    # size. Not the huge pages that the owner set aside (MAP_HUGETLB): no count of a process's memory has them in it.
    "mmap": Argument(3, _MAP_FLAGS, (1, 2, 3, 2 | _MAP_WITHOUT_FILE)),
    # Threads and children, but no new namespaces: those bring rights within them, and most of the kernel's holes.
    "clone": Argument(0, _NEW_NAMESPACES | _CLONE_PIDFD | _CLONE_PTRACE, (0,)),
    # AF_UNIX. There is no network to be reached anyway; this keeps its code in the kernel out of reach.
    "socket": Argument(0, _LOW, (1,)),
    "socketpair": Argument(0, _LOW, (1,)),
    # TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what Python asks of a descriptor.
    # Not TIOCSTI and TIOCLINUX, which type into a terminal, and nothing of any device.
    "ioctl": Argument(1, _LOW, (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # F_DUPFD to F_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_GET_SEALS, F_OFD_GETLK to F_OFD_SETLKW. Not F_SETPIPE_SZ,
    # whose memory no limit of a process counts, and which the owner's pipes would lack.
    "fcntl": Argument(1, _LOW, (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034, 36, 37, 38)),
    # PDEATHSIG (set, get), GET_DUMPABLE, NAME (set, get), GET_SECCOMP, CAPBSET_READ, CAPBSET_DROP, GET_SECUREBITS,
    # TIMERSLACK (set, get), NO_NEW_PRIVS (set, get), GET_THP_DISABLE, SET_VMA. Not SET_DUMPABLE: the watch must be able
    # to look.
    "prctl": Argument(0, _LOW, (1, 2, 3, 15, 16, 21, 23, 24, 27, 29, 30, 38, 39, 42, 0x53564D41)),
    # A worker of root's becomes a user of this range, in no group but its own, before it hears of a job. Without
    # rights, which it has not afterwards, nobody becomes anybody.
    "setresuid": Argument(0, RANGE, (FIRST_USER,)),
    "setresgid": Argument(0, RANGE, (FIRST_USER,)),
    "setgroups": Argument(0, _LOW, (0,)),
    # Linux as it is, and the question which it is. Others switch off protections of memory.
    "personality": Argument(0, _LOW, (0, 0xFFFFFFFF)),
}
"""Calls that are allowed with some arguments only."""

GPU_ALLOWED = (
    # The requests of CUDA to nvidiactl and to a card: those of the kind 'F' (NV_IOCTL_MAGIC).
    ("ioctl", Argument(1, 0xFF00, (0x4600,))),
    # Its requests to nvidia-uvm, which are plain numbers (UVM_IOCTL_BASE), but for the first and the last.
    ("ioctl", Argument(1, 0xFFFFFF00, (0,))),
    ("ioctl", Argument(1, _LOW, (0x30000001, 0x30000002))),
    # Memory that the card reads is shared without a file (CUDA 13: some 20 MiB a process). What a job hides in it, the
    # watch on the machine's free memory sees, as with memory that the driver takes.
    ("mmap", Argument(3, _MAP_FLAGS, (1 | _MAP_WITHOUT_FILE,))),
)
"""Allowed beside `LIMITED` to a worker that has a GPU. Landlock and the mounts say of which nodes they may be asked."""

ABSENT = {
    "C libraries go back to clone, whose arguments a filter can read": "clone3",
    "memory without a name, and programs that were never a file": "memfd_create memfd_secret execveat",
    "a way around every filter of calls": "io_uring_setup io_uring_enter io_uring_register",
    "other queues of requests to the kernel": (
        "io_setup io_destroy io_getevents io_pgetevents io_submit io_cancel epoll_ctl_old epoll_wait_old"
    ),
    "a favourite tool against the kernel": "userfaultfd",
    "handles on processes: numbers suffice": "pidfd_open pidfd_getfd pidfd_send_signal",
    "there is an older call that does it": "openat2 copy_file_range cachestat map_shadow_stack",
    "gone from kernels long ago, or of other systems": (
        "_sysctl afs_syscall create_module get_kernel_syms getpmsg nfsservctl putpmsg query_module security tuxcall"
        " uselib vserver lookup_dcookie set_thread_area get_thread_area"
    ),
}

REFUSED = {
    "looking into other processes": (
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp perf_event_open mincore"
    ),
    "programs in the kernel": "bpf seccomp init_module finit_module delete_module kexec_load kexec_file_load",
    "mounts and namespaces": (
        "mount umount2 pivot_root chroot setns unshare open_tree move_mount fsopen fsconfig fsmount fspick"
        " mount_setattr name_to_handle_at open_by_handle_at statmount listmount"
    ),
    "keys of the owner": "add_key request_key keyctl",
    "being somebody else": "setuid setgid setreuid setregid setfsuid setfsgid",
    "more of the machine than was given: turns, cores, disk, memory that cannot be swapped": (
        "sched_setscheduler sched_setparam sched_setattr sched_setaffinity ioprio_set mlock mlock2 mlockall munlock"
        " munlockall mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages remap_file_pages"
    ),
    "memory that outlives its process and that no limit counts": (
        "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink"
        " mq_timedsend mq_timedreceive mq_notify mq_getsetattr setxattr lsetxattr fsetxattr removexattr lremovexattr"
        " fremovexattr vmsplice splice tee"
    ),
    "numbers that are the owner's too: its watches on files are counted for the person": (
        "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_init fanotify_mark"
    ),
    "devices and pipes with a name": "mknod mknodat",
    "flushing all disks of the machine": "sync syncfs sync_file_range",
    "the machine itself": (
        "acct adjtimex clock_adjtime clock_settime settimeofday ioperm iopl modify_ldt quotactl quotactl_fd reboot"
        " sethostname setdomainname swapon swapoff sysfs syslog ustat vhangup"
    ),
}


def names(groups: dict[str, str]) -> list[str]:
    """All names in a table of reasons."""
    return [name for group in groups.values() for name in group.split()]
