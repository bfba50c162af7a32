"""Filters on ingest, over every transport: personal data is tagged or redacted, recalled text is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from ebbtide.language.port import Segment
from ebbtide.privacy.spans import redacted
from ebbtide.store.codec import COMPRESSED, INVALID
from ebbtide.telemetry import configure_log, loggable
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"

SECRETS = {
    "content": "ann.miller@example.com",
    "speaker": "+1 415 555 0132",
    "message id": "219-09-9999",
    "conversation": "bob@example.net",
    "value": "4111 1111 1111 1111",
    "name": "203.0.113.9",
    "number": "13800138000",
    "nested": "DE89370400440532013000",
    "key": "carol@example.org",
    "password": "hunter2!Q",
    "by its name": "swordfish9",
}

TELLING: dict[str, Any] = {
    "messages": [
        {
            "role": "user",
            "content": f"Write to {SECRETS['content']}, the password is {SECRETS['password']}.",
            "speaker": f"Ann {SECRETS['speaker']}",
            "id": f"m {SECRETS['message id']}",
            "metadata": {"card": SECRETS["value"], SECRETS["name"]: "seen", "mobile": int(SECRETS["number"])},
        }
    ],
    "conversation_id": f"chat {SECRETS['conversation']}",
    "metadata": {"deep": [{"iban": SECRETS["nested"]}], "password": SECRETS["by its name"]},
    "idempotency_key": f"key {SECRETS['key']}",
}


@pytest.fixture
def talkative_log() -> Iterator[None]:
    """Log everything, including content."""
    configure_log("debug", "json", log_content=True, without_personal=redacted)
    yield
    configure_log("error", "json")


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


def told_by(*contents: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    """Return a batch of messages."""
    return {"messages": [{"role": role, "content": content} for content in contents], **fields}


async def remembered(call: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Remember, wait for the digest, and return the status of the batch."""
    answer = await call("POST", f"{AGENT}/remember", body)
    assert answer.status_code == 202, answer.json()
    await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
    batch: dict[str, Any] = (await call("GET", f"{AGENT}/batches/{answer.json()['batch_id']}")).json()
    for name in ("pii", "dropped_recalled", "collapsed"):
        assert answer.json()[name] == batch[name]
    return batch


async def sources(call: Caller, node_id: str) -> list[dict[str, Any]]:
    """Return the sources of a memory."""
    found: list[dict[str, Any]] = (await call("GET", f"{AGENT}/nodes/{node_id}")).json()["sources"]
    return found


# --- redact --------------------------------------------------------------------------------------------------


def every_byte(data_dir: Path) -> bytes:
    """Return all bytes on disk: raw files, and every value of every store, unpacked."""
    found = [path.read_bytes() for path in data_dir.rglob("*") if path.is_file()]
    for path in data_dir.rglob("data.mdb"):
        with lmdb.open(str(path.parent), readonly=True, lock=False, max_dbs=64) as env, env.begin() as txn:
            names = [key for key, _ in txn.cursor()]
            for name in names:
                table = env.open_db(name, txn=txn, create=False)
                for key, value in txn.cursor(db=table):
                    found += [key, value]
                    with contextlib.suppress(*INVALID):
                        found.append(COMPRESSED.decode(value))
    return b"\n".join(found)


