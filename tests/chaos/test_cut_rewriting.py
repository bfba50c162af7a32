"""A rewriting under another key that is killed: one whole store is left, and its key is known."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.store import layout
from ebbtide.store.check import check_store
from ebbtide.store.data_directory import DataDirectory
from ebbtide.store.port import Identity
from ebbtide.store.seal import MasterKey
from ebbtide.vocabulary import AgentId
from tests.support.cut_rewriting import MASTER
from tests.support.encrypted import everything, fill, found_in

pytestmark = pytest.mark.chaos

ANN = AgentId("ann")
MOST_STEPS = 60


def made(root: Path, *, encrypted: bool) -> DataDirectory:
    """A data directory, held."""
    master = MasterKey(MASTER) if encrypted else None
    data = DataDirectory(root, initial_map_bytes=1 << 18, max_map_bytes=1 << 26, master_key=master)
    data.acquire()
    return data


@pytest.mark.timeout(600)
@pytest.mark.parametrize("was_encrypted", [False, True], ids=["from plain", "from another key"])
def test_a_rewriting_killed_at_any_step_leaves_one_whole_store(tmp_path: Path, was_encrypted: bool) -> None:
    """Killed before each step in turn: the store opens, tells everything, and has one key; and it can be run again."""
    origin = made(tmp_path / "origin", encrypted=was_encrypted)
    store = origin.create_store(Identity(ANN, 5, 7, layout.FORMAT_VERSION))
    store.write(fill)
    before = everything(store)
    store.close()
    origin.release()
    outcomes = set()
    for step in range(MOST_STEPS):
        root = tmp_path / f"step-{step}"
        shutil.copytree(tmp_path / "origin", root)
        command = [sys.executable, "-m", "tests.support.cut_rewriting", str(root), "ann", str(step)]
        code = subprocess.run(command, check=False).returncode
        assert code in (0, -signal.SIGKILL)
        data = made(root, encrypted=True)
        store = data.open_store(ANN)
        assert check_store(store) == []
        assert everything(store) == before
        outcomes.add(store.sealed_with != "")
        if store.sealed_with:
            assert found_in(root) == set()
            assert len(data.keys._file("ann").keys) == 1
        assert not (data.agents / "ann" / "rewritten").exists()
        store.close()
        meta = data.meta("ann")
        assert meta is not None
        assert meta.key_fingerprint == store.sealed_with
        data.release()
        shutil.rmtree(root)
        if code == 0:
            break
    else:
        raise AssertionError("it never came to its end")
    assert step > 12
    assert outcomes == ({True} if was_encrypted else {False, True})
