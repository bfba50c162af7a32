"""A restore that is killed at any step leaves the old agent or the new one, whole, and no rubbish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.store.chain import AuditEntry, line_of
from ebbtide.store.data_directory import DataDirectory
from ebbtide.store.lmdb_store import LmdbStore
from ebbtide.store.port import Identity
from ebbtide.vocabulary import AgentId
from tests.support.moving import directory, sent
from tests.support.process import ROOT, check_data_directory

KILLER = """
import os, signal, sys
from ebbtide.store import data_directory, erased_agents, turnover
steps, at = [0], int(sys.argv.pop(1))

def counted(real):
    def step(*args, **kwargs):
        steps[0] += 1
        if steps[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return step

turnover.Path.rename = counted(turnover.Path.rename)
data_directory.sync_directory = turnover.sync_directory = counted(turnover.sync_directory)
turnover.replace_file = counted(turnover.replace_file)
erased_agents.replace_file = counted(erased_agents.replace_file)
turnover.ErasedAgents.tell = counted(turnover.ErasedAgents.tell)
turnover.shutil.rmtree = counted(turnover.shutil.rmtree)
from ebbtide.cli.app import main
main(sys.argv[1:])
"""


def ann(data: DataDirectory, seed: int) -> LmdbStore:
    """An agent that is told apart by its seed."""
    return data.create_store(Identity("ann", 0, seed, 1))


def seed_of(data: DataDirectory) -> int:
    """Which agent is there."""
    store = data.open_store(AgentId("ann"))
    try:
        identity = store.read(lambda txn: txn.identity())
        assert identity is not None
        return identity.seed
    finally:
        store.close()


def test_a_kill_at_any_step_leaves_one_of_the_two(tmp_path: Path) -> None:
    """At each rename, sync, record and removal in turn: the next start finds one of them; both outcomes are met.

    Where it is the new one, the old one is told of, once, as replaced; and never where it is the old one.
    """
    with directory(tmp_path / "other") as other:
        store = ann(other, 2)
        (tmp_path / "ann.ebb").write_bytes(sent(other, store, "backup"))
        store.close()
    met, place, done_before = set(), tmp_path / "data", 0
    with directory(place) as data:
        ann(data, 1).close()
    for at in range(1, 40):
        command = [sys.executable, "-c", KILLER, str(at), "restore", str(tmp_path / "ann.ebb"), "--replace"]
        done = subprocess.run(
            [*command, "--data-dir", str(place)],
            capture_output=True, text=True, cwd=ROOT, timeout=60, check=False, env=dict(os.environ),
        )  # fmt: skip
        with directory(place) as data:
            met.add(seed_of(data))
            told = [line for line in map(line_of, data.erased.records()) if line is not None]
            replaced = [line.details["records"] for line in told if line.action == "replaced"]
            done_before += seed_of(data) == 2
            assert replaced == [0] * done_before
            assert not list(data.transfers.iterdir())
            assert [path.name for path in data.agents.iterdir()] == ["ann"]
        check_data_directory(place)
        if done.returncode == ExitCode.OK:
            break
        assert done.returncode == -9, done.stderr
        with directory(place) as data:
            data.erase(AgentId("ann"), AuditEntry(0, "-", "agent_erased", {}))
            ann(data, 1).close()
    else:
        pytest.fail("the restore never came to its end")
    assert at > 5
    assert met == {1, 2}
