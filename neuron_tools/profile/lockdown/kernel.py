"""What Linux takes from a process for good: files (Landlock), system calls (seccomp), resources (rlimits).

The only file that speaks to the kernel by numbers. Sources: linux/landlock.h, linux/seccomp.h,
linux/filter.h, linux/audit.h, and asm/unistd.h of both machines. Landlock needs Linux 5.13; where the kernel
has it not, or a container forbids it, the rlimits and the database's own rules remain.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_VERSION_FLAG, LANDLOCK_PATH_BENEATH = 1, 1
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
WRITE_RIGHTS = 1 << 1 | 0b11_1111_1111 << 4
"""To write into files, to remove, make and link them, and to move them between folders."""
MOVE_VERSION = 2
TRUNCATE, TRUNCATE_VERSION = 1 << 14, 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights over files a version of Landlock knows, by the version that brought them."""
NETWORK_VERSION, NETWORK_RIGHTS = 4, 0b11
SCOPE_VERSION, SCOPES = 6, 0b11  # abstract sockets, and signals to processes outside

SECCOMP_SET_MODE_FILTER, SECCOMP_ALL_THREADS = 1, 1
REFUSE, ALLOW, KILL = 0x00050000, 0x7FFF0000, 0x80000000
EPERM = 1
LOAD, JUMP_EQUAL, JUMP_ABOVE, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER_OFFSET, MACHINE_OFFSET = 0, 4
X32_CALLS = 0x40000000
REFUSED_CALLS = {
    # (audit's name of the machine, number of seccomp, numbers refused)
    "x86_64": (0xC000003E, 317, (
        41, 42, 43, 49, 50, 288,  # socket, connect, accept, bind, listen, accept4
        57, 58, 59, 322,  # fork, vfork, execve, execveat
        62, 424, 434, 438,  # kill, pidfd_send_signal, pidfd_open, pidfd_getfd
        101, 310, 311, 312,  # ptrace, process_vm_readv, process_vm_writev, kcmp
        155, 161, 165, 166, 272, 308, 428, 429, 430, 442,  # pivot_root, chroot, mounts, unshare, setns
        175, 313, 246, 320, 169,  # modules, kexec, reboot
        248, 249, 250, 298, 304, 321, 323, 425,  # keys, perf, handles, bpf, userfaultfd, io_uring
    )),
    "aarch64": (0xC00000B7, 277, (
        198, 203, 202, 200, 201, 242,
        221, 281,
        129, 424, 434, 438,
        117, 270, 271, 272,
        41, 51, 40, 39, 97, 268, 428, 429, 430, 442,
        105, 273, 104, 294, 142,
        217, 218, 219, 241, 265, 280, 282, 425,
    )),
}  # fmt: skip


def read_only_below(folders: Sequence[Path]) -> bool:
    """Let this thread, and those that it starts, read below some folders and touch no other file.

    What is open stays open.

    Returns:
        Whether the kernel could.
    """
    version = _landlock_version()
    rights = (1 << max([0, *(count for since, count in FILE_RIGHTS.items() if since <= version)])) - 1
    network = NETWORK_RIGHTS if version >= NETWORK_VERSION else 0
    return version >= 1 and _landlock(version, rights, network, READ_FILE | READ_FOLDER, folders)


def write_only_below(folders: Sequence[Path]) -> bool:
    """Let this thread, and those that it starts, make, change and remove files below some folders only.

    Returns:
        Whether the kernel could.
    """
    version = _landlock_version()
    rights = WRITE_RIGHTS | (TRUNCATE if version >= TRUNCATE_VERSION else 0)
    return version >= MOVE_VERSION and _landlock(version, rights, 0, rights, folders)


def _landlock_version() -> int:
    return int(_libc().syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION_FLAG))


def _landlock(version: int, rights: int, network: int, allowed: int, folders: Sequence[Path]) -> bool:
    """Take rights over files and the network away, and leave some of them below folders."""
    libc = _libc()
    handled = struct.pack("QQQ", rights, network, SCOPES if version >= SCOPE_VERSION else 0)
    size = 8 if version < NETWORK_VERSION else 16 if version < SCOPE_VERSION else 24
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, handled, size, 0)
    if rules < 0:
        return False
    try:
        return all(_allow(libc, rules, allowed, folder) for folder in folders) and _restrict(libc, rules)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, rights: int, folder: Path) -> bool:
    handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, handle)
        return bool(libc.syscall(LANDLOCK_ADD_RULE, rules, LANDLOCK_PATH_BENEATH, rule, 0) == 0)
    finally:
        os.close(handle)


def _restrict(libc: ctypes.CDLL, rules: int) -> bool:
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0) == 0)


def refuse_system_calls() -> bool:
    """Have all threads of this process refused the network, other programs and other processes.

    Returns:
        Whether the kernel could.
    """
    known = REFUSED_CALLS.get(platform.machine())
    if known is None:
        return False
    machine, seccomp, calls = known
    program = _filter(machine, calls)
    libc = _libc()
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    code = ctypes.create_string_buffer(program)
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code)))
    return bool(libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_ALL_THREADS, head) == 0)


def _filter(machine: int, calls: Sequence[int]) -> bytes:
    """The filter as steps of (operation, jump if true, jump if false, value)."""
    steps = [
        (LOAD, 0, 0, MACHINE_OFFSET),
        (JUMP_EQUAL, 1, 0, machine),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_OFFSET),
        (JUMP_ABOVE, len(calls) + 1, 0, X32_CALLS),
        *((JUMP_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE | EPERM),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def limit_resources(*, files: int, file_bytes: int) -> None:
    """Limit descriptors and the size of written files, and keep memory out of core files."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_FSIZE: file_bytes,
    }
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


def leave_no_core_file() -> None:
    """Keep memory out of core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def limit_memory(further_bytes: int) -> None:
    """Let the address space grow by so much beyond what it is now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + further_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_processor_time(further_s: float) -> None:
    """Have the kernel end this process when it has used so much more time of the processors."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + further_s) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