@pytest.mark.usefixtures("talkative_log")
async def test_redacted_data_is_nowhere(
    tmp_path: Path, caller_in: CallerIn, capfd: pytest.CaptureFixture[str]
) -> None:
    """Redacted data is in no file, stored value, log line, model request or response."""
    model = ScriptedModel()
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        batch = await remembered(call, TELLING)
        assert batch["state"] == "digested"
        assert batch["pii"] == {
            "email": 3,
            "phone": 2,
            "national_id": 1,
            "card": 1,
            "ip": 1,
            "iban": 1,
            "secret": 2,
        }
        answers = [
            batch,
            (await call("GET", f"{AGENT}/nodes")).json(),
            (await call("POST", f"{AGENT}/recall", {})).json(),
        ]
        query = {"query": f"What of {SECRETS['content']}?", "citations": True, "explain": True}
        answers.append((await call("POST", f"{AGENT}/recall", query)).json())
        assert "[email]" in json.dumps(answers)
    answered, asked = json.dumps(answers), repr(model.log)
    logged, stored = "".join(capfd.readouterr()), every_byte(tmp_path)
    assert "the password is [secret]" in logged
    assert b"the password is [secret]" in stored
    assert "the password is [secret]" in asked
    for name, secret in SECRETS.items():
        for place, held in (("answers", answered), ("model", asked), ("log", logged)):
            assert secret not in held, f"{name} in {place}"
        assert secret.encode() not in stored, f"{name} on disk"


async def test_redacted_ids_stay_distinct_and_linked(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under redact a conversation is found by the caller's original id, no other is, and replays are recognised."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        batch = await remembered(call, TELLING)
        assert batch["conversation_id"].startswith("chat [email:")
        replay = (await call("POST", f"{AGENT}/remember", TELLING)).json()
        assert replay["batch_id"] == batch["batch_id"]
        other = {
            **told_by("Somebody else wrote about the harbour."),
            "idempotency_key": "key dora@example.org",
        }
        assert (await call("POST", f"{AGENT}/remember", other)).json()["batch_id"] != batch["batch_id"]
        for conversation, count in ((TELLING["conversation_id"], 1), ("chat eve@example.net", 0)):
            asked = {"query": "Write to whom?", "sources": [conversation], "citations": True}
            found = (await call("POST", f"{AGENT}/recall", asked)).json()["memories"]
            assert bool(found) is bool(count), conversation
        by_metadata = {"query": "write", "metadata": {"card": SECRETS["value"]}}
        assert (await call("POST", f"{AGENT}/search", by_metadata)).json()["memories"]


async def test_offsets_count_in_the_redacted_text(tmp_path: Path, caller_in: CallerIn) -> None:
    """A source names bytes of the text as it is stored, not as it was sent."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        batch = await remembered(call, told_by("我的邮箱是ann.miller@example.com。我住在青岛的海边。"))
        stored = "我的邮箱是[email]。我住在青岛的海边。".encode()
        for node_id in batch["node_ids"]:
            node = (await call("GET", f"{AGENT}/nodes/{node_id}")).json()
            [source] = node["sources"]
            assert source["pii"] == []
            quoted = stored[source["offset"] : source["offset"] + source["length"]].decode()
            assert quoted in node["content"]


async def test_corrections_are_redacted_too(tmp_path: Path, caller_in: CallerIn) -> None:
    """The policy also redacts the new content of a correction."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        [node_id] = (await remembered(call, told_by("I live near the old harbour.")))["node_ids"]
        update = {"content": "Write to ann.miller@example.com.", "keywords": ["13800138000"]}
        node = (await call("PATCH", f"{AGENT}/nodes/{node_id}", update)).json()
        assert node["content"] == "Write to [email]."
        assert node["keywords"] == ["[phone]"]


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        (
            {"messages": [{"role": "user", "content": "x", "metadata": {"ann@example.com": []}}]},
            "ann@example",
        ),
        (
            {"messages": [{"role": "user", "content": "x", "metadata": {"a": ["4111111111111111"]}}]},
            "41111111",
        ),
        (
            {"messages": [{"role": "user", "content": "x"}], "idempotency_key": "13800138000" * 40},
            "13800138000",
        ),
        ({"messages": [{"role": "password: hunter2!Q", "content": "x"}]}, "hunter2"),
        ({"messages": [{"role": "user", "content": 4111111111111111}]}, "41111111"),
        ({"messages": [{"role": "user", "content": "x", "ann@example.com": 1}]}, "ann@example"),
        ({"messages": [{"role": f"{'x' * 30} 4111 1111 1111 1111", "content": "x"}]}, "4111"),
    ],
)
async def test_errors_do_not_echo_personal_data(tmp_path: Path, body: dict[str, Any], secret: str) -> None:
    """An error names the field and shows no personal data of its value, under every policy. Nothing is stored."""
    async with CALLERS["rest"](tmp_path) as call:
        refused = await call("POST", f"{AGENT}/remember", body)
        assert refused.status_code == 400
        assert secret not in refused.text
        assert (await call("GET", AGENT)).status_code == 404


