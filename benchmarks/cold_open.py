"""Opens one store cold, in a process of its own: `python -m benchmarks.cold_open STORE`; prints the ms it took.

Cold is the process: nothing of the agent is in its memory. The file may be in the system's page cache.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import timed
from benchmarks.stores import open_store
from ebbtide.fleet.workspace import Workspace
from ebbtide.parameters import AgentParameters


def cold_open_ms(store: Path) -> float:
    """How long opening a store takes in a new process, imports not counted."""
    command = [sys.executable, "-m", "benchmarks.cold_open", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return float(done.stdout)


def _main(store: Path) -> None:
    # What a daemon has loaded long since is not part of opening an agent.
    with_parameters = AgentParameters()
    _, took_ms = timed(lambda: Workspace(open_store(store), with_parameters))
    print(took_ms)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
