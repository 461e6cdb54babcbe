"""Rules for the host: memory, shared memory, disk, ports, processes that crash, libraries that do not load.

Must not know: Ray, the rollout engines, verl.
"""

from __future__ import annotations

import re

from ..records import Kind
from .rule import Rank, Rule

_SHM = "Give the container more shared memory (docker --shm-size, the size of the /dev/shm volume)."
_KILLED = "Killed with SIGKILL, most often by the OOM killer: look at dmesg and at the memory limit of the container."

RULES = (
    Rule(
        kind=Kind.HOST_OOM,
        rank=Rank.CAUSE,
        origin="torch: the shared memory of the container is too small; its errno is 28 too, so it stands before the disk",
        advice=_SHM,
        texts=(
            "out of shared memory",
            "insufficient shared memory",
            "killed by signal: bus error",
            "fatal python error: bus error",
        ),
        patterns=(
            ("unable to", re.compile(r"unable to (?:write to|open|allocate|mmap|resize).{0,60}(?:shared memory|</torch_)")),
            (
                "/dev/shm",  # noqa: S108  # read from a log, never opened
                re.compile(
                    r"/dev/shm.{0,120}(?:No space left|[Cc]annot allocate|not enough)|No space left.{0,120}/dev/shm"  # noqa: S108  # as above
                ),
            ),
            ("bus error", re.compile(r"^(?:.{0,200}: line \d+: +\d+ )?Bus error\b")),
            ("sigbus", re.compile(r"\*\*\* SIGBUS received|\(SIGBUS\)")),
        ),
        is_shutdown_noise=True,
    ),
    Rule(
        kind=Kind.HOST_OOM,
        rank=Rank.CAUSE,
        origin="the kernel's OOM killer, Kubernetes, Ray's memory monitor, allocators",
        texts=(
            "running low on memory",
            "exceeds the memory usage threshold",
            "killed due to memory pressure",
            "oomkilled",
            "memory cgroup out of memory",
            "out of memory: killed process",
            "oom-kill:",
            "defaultcpuallocator",
            "std::bad_alloc",
        ),
        patterns=(("cannot allocate memory", re.compile(r"annot allocate memory(?! in static)")),),
        at_warning=True,
    ),
    Rule(
        kind=Kind.DISK_FULL,
        rank=Rank.CAUSE,
        origin="errno 28 and 122, torch's checkpoint writer, Ray's object spilling",
        texts=(
            "no space left on device",
            "disk quota exceeded",
            "pytorchstreamwriter failed writing",
            "outofdiskerror",
            "disk is full",
        ),
        patterns=(
            ("unexpected pos", re.compile(r"inline_container\.cc.{0,40}unexpected pos")),
            ("errno", re.compile(r"\[Errno (?:28|122)\]")),
        ),
    ),
    Rule(
        kind=Kind.PORT_CONFLICT,
        rank=Rank.CAUSE,
        origin="sockets; TCPStore's nonce: the port belongs to the store of another run; HCCL's EI0019, EI0020, EJ0003; ray start",
        texts=(
            "address already in use",
            "eaddrinuse",
            "invalid nonce returned",
            "failed to bind the ip port",
            "have been bound already",
            "has failed to bind to",
            "that is used by other components",
            "error_bind_ip_port",
        ),
        patterns=(
            ("errno", re.compile(r"\[Errno 98\]|errno: 98\b")),
            (
                "port",
                re.compile(
                    r"(?i)\bport\b.{0,60}(?:already in use|is in use|is occupied|has been bound|not available)(?!.{0,40}trying)"
                ),
            ),
        ),
        at_warning=True,
    ),
    Rule(
        kind=Kind.ENVIRONMENT,
        rank=Rank.CAUSE,
        origin="the dynamic loader, the shell, compiled extensions",
        patterns=(
            ("shared object", re.compile(r"(?:Error: |error while loading ).{0,400}cannot open shared object file")),
            ("undefined symbol", re.compile(r"(?:Error: |symbol lookup error: ).{0,400}undefined symbol")),
            ("glibc", re.compile(r"(?:Error: |: )/.{0,300}GLIBC(?:XX)?_[\d.]+.{0,20} not found")),
            (
                "error: ",
                re.compile(
                    r"Error: .{0,300}(?:wrong ELF class|static TLS block|is required for a normal functioning of this module)"
                ),
            ),
            ("numpy", re.compile(r"numpy\.(?:dtype|ndarray) size changed|numpy\.core\.multiarray failed to import")),
            ("command not found", re.compile(r": line \d+: \S{1,80}: command not found")),
            ("no module named", re.compile(r"^\S{0,200}python[\d.]{0,6}: No module named \S")),
        ),
    ),
    Rule(
        kind=Kind.ENVIRONMENT,
        rank=Rank.ERROR,
        origin="torch and vLLM without the plugin of the device; limits of the host",
        texts=(
            "failed to infer device type",
            "torch not compiled with cuda enabled",
            "found no nvidia driver",
            "too many open files",
            "received 0 items of ancdata",
            "read-only file system",
            "stale file handle",
            "input/output error",
            "transport endpoint is not connected",
        ),
        patterns=(
            ("start of device string", re.compile(r"Expected one of cpu, .{0,300}device type at start of device string: npu")),
        ),
    ),
    Rule(
        kind=Kind.HOST_OOM,
        rank=Rank.ERROR,
        origin="torch's DataLoader: SIGKILL is the OOM killer's",
        texts=("is killed by signal: killed",),
        is_shutdown_noise=True,
    ),
    Rule(
        kind=Kind.WORKER_CRASH,
        rank=Rank.ERROR,
        origin="signals and glibc's heap checks",
        advice="A process crashed in native code: the frames below the line, or the core file, tell where.",
        texts=(
            "segmentation fault",
            "*** sigsegv received",
            "*** sigill received",
            "*** sigfpe received",
            "sigsegv: ",
            "double free or corruption",
            "corrupted size vs. prev_size",
            "corrupted double-linked list",
            "malloc_consolidate():",
            "free(): invalid",
            "munmap_chunk(): invalid",
            "stack smashing detected",
            "(core dumped)",
        ),
        patterns=(
            ("fatal python error", re.compile(r"^Fatal Python error: (?!Aborted)")),
            (
                "signal",
                re.compile(r"(?:received|by a) signal:? (?:SIGSEGV|SIGILL|SIGFPE|11\b)|\(SIGSEGV\)|killed by signal: Segmentation"),
            ),
        ),
    ),
    Rule(
        kind=Kind.WORKER_CRASH,
        rank=Rank.DEATH,
        origin="aborts: what was thrown stands beside them",
        texts=("fatal python error: aborted", "*** sigabrt received", "terminate called after throwing"),
        is_shutdown_noise=True,
    ),
    Rule(
        kind=Kind.WORKER_CRASH,
        rank=Rank.DEATH,
        origin="bash, torchrun: ended by SIGKILL",
        advice=_KILLED,
        texts=("signal 9 (sigkill)",),
        patterns=(
            ("killed", re.compile(r"^(?:.{0,200}: line \d+: +\d+ )?Killed(?: |$)")),
            ("exit", re.compile(r"exit ?code *: *-9\b|exit (?:code|status) 137\b")),
        ),
    ),
    Rule(
        kind=Kind.WORKER_CRASH,
        rank=Rank.DEATH,
        origin="torch's DataLoader",
        texts=("is killed by signal: ",),
        patterns=(("exited unexpectedly", re.compile(r"DataLoader worker \(pid(?:\(s\))? .{1,80}exited unexpectedly")),),
        is_shutdown_noise=True,
    ),
    Rule(
        kind=Kind.CODE_ERROR,
        rank=Rank.DEATH,
        origin="threads that outlive the objects they walk over",
        texts=("dictionary changed size during iteration", "changed size during iteration"),
        is_shutdown_noise=True,
    ),
)
