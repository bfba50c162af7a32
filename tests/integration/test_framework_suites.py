"""The frameworks' own tests, from their source distributions, on the adapters of the Python client.

`make test-integrations` installs the frameworks in an environment of their own, downloads the tests and runs this.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.process import running_daemon

INTEGRATIONS = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute()
SUPPORT = Path(__file__).parents[1] / "support"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs the suites"
    ),
]

OWN = """
import asyncio
from ebbtide_client import AsyncClient, Client
from ebbtide_client.integrations.langgraph import AsyncEbbtideStore, EbbtideStore
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

def check(results):
    assert results[0] is None and results[1] == [] and results[2] == [], results

reads = [GetOp(("n",), "k"), SearchOp(("n",)), ListNamespacesOp()]
with Client() as client:
    store = EbbtideStore(client, "lg1", ttl={"default_ttl": 10})
    check(store.batch(reads))
    assert not client.list_agents().agents
    store.put(("n", "m"), "k", {"text": "外婆", "n": [1, 2.5, None]})
    item = store.get(("n", "m"), "k")
    assert (item.namespace, item.key, item.value) == (("n", "m"), "k", {"text": "外婆", "n": [1, 2.5, None]})
    assert item.created_at.tzinfo is not None
    many = [PutOp(("many",), f"{number:04}", {"n": number}) for number in range(1500)]
    assert store.batch([*many, SearchOp(("many",), limit=5)])[-1] == []
    assert store.search(("many",), filter={"n": {"$gte": 1498}})[1].key == "1499"
    assert store.search(("many",), limit=0) == []
    store.delete(("n", "m"), "k")
    assert store.get(("n", "m"), "k") is None
    for key, text in (("a", "tea"), ("b", "spare keys"), ("c", "rain"), ("d", "a key")):
        store.put(("words",), key, {"text": text}, index=False if key == "d" else None)
    found = [(one.key, one.score) for one in store.search(("words",), query="key", limit=3)]
    assert found == [("b", 1.0), ("a", 0.0), ("c", 0.0)], found
    assert [one.key for one in store.search(("words",), query="key", limit=2, offset=2)] == ["c", "d"]
    store.put(("ttl",), "default", {})
    store.put(("ttl",), "short", {}, ttl=0.5)
    store.put(("ttl",), "none", {}, ttl=None)
    [found] = client.batch_records("lg1", [{"op": "search", "prefix": ["ttl"]}]).results
    try:
        store.put(("ttl",), "never", {}, ttl=0)
        raise AssertionError("a ttl of 0 is accepted")
    except ValueError:
        pass
    lives = {one.key: one.expires_at and one.expires_at - one.updated_at for one in found.records}
    assert lives == {"default": 600_000, "none": None, "short": 60_000}, lives

async def main():
    async with AsyncClient() as client:
        store = AsyncEbbtideStore(client, "lg2")
        check(await store.abatch(reads))
        await asyncio.gather(*(store.aput(("n",), str(number), {"n": number}) for number in range(20)))
        assert len(await store.asearch(("n",), limit=100)) == 20
        assert (await asyncio.to_thread(store.get, ("n",), "7")).value == {"n": 7}
        try:
            store.get(("n",), "7")
        except asyncio.InvalidStateError:
            return
        raise AssertionError

asyncio.run(main())
"""


FILES = """
from anthropic.lib.tools import ToolError
from ebbtide_client import Client
from ebbtide_client.integrations.anthropic import EbbtideMemoryTool

client = Client()

class Contested(EbbtideMemoryTool):
    changes = 1

    def _batch(self, ops):
        if "if_version" in ops[0] and self.changes and ops[0]["key"] == "a.txt":
            self.changes -= 1
            put = {"op": "put", "namespace": ["memories", "d"], "key": "a.txt", "value": {"text": "tea, milk"}}
            client.batch_records("am", [put])
        return super()._batch(ops)

