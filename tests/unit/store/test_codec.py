"""The decoders of stored types are built on import, before there are threads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ebbtide.store.codec import KNOWN

SERVICE = Path(__file__).parents[3] / "service" / "ebbtide"
READS = re.compile(r"(?:decode\([^()]*type=|msgpack\.Decoder\()([\w.\[\], ]+)\)")

MEETING = """
import sys, threading
sys.setswitchinterval(1e-6)
import ebbtide.store.lmdb.lmdb_store
import msgspec
from ebbtide.records import Batch, Node, Rewrite, Source
sources, rewrites = (Source(1, 0, 1),), (Rewrite(1, 1, 2, 1, "m"),)
node = msgspec.msgpack.encode(Node(1, "a", "b", ("k",), 1, 1, sources=sources, rewrites=rewrites))
batch = msgspec.msgpack.encode(Batch(1, 1, 1, 1))
together = threading.Barrier(8)
def read():
    together.wait()
    msgspec.msgpack.decode(node, type=Node)
    msgspec.msgpack.decode(batch, type=Batch)
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_every_type_that_is_read_is_known() -> None:
    """The decoder of every type that is read from a store is built on import."""
    read = {
        found
        for path in [*SERVICE.glob("store/**/*.py"), *SERVICE.glob("fleet/**/*.py")]
        for found in READS.findall(path.read_text(encoding="utf-8"))
    }
    assert {"NodeText", "PendingDeletion"} <= read
    names = {getattr(kind, "__name__", "") if isinstance(kind, type) else str(kind) for kind in KNOWN}
    names |= {"list[PassageEntry]", "kind"}
    assert {"Node", "Batch"} <= names
    assert read - names == set()


def test_threads_that_read_first_together_do_not_crash() -> None:
    """Eight threads that decode types for the first time at once do not crash."""
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", MEETING], capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
