"""The worker process: makes one call after another for the daemon, with limits on memory and processor time.

`python -m ebbtide.offload.worker` reads requests from standard input and writes replies to standard output. A request
is three frames: the function, its time limit, its arguments. A reply is two frames: READY once the function is
imported, then a status byte with the pickled result or exception. A frame is its length in eight bytes and its content.

The process ends when standard input ends, when it uses more than LARGE_BYTES after a call, and when a call exceeds its
time limit in processor time. The kernel enforces the last limit, so a worker whose daemon was killed does not run for
ever. Both ends trust each other: frames are pickles.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import struct
import sys
from typing import BinaryIO, Final

from ebbtide.text_caches import clear_text_caches

LENGTH: Final = struct.Struct(">Q")
SECONDS: Final = struct.Struct(">d")

READY: Final = b"ready"
RESULT: Final = b"+"
FAILURE: Final = b"-"

MAX_MEMORY_BYTES: Final = 1 << 30
"""Memory that a worker may allocate. A call that needs more fails with MemoryError."""

LARGE_BYTES: Final = 384 << 20
"""A worker that uses more than this ends after its call."""

CPU_MARGIN_S: Final = 2.0
"""Processor time beyond the limit of a call before the kernel ends the process: the daemon acts first."""


def write_frame(file: BinaryIO, *parts: bytes) -> None:
    """Write one frame made of some parts."""
    file.write(LENGTH.pack(sum(map(len, parts))))
    for part in parts:
        file.write(part)
    file.flush()


def read_frame(file: BinaryIO) -> bytes:
    """Read one frame. Raise EOFError if the other end was closed."""
    length = LENGTH.unpack(_read_exactly(file, LENGTH.size))[0]
    return _read_exactly(file, length)


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if content is None or len(content) < size:
        raise EOFError
    return content


def _limit_processor_time(seconds: float) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used_s = usage.ru_utime + usage.ru_stime
    most_s = int(used_s + seconds + CPU_MARGIN_S) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _reply(function: object, arguments: bytes) -> tuple[bytes, bytes]:
    assert callable(function)
    try:
        return RESULT, pickle.dumps(function(*pickle.loads(arguments)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        try:
            return FAILURE, pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        except Exception:
            # Not every exception can be pickled. The message may contain text and stays here.
            return FAILURE, pickle.dumps(RuntimeError(type(error).__name__), pickle.HIGHEST_PROTOCOL)


def _resident_bytes() -> int:
    """Return the memory of this process. On Linux not its peak: a child inherits that from the daemon."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Serve calls until the other end is closed or a limit ends the process."""
    while True:
        try:
            function = pickle.loads(read_frame(requests))
            write_frame(replies, READY)
            _limit_processor_time(SECONDS.unpack(read_frame(requests))[0])
            status, content = _reply(function, read_frame(requests))
            # The daemon cannot clear them when the text is deleted.
            clear_text_caches()
            write_frame(replies, status, content)
        except (EOFError, BrokenPipeError):
            return
        if _resident_bytes() > LARGE_BYTES:
            return


def main() -> None:
    """Set the limits of the process and serve."""
    # Ctrl-C in a terminal reaches every process of its group; the daemon decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if hasattr(resource, "RLIMIT_DATA") and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, resource.RLIM_INFINITY))
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output printed by accident must not get between the frames.
    os.dup2(2, 1)
    serve(requests, replies)


if __name__ == "__main__":
    main()
