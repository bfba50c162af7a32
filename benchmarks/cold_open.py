"""Open one store cold, in a process of its own: `python -m benchmarks.cold_open STORE STATE`; print the time in ms.

Only the process is cold: no data of the agent is in its memory. The file may be in the system's page cache. The state
says how the process before left the store: `closed`, or `killed`, so that opening checks the store first.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import timed
from benchmarks.stores import open_store
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.store.lmdb.probe import note_use


def cold_open_ms(store: Path, state: str) -> float:
    """Return the time that a new process needs to open a store, without imports."""
    command = [sys.executable, "-m", "benchmarks.cold_open", str(store), state]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return float(done.stdout)


def _main(path: Path, state: str) -> None:
    # A daemon loaded this long ago, so it does not count as part of opening an agent.
    with_parameters = AgentParameters()
    if state == "killed":
        note_use(path)
    workspace, took_ms = timed(lambda: Workspace(open_store(path), with_parameters))
    print(took_ms)
    workspace.store.close()


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