async def test_invalid_ids_are_not_echoed(tmp_path: Path, caller_in: CallerIn) -> None:
    """Errors and responses do not repeat an invalid id, because it may be personal data."""
    secret = "zoe@example.com"
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT)
        for method, path, body in (
            ("GET", f"nodes/{secret}", None),
            ("PATCH", f"nodes/{secret}", {"content": "Something else."}),
            ("DELETE", f"nodes/{secret}", None),
            ("GET", f"batches/{secret}", None),
            ("POST", f"batches/{secret}/retry", None),
            ("POST", "forget", {"nodes": [secret]}),
            ("POST", "forget", {"messages": [secret]}),
            ("POST", "recall", {"query": "who", "start_nodes": [secret]}),
        ):
            answer = await call(method, f"{AGENT}/{path}", body)
            assert answer.status_code in (400, 404), (path, answer.json())
            assert "zoe" not in str(answer.json()), (path, answer.json())
        answer = await call("POST", f"{AGENT}/nodes/delete", {"node_ids": [secret, "n7"]})
        results = answer.json()["results"]
        assert [one["node_id"] for one in results] == ["[email]", "n7"]
        assert {one["reason"] for one in results} == {"NODE_NOT_FOUND"}


@pytest.mark.usefixtures("talkative_log")
def test_logged_content_has_no_personal_data() -> None:
    """With log_content, log lines contain the message text without personal data."""
    assert loggable("Write to ann.miller@example.com.") == "Write to [email]."


# --- tag, off ------------------------------------------------------------------------------------------------


