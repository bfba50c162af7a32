"""A map that cannot grow: the write is refused, and the store works on without a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.process import ROOT

WITHOUT_MEMORY = """
import resource, sys
from pathlib import Path
from ebbtide.errors import Unavailable
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.records import Identity
from ebbtide.changes import Change
from ebbtide.records import Node
from ebbtide.store.layout import FORMAT_VERSION

identity = Identity("ann", 0, 1, FORMAT_VERSION)
store = LmdbStore.create(Path(sys.argv[1]), identity, map_bytes=32 << 20, max_map_bytes=4 << 30)

LARGE = "".join(chr(0x4E00 + place * place * 31 % 20000) for place in range(400_000))

def tell(number, text):
    node = Node(number, text, "", (), 0, len(text))
    store.write(lambda txn: txn.apply(Change(nodes=[node], next_node_id=number + 1)))

def count():
    return store.read(lambda txn: txn.counts()).node_count

while store._map_bytes == 32 << 20 and (store.path / "data.mdb").stat().st_size < 26 << 20:
    tell(count() + 1, LARGE)
before = count()
assert store._map_bytes == 32 << 20
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
# Room for a map as large as it is and for what is written, not for a map twice as large.
resource.setrlimit(resource.RLIMIT_AS, (held + (28 << 20), resource.RLIM_INFINITY))
refused = 0
while refused < 3:
    assert count() < before + 20
    try:
        tell(count() + 1, LARGE)
    except Unavailable as error:
        assert error.reason == "STORE_UNAVAILABLE", error.reason
        refused += 1
after = count()
tell(after + 1, "x")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for _ in range(20):
    tell(count() + 1, LARGE)
assert count() == after + 21
assert store._map_bytes > 32 << 20
assert check_store(store) == []
print("refused", refused)
store.close()
"""


def test_a_map_that_cannot_be_made_larger_is_taken_up_again(tmp_path: Path) -> None:
    """Without address space for a larger map the write is STORE_UNAVAILABLE; reads and small writes go on.

    As soon as there is room, the same store grows.
    """
    command = [sys.executable, "-c", WITHOUT_MEMORY, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.split() == ["refused", "3"]
