"""The memory of an idle daemon, and the modules that it must not load."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.daemon import DEFERRED_MODULES
from tests.support.process import running_daemon

MIB = 1 << 20
IDLE_BYTES = 120 * MIB

LATE = (
    "rjieba",
    "httpx",
    "matplotlib",
    "email_validator",
    "snowballstemmer",
    "fastapi",
    "ebbtide.mem0.calls",
    "ebbtide.mcp.server",
    "ebbtide.rest.proxy",
    "mcp",
    "mcp_types",
)
LATE += DEFERRED_MODULES
"""Modules that a daemon does not need in order to listen."""


def resident_bytes(process_id: int) -> int:
    """Return the resident memory of a process, including mapped files."""
    rollup = Path(f"/proc/{process_id}/smaps_rollup").read_text()
    found = re.search(r"^Rss:\s+(\d+) kB", rollup, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")
def test_idle_daemon_is_small(tmp_path: Path) -> None:
    """An idle daemon uses at most 120 MiB, including shared libraries."""
    with running_daemon(tmp_path / "data", executed=True) as daemon:
        assert daemon.client.get("/readyz").status_code == 200
        held = resident_bytes(daemon.process.pid)
        print(f"idle: {held / MIB:.1f} MiB")
        assert held <= IDLE_BYTES


def test_optional_modules_are_loaded_late() -> None:
    """A daemon listens before it imports dictionaries, an HTTP client, FastAPI, adapters, or rules for texts."""
    code = (
        "import sys, ebbtide.daemon\n"
        "from ebbtide.rest.documents import documents\n"
        "documents()\n"
        f"print([name for name in {LATE!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_chinese_is_understood_by_one_dictionary() -> None:
    """The tagger shares the segmenter's dictionary: a second one would use another 30 MB."""
    code = (
        "import sys\n"
        "from ebbtide.language.builtin.tokens import chinese_words\n"
        "assert chinese_words('外婆很高兴') == ['外婆', '很', '高兴']\n"
        "import rjieba\n"
        "from ebbtide.language.builtin import tokens\n"
        "print(tokens._tagger is rjieba, rjieba.has_word(tokens.ADDED_WORDS[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