async def test_tagged_text_is_stored_unchanged_and_reported(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under tag, a source lists the personal data of its slice in bytes of the message, and the batch the number."""
    text = "我的邮箱是ann.miller@example.com。电话13800138000，打给我。"
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "tag"})
        batch = await remembered(call, told_by(text))
        assert batch["pii"] == {"email": 1, "phone": 1}
        tagged = set()
        for node_id in batch["node_ids"]:
            for source in await sources(call, node_id):
                for one in source["pii"]:
                    begin, length = int(one["offset"]), int(one["length"])
                    tagged.add((one["kind"], text.encode()[begin : begin + length].decode()))
        assert tagged == {("email", "ann.miller@example.com"), ("phone", "13800138000")}
        cited = (await call("POST", f"{AGENT}/recall", {"query": "邮箱", "citations": True})).json()[
            "memories"
        ]
        assert any(
            one["kind"] == "email"
            for memory in cited
            for source in memory["sources"]
            for one in source["pii"]
        )


async def test_a_policy_applies_to_later_messages(tmp_path: Path, caller_in: CallerIn) -> None:
    """Off by default; a change applies to later messages, and leaves stored ones unchanged."""
    text = "Write to ann.miller@example.com about the boat."
    async with caller_in(tmp_path) as call:
        before = await remembered(call, told_by(text))
        assert before["pii"] == {}
        assert (await call("GET", AGENT)).json()["parameters"]["pii"] == "off"
        changed = await call("PATCH", AGENT, {"pii": "redact"})
        assert changed.json()["parameters"]["pii"] == "redact"
        after = await remembered(call, told_by(text))
        assert after["pii"] == {"email": 1}
        contents = [
            (await call("GET", f"{AGENT}/nodes/{b['node_ids'][0]}")).json()["content"]
            for b in (before, after)
        ]
        assert contents == [text, "Write to [email] about the boat."]
        assert (await call("PATCH", AGENT, {"pii": "hide"})).json()["error"]["reason"] == "INVALID_VALUE"


@pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
async def test_waiting_requests_follow_the_current_policy(
    tmp_path: Path, caller_in: CallerIn, key: str | None
) -> None:
    """A batch and a correction queued after a change of `pii` are stored under the new policy, in any order."""
    async with caller_in(tmp_path) as call:
        first = await remembered(call, told_by("I moved to Lisbon in May."))
        node = f"{AGENT}/nodes/{first['node_ids'][0]}"
        [agent] = call.service.fleet.open_agents
        for pii, email in (
            ("redact", "[email]"),
            ("tag", "bea.two@example.com"),
            ("off", "bea.two@example.com"),
        ):
            body = told_by(f"Write to bea.two@example.com, {pii}.", idempotency_key=key and f"{key} {pii}")
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})
            going_on = threading.Event()
            busy = asyncio.ensure_future(agent.mailbox.run(partial(going_on.wait, 30.0)))
            waiting = []
            for count, (method, path, asked) in enumerate(
                [
                    ("PATCH", AGENT, {"pii": pii}),
                    ("POST", f"{AGENT}/remember", body),
                    ("PATCH", node, {"content": f"Bea is bea.two@example.com, {pii}."}),
                ],
                1,
            ):
                waiting.append(asyncio.ensure_future(call(method, path, asked)))
                await eventually(lambda count=count: agent.mailbox.waiting_count >= count)  # type: ignore[misc]
            going_on.set()
            changed, accepted, corrected = await asyncio.gather(*waiting)
            await busy
            assert changed.json()["parameters"]["pii"] == pii
            assert accepted.json()["pii"] == ({} if pii == "off" else {"email": 1})
            assert corrected.json()["content"] == f"Bea is {email}, {pii}."
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
            batch = (await call("GET", f"{AGENT}/batches/{accepted.json()['batch_id']}")).json()
            stored = (await call("GET", f"{AGENT}/nodes/{batch['node_ids'][0]}")).json()["content"]
            assert stored == f"Write to {email}, {pii}."
            assert (await call("POST", f"{AGENT}/remember", body)).json()["batch_id"] == (
                batch["batch_id"] if key else f"b{int(batch['batch_id'][1:]) + 1}"
            )


async def test_accepted_batches_keep_their_policy(tmp_path: Path, caller_in: CallerIn) -> None:
    """A batch acknowledged under another policy is digested as it was stored, and can be forgotten."""
    model, text = ScriptedModel(), "Write to ann.miller@example.com about the boat."
    going_on = asyncio.Event()

    async def waits() -> Any:
        await going_on.wait()
        return [Segment(text, (0,))]

    model.script["segment"].append(waits)
    async with caller_in(tmp_path, model) as call:
        accepted = (await call("POST", f"{AGENT}/remember", told_by(text))).json()
        await call("PATCH", AGENT, {"pii": "redact"})
        going_on.set()
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
        batch = (await call("GET", f"{AGENT}/batches/{accepted['batch_id']}")).json()
        node = (await call("GET", f"{AGENT}/nodes/{batch['node_ids'][0]}")).json()
        assert batch["pii"] == {} and node["content"] == text
        await call("POST", f"{AGENT}/forget", {"messages": ["m1"]})
    assert b"ann.miller" not in every_byte(tmp_path)


# --- junk ----------------------------------------------------------------------------------------------------

FIRST = ("I moved to Lisbon in May with my cat Miso.", "My neighbour Bob repairs old sailing boats.")


async def test_recalled_text_is_not_remembered_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """A prompt that contains recalled text is stored without it; a message of only recalled text is not stored."""
    async with caller_in(tmp_path) as call:
        await remembered(call, told_by(*FIRST))
        text = (await call("POST", f"{AGENT}/recall", {})).json()["text"]
        batch = await remembered(
            call,
            {
                "messages": [
                    {"role": "system", "content": text},
                    {"role": "user", "content": f"{text}\n\nI am learning to play the cello now."},
                ]
            },
        )
        assert (batch["dropped_recalled"], batch["message_count"]) == (4, 1)
        [node_id] = batch["node_ids"]
        node = (await call("GET", f"{AGENT}/nodes/{node_id}")).json()
        assert node["content"] == "I am learning to play the cello now."
        [source] = node["sources"]
        assert (source["message_index"], int(source["offset"]), int(source["length"])) == (1, 0, 36)
        alone = await remembered(call, told_by(text))
        assert alone["state"] == "digested"
        assert (alone["node_ids"], alone["message_count"], alone["dropped_recalled"]) == ([], 0, 2)
        found = (await call("POST", f"{AGENT}/search", {"query": "cello"})).json()["memories"]
        cello = await remembered(call, told_by(found[0]["content"], role="assistant"))
        assert cello["message_count"] == 0


async def test_repetitions_by_users_are_remembered(tmp_path: Path, caller_in: CallerIn) -> None:
    """A user's repetition creates new memories, also right after a recall; with the filter off nothing is dropped."""
    async with caller_in(tmp_path) as call:
        await remembered(call, told_by(FIRST[0]))
        text = (await call("POST", f"{AGENT}/recall", {})).json()["text"]
        again = await remembered(call, told_by(FIRST[0]))
        assert (again["dropped_recalled"], len(again["node_ids"])) == (0, 1)
        await call("PATCH", AGENT, {"drop_recalled": False})
        kept = await remembered(call, told_by(text))
        assert (kept["dropped_recalled"], len(kept["node_ids"])) == (0, 1)


async def test_a_replay_is_recognised_after_a_recall(tmp_path: Path, caller_in: CallerIn) -> None:
    """A repeated request with the same key returns the first batch, despite a recall in between."""
    body = told_by("[Memory] I moved to Lisbon in May with my cat Miso.", idempotency_key="once")
    async with caller_in(tmp_path) as call:
        await remembered(call, told_by(FIRST[0]))
        first = (await call("POST", f"{AGENT}/remember", body)).json()
        await call("POST", f"{AGENT}/recall", {})
        again = await call("POST", f"{AGENT}/remember", body)
        assert (again.status_code, again.json()["batch_id"]) == (202, first["batch_id"])


async def test_deleted_text_can_be_remembered_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """A deleted text is not treated as recalled: it can be stored again."""
    async with caller_in(tmp_path) as call:
        [node_id] = (await remembered(call, told_by(FIRST[0])))["node_ids"]
        text = (await call("POST", f"{AGENT}/recall", {})).json()["text"]
        assert (await call("DELETE", f"{AGENT}/nodes/{node_id}")).status_code == 200
        assert (await remembered(call, told_by(text)))["dropped_recalled"] == 0


async def test_repeats_within_a_batch_are_collapsed_if_enabled(tmp_path: Path, caller_in: CallerIn) -> None:
    """Off by default. If on, repetitions of one speaker are stored once, and those of different speakers once each."""
    spoken = [("Ann", FIRST[0]), ("Ann", FIRST[1]), ("Ann", FIRST[0]), ("Bob", FIRST[0])]
    body = {"messages": [{"role": "user", "speaker": who, "content": text} for who, text in spoken]}
    async with caller_in(tmp_path) as call:
        assert (await remembered(call, body))["message_count"] == 4
        await call("PATCH", AGENT, {"collapse_repeats": True})
        batch = await remembered(call, body)
        assert (batch["collapsed"], batch["message_count"]) == (1, 3)
        indexes = [
            source["message_index"] for node in batch["node_ids"] for source in await sources(call, node)
        ]
        assert indexes == [0, 1, 3]
