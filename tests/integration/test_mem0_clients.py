"""The real clients of mem0, `mem0ai` of PyPI and of npm, on a daemon with API keys.

`make test-integrations` installs them in an environment of their own and runs this.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.keys import new_key
from tests.support.node import node, skip_locally
from tests.support.process import running_daemon

INTEGRATIONS = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute()
NODE_MODULES = INTEGRATIONS / "mem0" / "node_modules"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs the clients"
    ),
]

SYNC = """
import sys
from mem0 import MemoryClient
from mem0.exceptions import AuthenticationError, MemoryError, MemoryNotFoundError, ValidationError

host, key, bound = sys.argv[1:]
client = MemoryClient(api_key=key, host=host)

def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(kind)

said = [{"role": "user", "content": "I am vegetarian and allergic to nuts."}]
stored = client.add(said, user_id="林月", run_id="r1", app_id="shop", metadata={"topic": "food"})
assert stored["status"] == "PENDING"
assert client.add(said, user_id="林月", run_id="r1", app_id="shop", metadata={"topic": "food"}) == stored
client.add("我五月搬到了青岛。", user_id="林月")
page = client.get_all(filters={"user_id": "林月"}, page=1, page_size=1)
assert page["count"] == 2 and page["next"] and page["results"][0]["memory"] == "我五月搬到了青岛。", page
[one] = client.get_all(filters={"AND": [{"user_id": "林月"}, {"run_id": "r1"}]})["results"]
assert one["app_id"] == "shop" and one["metadata"] == {"topic": "food"} and one["session_id"] == "r1"
event = client.client.get(f"/v1/event/{stored['event_id']}/").json()
assert event["status"] == "SUCCEEDED" and [it["id"] for it in event["results"]] == [one["id"]]
[found] = client.search("Who is vegetarian?", filters={"user_id": "林月"}, top_k=1)["results"]
assert found["id"] == one["id"] and found["score"] == 1
assert client.get(one["id"]) == one
assert client.update(one["id"], text="I am vegan.", metadata={"topic": "diet"})["memory"] == "I am vegan."
assert client.get(one["id"])["app_id"] == "shop"
client.batch_update([{"memory_id": one["id"], "text": "I am a vegan."}])
assert client.get(one["id"])["memory"] == "I am a vegan."
for missing in ("missing", "a/b", "n99.YW5u", one["id"] + "x"):
    refused(MemoryNotFoundError, lambda: client.get(missing))
    refused(MemoryNotFoundError, lambda: client.delete(missing))
assert refused(ValidationError, lambda: client.search("x", filters={"OR": [{"user_id": "a"}]})).details["reason"]
refused(ValidationError, lambda: client.add("x", user_id="林月", expiration_date="2030-01-01"))
refused(ValidationError, lambda: client.delete_all())
for call in (lambda: client.history(one["id"]), client.get_summary, lambda: client.get_profile("林月")):
    assert "is not served here" in str(refused(MemoryError, call))
assert client.delete(one["id"])["message"]
[other] = client.get_all(filters={"user_id": "林月"})["results"]
client.batch_delete([{"memory_id": other["id"]}])
assert client.get_all(filters={"user_id": "林月"})["count"] == 0
client.add(said, agent_id="bot")
assert {(it["type"], it["name"]) for it in client.users()["results"]} == {("user", "林月"), ("agent", "bot")}
client.delete_all(user_id="林月", run_id="r1")
client.delete_all(agent_id="bot")
client.delete_users(agent_id="bot")
try:
    MemoryClient(api_key="ebb_wrong", host=host)
except ValueError as error:
    assert "API key" in str(error)
else:
    raise AssertionError
ann = MemoryClient(api_key=bound, host=host)
ann.add("I like tea.")
assert ann.get_all(filters={"user_id": "ann"})["count"] == 1
refused(AuthenticationError, lambda: ann.add("x", user_id="bob"))
refused(AuthenticationError, lambda: ann.get(one["id"]))
refused(AuthenticationError, lambda: ann.delete_all(user_id="ann"))
client.reset()
assert client.users()["results"] == []
"""

ASYNC = """
import asyncio, sys
from mem0 import AsyncMemoryClient
from mem0.exceptions import MemoryNotFoundError

