"""The adapters of LlamaIndex, ADK, Agent Framework and Strands, with the real frameworks and a scripted model.

`make test-integrations` installs each framework in an environment of its own and runs this. The programs are in
tests/support/frameworks; they assert what they get.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.keys import new_key
from tests.support.process import running_daemon

INTEGRATIONS = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute()
PROGRAMS = Path(__file__).parents[1] / "support" / "frameworks"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        "EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs the frameworks"
    ),
]


@pytest.mark.parametrize("keys", ["open", "keys"])
@pytest.mark.parametrize("framework", ["adk", "agent-framework", "llamaindex", "strands"])
def test_an_agent_of_the_framework_remembers(tmp_path: Path, framework: str, keys: str) -> None:
    """An agent knows in a new session what one user said, in two languages; nothing is stored twice or by others."""
    data = tmp_path / "data"
    key = new_key(data, "read", "write", "admin") if keys == "keys" else ""
    settings = {"ACCESS__AUTHENTICATION": "keys"} if key else {}
    with running_daemon(data, settings) as daemon:
        variables = {
            "EBBTIDE_URL": daemon.url,
            "EBBTIDE_API_KEY": key,
            "NARROW_KEY": new_key(data, "read", "write", agents=["nobody"]) if key else "",
        }
        done = subprocess.run(
            [
                str(INTEGRATIONS / framework / "bin" / "python"),
                str(PROGRAMS / f"drive_{framework.replace('-', '_')}.py"),
            ],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    print(framework, keys, done.stdout)
