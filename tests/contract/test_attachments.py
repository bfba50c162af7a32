"""Attachments over every transport: stored with a message, found by their captions, cited, read back and erased."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.bounds import MAX_ATTACHMENT_BYTES
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.rebuild import rebuild_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.callers import MOSTLY_REST, Caller, CallerIn, rest_in
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL

AGENT = "/v1/agents/ann"
MAP = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
NOISE = random.Random(19).randbytes(20_000)
"""Bytes that no compression shortens, so that they are in the file as they are."""
MARK = NOISE[500:540]
PLAN = b"%PDF-1.7 a plan of the harbour"


def attached(content: bytes = NOISE, **fields: Any) -> dict[str, Any]:
    """Return an attachment as a request has it."""
    return {"mime": "image/png", "bytes": base64.b64encode(content).decode(), **fields}


HOUSE = attached(
    caption="Our cottage near Braga, with a turquoise door.",
    regions=[
        {"box": [0.4, 0.5, 0.1, 0.25], "caption": "The turquoise door with a brass knocker."},
        {"box": [0, 0, 1, 0.5], "caption": "A stork nest on the chimney."},
    ],
)
SHOWN = {
    "role": "user",
    "speaker": "Ann",
    "content": "Look what we bought last week!",
    "attachments": [HOUSE],
}
OTHERS = [
    {"role": "user", "content": "Bruno paints boats in Ghent."},
    {"role": "assistant", "content": "The concert is on Saturday evening."},
]


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(ALL_CALLERS[request.param], embedding={"model": "off"})


async def stored(call: Caller, *said: dict[str, Any], flush: bool = True, **fields: Any) -> None:
    """Let the agent remember messages, and wait for their digest."""
    answer = await call("POST", f"{AGENT}/remember", {"messages": list(said), **fields})
    assert answer.status_code == 202, answer.json()
    if flush:
        assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})).json()["digested"]


async def messages(call: Caller) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await call("GET", f"{AGENT}/messages")).json()["messages"]
    return found


async def content(call: Caller, message: str = "m1", index: int = 0, agent: str = AGENT) -> bytes | None:
    """Return the content of an attachment; None if there is none."""
    answer = await call("GET", f"{agent}/messages/{message}/attachments/{index}")
    if answer.status_code == 404:
        assert answer.json()["error"]["reason"] == "ATTACHMENT_NOT_FOUND"
        return None
    assert answer.status_code == 200
    if call.transport == "rest":
        return bytes(answer.content)
    assert answer.json()["sha256"] == hashlib.sha256(base64.b64decode(answer.json()["bytes"])).hexdigest()
    return base64.b64decode(answer.json()["bytes"])


async def found(call: Caller, query: str, **fields: Any) -> dict[str, Any]:
    """Return the best memory that answers a query."""
    answer = await call("POST", f"{AGENT}/search", {"query": query, "max_results": 1, **fields})
    memory: dict[str, Any] = answer.json()["memories"][0]
    return memory


def in_store(path: Path, check: bool = True) -> bytes:
    """Return all bytes of an agent's files. Its store must be consistent, and a rebuild must not change that."""
    directory = path / "agents" / "ann"
    if check:
        store = LmdbStore.open(directory, **MAP)
        try:
            assert check_store(store) == []
            assert rebuild_store(store) == []
        finally:
            store.close()
    return b"".join(one.read_bytes() for one in sorted(directory.rglob("*")) if one.is_file())


def files_with(content: bytes, directory: Path) -> list[Path]:
    """Return the files below a directory that contain some bytes."""
    return [one for one in directory.rglob("*") if one.is_file() and content in one.read_bytes()]


# --- stored and read back ----------------------------------------------------------------------------------------