async def run(host, key):
    async with AsyncMemoryClient(api_key=key, host=host) as client:
        await client.add("I moved to Lisbon in May.", user_id="bob")
        [one] = (await client.get_all(filters={"user_id": "bob"}))["results"]
        [found] = (await client.search("Where is Lisbon?", filters={"user_id": "bob"}, threshold=0.5))["results"]
        assert found["id"] == one["id"]
        assert (await client.update(one["id"], text="I moved to Porto."))["memory"] == "I moved to Porto."
        await client.batch_update([{"memory_id": one["id"], "text": "I live in Porto."}])
        assert (await client.get(one["id"]))["memory"] == "I live in Porto."
        await client.delete(one["id"])
        try:
            await client.get(one["id"])
        except MemoryNotFoundError:
            pass
        else:
            raise AssertionError
        await client.delete_all(user_id="bob")
        await client.delete_users(user_id="bob")
        assert (await client.users())["count"] == 0

asyncio.run(run(*sys.argv[1:3]))
"""

NODE = """
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai";

const [host, apiKey] = process.argv.slice(2);
const client = new MemoryClient({ apiKey, host });
await client.ping();
const said = [{ role: "user", content: "I am vegetarian and allergic to nuts." }];
const options = { userId: "林月", runId: "r1", metadata: { my_topic: "food" }, infer: false };
const stored = await client.add(said, options);
assert.deepEqual(await client.add(said, options), stored);
const filters = { AND: [{ user_id: "林月" }, { run_id: "r1" }] };
const page = await client.getAll({ filters, page: 1, pageSize: 5 });
assert.equal(page.count, 1);
const [one] = page.results;
assert.deepEqual([one.runId, one.userId, one.metadata], ["r1", "林月", { my_topic: "food" }]);
const found = await client.search("Who is vegetarian?", { filters: { user_id: "林月" }, topK: 3 });
assert.deepEqual([found.results[0].id, found.results[0].score], [one.id, 1]);
assert.deepEqual(await client.get(one.id), one);
assert.equal((await client.update(one.id, { text: "I am vegan." })).memory, "I am vegan.");
await client.batchUpdate([{ memoryId: one.id, text: "I am a vegan." }]);
assert.equal((await client.get(one.id)).memory, "I am a vegan.");
await assert.rejects(client.get("missing"), { name: "MemoryNotFoundError" });
await assert.rejects(client.get("a/b"), { name: "MemoryNotFoundError" });
await assert.rejects(client.search("x", { filters: { NOT: [] } }), { name: "ValidationError" });
await assert.rejects(client.history(one.id), { name: "MemoryError" });
await client.delete(one.id);
await client.add(said, { userId: "林月", metadata: { again: true } });
const [again] = (await client.getAll({ filters: { user_id: "林月" } })).results;
await client.batchDelete([again.id]);
assert.deepEqual((await client.users()).results.map((it) => it.name), ["林月"]);
await client.deleteAll({ userId: "林月" });
await client.deleteUsers({ userId: "林月" });
assert.equal((await client.users()).count, 0);
"""


def run(program: list[str], directory: Path) -> None:
    """Run a program of the clients, which must not send reports."""
    quiet = {"MEM0_TELEMETRY": "false", "MEM0_DIR": str(directory / "mem0")}
    done = subprocess.run(
        program,
        cwd=directory,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("client", ["sync", "async", "node"])
def test_a_client_of_mem0(tmp_path: Path, client: str) -> None:
    """Every call that is served works with keys on, and refusals are the exceptions that users catch."""
    data = tmp_path / "data"
    keys = [new_key(data, "read", "write", "admin"), new_key(data, "read", "write", agents=["ann"])]
    with running_daemon(data, {"ACCESS__AUTHENTICATION": "keys"}) as daemon:
        arguments = [f"{daemon.url.rstrip('/')}/mem0", *keys]
        if client == "node":
            executable = node()
            if executable is None:
                skip_locally("Node is not installed")
            (tmp_path / "node_modules").symlink_to(NODE_MODULES)
            (tmp_path / "client.mjs").write_text(NODE, encoding="utf-8")
            run([str(executable), str(tmp_path / "client.mjs"), *arguments], tmp_path)
            return
        python = str(INTEGRATIONS / "mem0" / "bin" / "python")
        run([python, "-c", SYNC if client == "sync" else ASYNC, *arguments], tmp_path)