tool = EbbtideMemoryTool(client, "am")
assert "hidden items:\\n0B\\t/memories" in tool.call(dict(command="view", path="/memories"))
for path in ("/memories/d/a.txt", "/memories/d/e/b.txt", "/memories/.hidden"):
    tool.call(dict(command="create", path=path, file_text="tea, cake"))
assert tool.call(dict(command="view", path="/memories")).splitlines()[1:] == [
    "18B\\t/memories", "18B\\t/memories/d/", "9B\\t/memories/d/a.txt", "9B\\t/memories/d/e/"]
Contested(client, "am").call(dict(command="str_replace", path="/memories/d/a.txt", old_str="tea", new_str="ale"))
assert "ale, milk" in tool.call(dict(command="view", path="/memories/d/a.txt")), "the edit is of the new text"
tool.call(dict(command="rename", old_path="/memories/d", new_path="/memories/f"))
assert "ale, milk" in tool.call(dict(command="view", path="/memories/f/a.txt"))
for change in (
    lambda: tool.call(dict(command="create", path="/memories/f", file_text="")),
    lambda: tool.call(dict(command="create", path="/memories/big", file_text="x" * 300_000)),
    lambda: tool.call(dict(command="rename", old_path="/memories/f", new_path="/memories/f/g")),
    lambda: tool.call(dict(command="view", path="/memories/d")),
    lambda: tool.call(dict(command="create", path="/memories/f/a.txt/b", file_text="")),
    lambda: tool.call(dict(command="rename", old_path="/memories/.hidden", new_path="/memories/f/a.txt/b/c")),
):
    try:
        change()
    except ToolError:
        continue
    raise AssertionError(change)
assert tool.clear_all_memory() == "All memory cleared"
assert "0B" in tool.call(dict(command="view", path="/memories"))
"""


def run(url: str, directory: Path, *arguments: str) -> str:
    """Run a Python program in the environment of the frameworks, and return what it prints."""
    environment = {**os.environ, "EBBTIDE_URL": url, "PYTHONPATH": str(SUPPORT)}
    command = [str(INTEGRATIONS / "bin" / "python"), *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def suite(name: str, directory: Path) -> Path:
    """Unpack the source distribution of a package, and return its folder."""
    [archive] = (INTEGRATIONS / "sdists").glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(directory, filter="data")
    return directory / archive.name.removesuffix(".tar.gz")


def test_the_stores_of_langgraph(tmp_path: Path) -> None:
    """Nothing is read of an agent that does not exist; large batches, a time to live and both clients work."""
    with running_daemon(tmp_path / "data") as daemon:
        run(daemon.url, tmp_path, "-c", OWN)


def test_the_suite_of_langgraph(tmp_path: Path) -> None:
    """The tests of LangGraph's SQLite store pass, apart from those of SQL and of embeddings."""
    folder = suite("langgraph_checkpoint_sqlite", tmp_path)
    with running_daemon(tmp_path / "data") as daemon:
        options = ("-q", "-p", "upstream_langgraph", "-p", "no:cacheprovider")
        files = ("tests/test_store.py", "tests/test_async_store.py")
        printed = run(daemon.url, folder, "-m", "pytest", *options, *files)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None and int(passed[1]) > 105, printed[-2000:]


def test_the_files_of_the_memory_tool(tmp_path: Path) -> None:
    """Folders are listed with sizes, an edit that is overtaken is done again, and refusals are errors of the tool."""
    with running_daemon(tmp_path / "data") as daemon:
        run(daemon.url, tmp_path, "-c", FILES)


def test_the_suite_of_the_memory_tool(tmp_path: Path) -> None:
    """The tests of Anthropic's file system pass, apart from those of links, modes and sizes on a disk."""
    folder = suite("anthropic", tmp_path)
    with running_daemon(tmp_path / "data") as daemon:
        plain = ("--noconftest", "-o", "addopts=", "-o", "filterwarnings=default")
        options = ("-q", "-p", "upstream_anthropic", "-p", "no:cacheprovider", *plain)
        printed = run(daemon.url, folder, "-m", "pytest", *options, "tests/lib/tools/memory_tools")
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None and int(passed[1]) >= 70, printed[-2000:]