async def test_an_attachment_is_stored_and_read_back(tmp_path: Path, caller_in: CallerIn) -> None:
    """Its content is returned byte for byte, its description with the message, and equal contents are stored once."""
    async with caller_in(tmp_path) as call:
        plan = attached(PLAN, mime="Application/PDF", sha256=hashlib.sha256(PLAN).hexdigest().upper())
        again = attached(regions=[{"page": 2, "begin_ms": 0, "end_ms": 1500}])
        await stored(call, {**SHOWN, "attachments": [HOUSE, plan]}, {**SHOWN, "attachments": [again]})
        assert [await content(call, "m1", 0), await content(call, "m1", 1)] == [NOISE, PLAN]
        assert await content(call, "m2") == NOISE
        first, second = await messages(call)
        house, pdf = first["attachments"]
        assert (house["mime"], house["size"], house["caption"]) == ("image/png", len(NOISE), HOUSE["caption"])
        assert house["sha256"] == hashlib.sha256(NOISE).hexdigest()
        assert [one["caption"] for one in house["regions"]] == [one["caption"] for one in HOUSE["regions"]]
        assert house["regions"][0]["box"] == [0.4, 0.5, 0.1, 0.25]
        assert (house["regions"][0]["page"], house["regions"][0]["begin_ms"]) == (None, None)
        assert (pdf["mime"], pdf["caption"], pdf["regions"]) == ("application/pdf", "", [])
        (region,) = second["attachments"][0]["regions"]
        assert (region["page"], region["box"], region["begin_ms"], region["end_ms"]) == (2, [], 0, 1500)
        assert first["content"].startswith(SHOWN["content"] + "\n" + HOUSE["caption"] + "\n")
        assert [await content(call, *place) for place in (("m1", 2), ("m3", 0), ("n1", 0), ("m9", 0))] == [
            None
        ] * 4
        assert await call.refused("GET", "/v1/agents/nobody/messages/m1/attachments/0") == "AGENT_NOT_FOUND"
    assert in_store(tmp_path).count(MARK) == 1


async def test_a_file_is_not_shown_by_a_browser(tmp_path: Path) -> None:
    """The response has the media type, and headers against sniffing, scripts and display."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        page = attached(b"<script>alert(1)</script>", mime="text/html")
        await stored(call, {**SHOWN, "attachments": [page]})
        answer = await call("GET", f"{AGENT}/messages/m1/attachments/0")
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox")
        assert answer.headers["content-disposition"] == 'attachment; filename="m1-0.html"'
        for index in ("x", "-1", "99999999999"):
            assert await call.refused("GET", f"{AGENT}/messages/m1/attachments/{index}") in (
                "WRONG_TYPE",
                "INVALID_VALUE",
            )


async def test_a_repeated_request_stores_it_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """An idempotency key covers attachments: the same ones are a replay, also with their hash; others are refused."""
    async with caller_in(tmp_path) as call:
        await stored(call, SHOWN, idempotency_key="k")
        with_hash = {**HOUSE, "sha256": hashlib.sha256(NOISE).hexdigest()}
        body = {"messages": [{**SHOWN, "attachments": [with_hash]}], "idempotency_key": "k"}
        assert (await call("POST", f"{AGENT}/remember", body)).json()["batch_id"] == "b1"
        for other in ([], [attached(PLAN, caption=HOUSE["caption"])], [{**HOUSE, "caption": "Another."}]):
            body = {"messages": [{**SHOWN, "attachments": other}], "idempotency_key": "k"}
            assert await call.refused("POST", f"{AGENT}/remember", body) == "IDEMPOTENCY_KEY_REUSED"


async def test_messages_with_different_attachments_are_no_repeats(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """`collapse_repeats` leaves out a message only if its attachments are equal too."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"collapse_repeats": True})
        other = {**SHOWN, "attachments": [attached(PLAN, caption=HOUSE["caption"])]}
        await stored(call, SHOWN, SHOWN, other)
        assert len(await messages(call)) == 2


# --- refused ------------------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str, str]] = [
    (attached(bytes(MAX_ATTACHMENT_BYTES + 1)), "ATTACHMENT_TOO_LARGE", "1048577 bytes"),
    (attached(sha256="0" * 64), "INVALID_VALUE", hashlib.sha256(NOISE).hexdigest()),
    (attached(mime="png"), "INVALID_VALUE", "a type and a subtype"),
    (attached(mime="image/png\r\nX-Evil: 1"), "INVALID_VALUE", "a type and a subtype"),
    (attached(b""), "INVALID_VALUE", "1-1048576 bytes"),
    (attached(caption="x" * 2001), "TEXT_TOO_LONG", "at most 2000"),
    (attached(regions=[{"caption": "nowhere"}]), "MISSING_FIELD", "page, box or begin_ms"),
    (attached(regions=[{"box": [0, 0, 1]}]), "INVALID_VALUE", "x, y, width, height"),
    (attached(regions=[{"box": [0.8, 0, 0.3, 1]}]), "INVALID_VALUE", "x + width and y + height at most 1"),
    (attached(regions=[{"box": [0, 0.5, 1, 0.6]}]), "INVALID_VALUE", "x + width and y + height at most 1"),
]


