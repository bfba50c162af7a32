"""Write the sync client from the async one: `python -m tests.tidy.generate_sync_client`.

The two differ by `await` and by the names below only. A test compares the outcome with the committed file.
"""

from __future__ import annotations

import re

from tests.tidy.formatting import formatted
from tests.tidy.pages import ROOT

FOLDER = ROOT / "clients" / "python" / "src" / "ebbtide_client"
SOURCE, FILE = FOLDER / "async_client.py", FOLDER / "client.py"

DOCSTRING = '''"""`Client`: every operation, blocking. Generated from `async_client.py`; do not edit.

Run `python -m tests.tidy.generate_sync_client` after a change there.
"""
'''

REPLACED = (
    (r'\A""".*?"""\n', DOCSTRING),
    (r"Coroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"AsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"asyncio\.to_thread\((\w+\.\w+)(?:, )?", r"\1("),
    (r"asyncio\.sleep", "time.sleep"),
    (r"import asyncio\nimport inspect\nimport ssl\n", "import inspect\nimport ssl\nimport time\n"),
    (
        r"import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping",
        "import Callable, Generator, Iterator, Mapping",
    ),
    (r"\bawait ", ""),
    (r"\basync (?=def|with|for)", ""),
    (r"AsyncBaseTransport", "BaseTransport"),
    (r"Async(Client|Iterator)", r"\1"),
    (r"\baclosing\b", "closing"),
    (r"\ba(close|read|iter_lines|iter_bytes)\b", r"\1"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"for an event loop. Many tasks may share it", "blocking. Many threads may share it"),
    (r"# --- files: .*", "# --- files ".ljust(100, "-")),
)


def render() -> str:
    """Return the content of the sync client."""
    text = SOURCE.read_text()
    for pattern, new in REPLACED:
        text, count = re.subn(pattern, new, text, flags=re.DOTALL if pattern.startswith(r"\A") else 0)
        assert count, f"nothing to replace: {pattern}"
    return formatted(text, FILE)


if __name__ == "__main__":
    FILE.write_text(render())