async def test_what_is_refused_and_how(tmp_path: Path, caller_in: CallerIn) -> None:
    """A wrong hash, a content that is too large, a media type without the form of one: nothing is stored."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        for one, reason, part in BAD:
            body = {"messages": [{**SHOWN, "attachments": [one]}]}
            error = (await call("POST", f"{AGENT}/remember", body)).json()["error"]
            assert (error["reason"], part in error["message"]) == (reason, True), error
            assert error["field_violations"][0]["field"].startswith("messages[0].attachments[0].")
        many = {"messages": [{**SHOWN, "attachments": [attached(PLAN)] * 17}]}
        error = (await call("POST", f"{AGENT}/remember", many)).json()["error"]
        assert (error["reason"], "at most 16" in error["message"]) == ("TOO_MANY_ITEMS", True)
        long = {**SHOWN, "content": "x" * 99_000, "attachments": [attached(caption="y" * 2000)]}
        error = (await call("POST", f"{AGENT}/remember", {"messages": [long]})).json()["error"]
        assert (error["reason"], "with captions" in error["message"]) == ("TEXT_TOO_LONG", True)
        if call.transport == "rest":
            for text in ("no base64!", "aGVsbG8", "aGVs\nbG8=", 5, None):
                one = {"mime": "image/png", "bytes": text}
                reason = await call.refused(
                    "POST", f"{AGENT}/remember", {"messages": [{**SHOWN, "attachments": [one]}]}
                )
                assert reason == ("INVALID_VALUE" if isinstance(text, str) else "WRONG_TYPE")
        assert await messages(call) == []


async def test_the_largest_attachment_is_accepted(tmp_path: Path, caller_in: CallerIn) -> None:
    """1 MiB is stored and returned; a body beyond its own limit is refused as any body."""
    largest = random.Random(3).randbytes(MAX_ATTACHMENT_BYTES)
    async with caller_in(tmp_path) as call:
        await stored(call, {**SHOWN, "attachments": [attached(largest, caption="Waves.")]})
        assert await content(call) == largest
        if call.transport == "rest":
            many = {"messages": [{**SHOWN, "attachments": [attached(largest)] * 7}]}
            assert await call.refused("POST", f"{AGENT}/remember", many) == "BODY_TOO_LARGE"


# --- found and cited ----------------------------------------------------------------------------------------------


async def test_a_caption_is_found_and_cited_with_its_region(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query cites the attachment whose caption it asks for, the region if its caption fits best, or none."""
    async with caller_in(tmp_path) as call:
        await stored(call, *OTHERS, {**SHOWN, "attachments": [attached(PLAN, caption="A map."), HOUSE]})
        for query, region in (
            ("Where is our cottage near Braga?", None),
            ("Which door has a brass knocker?", 0),
            ("Is there a stork nest on the chimney?", 1),
        ):
            memory = await found(call, query)
            cited = memory["sources"][0]["attachment"]
            assert (cited["message"], cited["index"], cited["mime"]) == ("m3", 1, "image/png"), query
            captions = [one["caption"] for one in HOUSE["regions"]]
            assert (cited["region"] and cited["region"]["caption"]) == (
                None if region is None else captions[region]
            )
            assert await content(call, cited["message"], cited["index"]) == NOISE
        harbour = attached(PLAN, caption="青岛的灯塔。")
        await stored(call, {"role": "user", "content": "看！", "attachments": [harbour]})
        chinese = {"query": "灯塔在哪里？", "citations": True, "max_results": 1}
        assert "，附件 1）" in (await call("POST", f"{AGENT}/recall", chinese)).json()["text"]
        own = await found(call, "What did we buy last week?")
        assert "bought" in own["content"] and own["sources"][0]["attachment"] is None
        other = await found(call, "What does Bruno paint?")
        assert other["sources"][0]["attachment"] is None
        body = {"query": "Which door has a brass knocker?", "citations": True, "max_results": 1}
        recalled = (await call("POST", f"{AGENT}/recall", body)).json()
        assert "brass knocker" in recalled["text"] and ", attachment 2)" in recalled["text"]
        assert recalled["memories"][0]["sources"][0]["attachment"]["region"]["box"] == [0.4, 0.5, 0.1, 0.25]
        associated = (await call("POST", f"{AGENT}/recall", {"keywords": ["stork"]})).json()["text"]
        assert "A stork nest on the chimney." in associated


async def test_a_waiting_attachment_is_found_at_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """A caption is found before the digest, and the memories of the digest cite the attachment."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"segment_max_chars": 80})
        await stored(call, {**SHOWN, "content": ""}, flush=False)
        memory = await found(call, "Where is the stork nest?", patience_ms=0)
        assert memory["sources"][0]["attachment"]["region"]["caption"] == HOUSE["regions"][1]["caption"]
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        (stork,) = [node for node in nodes if "stork" in node["content"]]
        (source,) = stork["sources"]
        assert source["attachment"]["index"] == 0 and source["attachment"]["message"] == "m1"


async def test_an_attachment_without_a_caption_is_cited_with_its_message(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """The words of a message describe its attachments, if these have none of their own."""
    async with caller_in(tmp_path) as call:
        await stored(
            call, *OTHERS, {**SHOWN, "content": "Here is my passport photo.", "attachments": [attached()]}
        )
        cited = (await found(call, "Where is the passport photo?"))["sources"][0]["attachment"]
        assert (cited["message"], cited["index"], cited["region"]) == ("m3", 0, None)


# --- personal data ------------------------------------------------------------------------------------------------


async def test_personal_data_in_captions(tmp_path: Path, caller_in: CallerIn) -> None:
    """Captions are redacted and tagged as texts are, and counted; the places of tags fit the text."""
    personal = attached(
        caption="Letter from clara@example.org",
        regions=[{"page": 1, "caption": "é signed by bruno@example.org"}],
    )
    said = {**SHOWN, "content": "Schöne Grüße, write to ann@example.org!", "attachments": [personal]}
    async with caller_in(tmp_path) as call:
        for policy in ("redact", "tag"):
            await call("PATCH" if policy == "tag" else "PUT", AGENT, {"pii": policy})
            answer = await call("POST", f"{AGENT}/remember", {"messages": [said]})
            assert answer.json()["pii"] == {"email": 3}
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
        redacted, tagged = await messages(call)
        assert "example.org" not in json.dumps(redacted, ensure_ascii=False)
        assert redacted["attachments"][0]["regions"][0]["caption"] == "é signed by [email]"
        raw = tagged["content"].encode()
        found = [raw[one["offset"] : one["offset"] + one["length"]].decode() for one in tagged["pii"]]
        assert found == ["ann@example.org", "clara@example.org", "bruno@example.org"]
        assert tagged["attachments"][0]["caption"] == personal["caption"]


# --- removed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "selection",
    [{"messages": ["m3"]}, {"topic": "stork"}, {"speakers": ["Ann"]}],
    ids=["message", "topic", "speaker"],
)
async def test_an_erased_attachment_is_in_no_file(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """`forget` removes content and captions, also by a word of a caption, and the rest stays consistent."""
    async with caller_in(tmp_path) as call:
        await stored(call, *OTHERS, SHOWN)
        assert await content(call, "m3") == NOISE
        await call("POST", f"{AGENT}/close", {})
        assert MARK in in_store(tmp_path)
        assert (await call("POST", f"{AGENT}/forget", selection)).json()["compacted"]
        assert await content(call, "m3") is None
    in_store(tmp_path)
    assert [place for word in (MARK, b"stork") for place in files_with(word, tmp_path)] == []


async def test_a_deletion_removes_the_attachment_with_its_caption(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Deleting or correcting the memory of a caption removes the attachment; that of other words does not."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"segment_max_chars": 40})
        for number in (1, 2, 3):
            await stored(
                call,
                {
                    **SHOWN,
                    "content": "We bought it last week after a long search.",
                    "attachments": [attached(NOISE[number:], caption="Our red barn near Evora, all of it.")],
                },
            )
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        bought = [node["id"] for node in nodes if "bought" in node["content"]]
        barns = [node["id"] for node in nodes if "barn" in node["content"]]
        assert len(bought) == len(barns) == 3 and not {*bought} & {*barns}
        await call("DELETE", f"{AGENT}/nodes/{bought[0]}")
        assert await content(call, "m1") == NOISE[1:]
        await call("DELETE", f"{AGENT}/nodes/{barns[1]}")
        assert await content(call, "m2") is None
        await call("PATCH", f"{AGENT}/nodes/{barns[2]}", {"content": "Our blue barn."})
        assert await content(call, "m3") is None
        assert [len(one["attachments"]) for one in await messages(call)] == [1, 0, 0, 0]
    in_store(tmp_path)


async def test_shared_content_stays_until_its_last_message_goes(tmp_path: Path, caller_in: CallerIn) -> None:
    """Two messages with equal contents: erasing one leaves the other readable."""
    async with caller_in(tmp_path) as call:
        await stored(call, SHOWN, {**SHOWN, "content": "Once more."})
        await call("POST", f"{AGENT}/forget", {"messages": ["m1"]})
        assert (await content(call, "m1"), await content(call, "m2")) == (None, NOISE)
        await call("POST", f"{AGENT}/forget", {"messages": ["m2"]})
        assert await content(call, "m2") is None
    assert MARK not in in_store(tmp_path)


async def test_retention_removes_attachments(tmp_path: Path, caller_in: CallerIn) -> None:
    """With `none` no content is stored, not even before the digest; captions become memories all the same."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"retention": "none"})
        await stored(call, SHOWN, flush=False)
        assert await content(call) is None
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert "stork" in " ".join(node["content"] for node in nodes)
        assert (await found(call, "Where is the stork nest?"))["sources"][0]["attachment"] is None
    assert MARK not in in_store(tmp_path)


async def test_expired_texts_take_their_attachments(tmp_path: Path, caller_in: CallerIn) -> None:
    """Attachments that were stored are removed with the text once retention changes."""
    async with caller_in(tmp_path) as call:
        await stored(call, SHOWN)
        assert await content(call) == NOISE
        await call("PATCH", AGENT, {"retention": "none"})
        for _ in range(200):
            if await content(call) is None:
                break
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 50})
        (message,) = await messages(call)
        assert message["content"] is None and message["attachments"] == []
        assert (await call("POST", f"{AGENT}/forget", {"messages": ["m1"]})).json()["compacted"]
    in_store(tmp_path)
    assert [place for word in (MARK, b"stork") for place in files_with(word, tmp_path)] == []


# --- moved --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["backup", "export"])
async def test_attachments_move_with_their_agent(tmp_path: Path, caller_in: CallerIn, form: str) -> None:
    """A backup and an export contain them, and a restored agent has and cites the same."""
    async with caller_in(tmp_path / "one") as call:
        await stored(call, *OTHERS, SHOWN, {**SHOWN, "content": "Once more."})
        before = await messages(call)
        file = await call.download(f"{AGENT}/{form}")
    async with caller_in(tmp_path / "two") as call:
        done = await call.upload(f"{AGENT}/restore", file)
        assert done.status_code == 200, done.json()
        assert await messages(call) == before
        assert await content(call, "m3") == NOISE
        cited = (await found(call, "Which door has a brass knocker?"))["sources"][0]["attachment"]
        assert cited["region"]["caption"] == HOUSE["regions"][0]["caption"]
        assert await call.download(f"{AGENT}/{form}") is not None
    assert in_store(tmp_path / "two").count(MARK) == 1


async def test_a_changed_export_is_refused(tmp_path: Path) -> None:
    """A caption outside the text, an empty content and a content that is too large refuse an export."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        await stored(call, SHOWN)
        lines = [json.loads(line) for line in (await call.download(f"{AGENT}/export")).splitlines()]
        at = next(place for place, line in enumerate(lines) if line["type"] == "message")
        for field, value in (
            ("offset", 5000),
            ("length", 5000),
            ("bytes", ""),
            ("bytes", base64.b64encode(bytes(MAX_ATTACHMENT_BYTES + 1)).decode()),
            ("mime", "x"),
        ):
            changed = json.loads(json.dumps(lines))
            changed[at]["attachments"][0][field] = value
            del changed[-1]["sha256"]
            body = "".join(json.dumps(line) + "\n" for line in changed).encode()
            done = await call.upload("/v1/agents/bob/restore", body, rename=True)
            assert done.status_code == 400 and done.json()["error"]["reason"] == "BACKUP_UNREADABLE", field


async def test_a_sealed_store_reveals_nothing(tmp_path: Path) -> None:
    """In an encrypted store no file has the content, its hash, its type or a caption."""
    key = base64.b64encode(bytes(range(32))).decode()
    async with rest_in(tmp_path, embedding={"model": "off"}, encryption={"master_key": key}) as call:
        await stored(call, SHOWN)
        assert await content(call) == NOISE
    files = in_store(tmp_path, check=False)
    for secret in (MARK, hashlib.sha256(NOISE).digest(), b"image/png", b"stork"):
        assert secret not in files
