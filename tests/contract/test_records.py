"""Records over every transport: exact values, batches that happen whole or not at all, and complete deletion."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clock import SystemClock
from ebbtide.daemon import opened
from ebbtide.fleet.records import batch
from ebbtide.ids import AgentId
from ebbtide.store import layout
from ebbtide.verbs import records as verb
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn, RestCaller, reason_of
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import settings_for
from tests.support.keys import KEYS_ON, new_key
from tests.support.scanning import Traces
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"
BATCH = f"{AGENT}/records/batch"
VALUE: dict[str, Any] = {
    "b": [1, 2.5, None, True, {"深": "度 😀"}],
    "a": {"nested": {"empty": {}, "list": []}},
    "text": 'Zwölf Boxkämpfer\n\t"quoted" \\ \u2028',
}


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(ALL_CALLERS[request.param], embedding={"model": "off"})


async def run(call: Caller, *ops: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a batch, and return its results."""
    answer = await call("POST", BATCH, {"ops": list(ops)})
    assert answer.status_code == 200, answer.json()
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def refused(call: Caller, *ops: dict[str, Any]) -> str:
    """Run a batch that is refused, and return the reason."""
    answer = await call("POST", BATCH, {"ops": list(ops)})
    assert answer.status_code >= 400, answer.json()
    return reason_of(answer)


def put(key: str, value: dict[str, Any], *namespace: str, **fields: Any) -> dict[str, Any]:
    return {"op": "put", "namespace": list(namespace or ("n",)), "key": key, "value": value, **fields}


def get(key: str, *namespace: str, **fields: Any) -> dict[str, Any]:
    return {"op": "get", "namespace": list(namespace or ("n",)), "key": key, **fields}


async def test_a_value_is_read_as_it_was_put(tmp_path: Path, caller_in: CallerIn) -> None:
    """A put creates the agent; the value has the same JSON, in the same order, also after a restart."""
    async with caller_in(tmp_path) as call:
        [done] = await run(call, put("k", VALUE, "users", "林月"))
        assert done["version"] == 1 and done["deleted"] is None and done["record"] is None
    async with caller_in(tmp_path) as call:
        [found, missing] = await run(call, get("k", "users", "林月"), get("k", "users"))
        record = found["record"]
        assert record["value"] == VALUE and missing["record"] is None
        if "rest" in call.transport:
            assert json.dumps(record["value"]) == json.dumps(VALUE)
        assert (record["namespace"], record["key"], record["version"]) == (["users", "林月"], "k", 1)
        assert record["created_at"] == record["updated_at"] and record["expires_at"] is None


async def test_a_batch_happens_whole_or_not_at_all(tmp_path: Path, caller_in: CallerIn) -> None:
    """Reads see the state before it, writes happen in order, and one differing version undoes all of it."""
    async with caller_in(tmp_path) as call:
        first = await run(call, get("k"), put("k", {"n": 1}), get("k"), put("k", {"n": 2}))
        assert first[0]["record"] is None and first[2]["record"] is None
        assert first[3]["version"] > first[1]["version"]
        version = first[3]["version"]
        assert await refused(call, put("new", {}), put("k", {"n": 3}, if_version=0)) == "VERSION_DIFFERS"
        [found, none] = await run(call, get("k"), get("new"))
        assert found["record"]["value"] == {"n": 2} and none["record"] is None
        await run(call, put("k", {"n": 3}, if_version=version), put("new", {}, if_version=0))
        stale = {"op": "delete", "namespace": ["n"], "key": "k", "if_version": version}
        assert await refused(call, stale) == "VERSION_DIFFERS"
        [gone] = await run(call, {**stale, "if_version": None} | {"if_version": version + 1})
        assert gone["deleted"] == 1
        [again] = await run(call, put("k", {"n": 4}, if_version=0))
        assert again["version"] > version + 2, "no version is used again"


async def test_search_filters_and_orders(tmp_path: Path, caller_in: CallerIn) -> None:
    """A search finds what its prefix and filter select, in the order of namespace and key, page by page."""
    async with caller_in(tmp_path) as call:
        ages = {"a": 3, "b": 30, "c": 31.5, "d": True, "e": "31"}
        await run(call, *(put(key, {"age": age, "in": {"x": key}}, "p", key) for key, age in ages.items()))
        await run(call, put("z", {"age": 30}, "q"), put("root", {"age": 30}, "p"))

        async def keys(**fields: Any) -> str:
            [found] = await run(call, {"op": "search", "prefix": ["p"], **fields})
            return "".join(one["key"][0] for one in found["records"])

        assert await keys() == "rabcde" and await keys(order="-key") == "edcbar"
        assert await keys(limit=2, offset=1) == "ab" and await keys(offset=6) == ""
        assert await keys(filter={"age": {"$gte": 30}}) == "rbc"
        assert await keys(filter={"age": {"$gt": 30, "$lt": 40}}) == "c"
        assert await keys(filter={"age": {"$ne": 30}}) == "acde" and await keys(filter={"age": True}) == "d"
        assert await keys(filter={"in": {"x": "b"}}) == "b" and await keys(filter={"in": None}) == "r"
        [all_of_them] = await run(call, {"op": "search", "limit": 100})
        assert len(all_of_them["records"]) == 7
        pattern = {"type": "prefix", "path": ["*", "b"]}
        named = await run(
            call,
            {"op": "namespaces"},
            {"op": "namespaces", "max_depth": 1},
            {"op": "namespaces", "match": [pattern, {"type": "suffix", "path": ["b"]}]},
        )
        labels = [[one["labels"] for one in result["namespaces"]] for result in named]
        assert labels[0] == [["p"], *(["p", key] for key in ages), ["q"]]
        assert labels[1:] == [[["p"], ["q"]], [["p", "b"]]]


async def test_a_query_finds_records_by_their_words(tmp_path: Path, caller_in: CallerIn) -> None:
    """The best of all records that match prefix and filter come first, by all their texts or those of `index`."""
    many = [
        put(f"{number:03}", {"text": "The lighthouse key.", "n": number}, "p", "many") for number in range(30)
    ]
    secret = "The spare key hangs behind the barometer."
    async with caller_in(tmp_path) as call:
        await run(
            call,
            *many,
            put("best", {"note": {"said": [secret]}, "n": 7}, "p"),
            put("long", {"text": "Nothing of it. " * 300 + "The barometer is broken."}, "p"),
            put("title", {"title": "Barometer", "text": "spare"}, "p", index=["title"]),
            put("hidden", {"text": secret}, "p", no_index=True),
            put("other", {"text": secret}, "q"),
            put("zh", {"text": "备用钥匙挂在气压计后面。"}, "p"),
        )

        async def found(query: str, **fields: Any) -> list[str]:
            [done] = await run(call, {"op": "search", "prefix": ["p"], "query": query, **fields})
            scores = [one["score"] for one in done["records"]]
            assert scores == sorted(scores, reverse=True) and all(score > 0 for score in scores)
            assert not scores or fields.get("offset") or scores[0] == 1
            return [one["key"] for one in done["records"]]

        assert await found("Where is the spare barometer key?", limit=1) == ["best"]
        assert set(await found("barometers")) == {"best", "long", "title"}
        assert await found("spare") == ["best"] and await found("气压计") == ["zh"]
        assert await found("lighthouse", filter={"n": 29}, limit=1) == ["029"]
        first, second = await found("lighthouse", limit=20), await found("lighthouse", limit=20, offset=20)
        assert (len(first), len(second)) == (20, 10) and not {*first} & {*second}
        assert await found("submarine") == [] and await found("the") == []
        [before, _, after] = await run(
            call,
            *(
                {"op": "search", "prefix": ["p"], "query": "barometer spare"},
                {"op": "delete", "namespace": ["p"], "key": "best"},
                {"op": "search", "prefix": ["p"], "query": "barometer spare"},
            ),
        )
        assert before["records"][0]["key"] == after["records"][0]["key"] == "best", "as before the batch"
        assert await found("spare") == []
        [listed] = await run(call, {"op": "search", "prefix": ["q"]})
        assert listed["records"][0]["score"] is None


async def test_forgotten_records_leave_the_memory_of_queries(tmp_path: Path) -> None:
    """The terms that a query computed are dropped with their record: overwritten, deleted, or forgotten."""
    async with CALLERS["rest"](tmp_path, embedding={"model": "off"}) as call:
        await run(call, *(put(key, {"text": f"key {key}"}) for key in "abcd"))
        [done] = await run(call, {"op": "search", "query": "key"})
        assert len(done["records"]) == 4
        async with call.service.fleet.using(AgentId("ann")) as agent:
            terms = agent.workspace.records.terms
            assert len(terms) == 4 and terms.resident_bytes > 0
            await run(call, put("a", {}), {"op": "delete", "namespace": ["n"], "key": "b"})
            assert len(terms) == 2
            await call("POST", f"{AGENT}/forget", {"records": [{"namespace": ["n"], "key": "c"}]})
            assert (len(terms), terms.resident_bytes) == (0, 0)


async def test_an_export_keeps_what_queries_find(tmp_path: Path) -> None:
    """The copy of an agent from its export and from its backup answers a query as the agent does."""
    query = {"op": "search", "query": "spare key"}
    async with CALLERS["rest"](tmp_path, embedding={"model": "off"}) as call:
        texts = {"title": "spare", "text": "spare key"}
        await run(call, put("a", texts), put("b", texts, index=["title"]), put("c", texts, no_index=True))
        [expected] = await run(call, query)
        assert [one["key"] for one in expected["records"]] == ["a", "b"]
        for form in ("export", "backup"):
            content = await call.download(f"{AGENT}/{form}")
            answer = await call.upload(f"{AGENT}/restore", content, replace=True)
            assert answer.json()["replaced"], answer.json()
            assert await run(call, query) == [expected]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"op": "put", "namespace": ["n"], "key": "k"}, "MISSING_FIELD"),
    ({"op": "put", "namespace": [], "key": "k", "value": {}}, "MISSING_FIELD"),
    ({"op": "delete"}, "MISSING_FIELD"),
    ({"op": "delete", "namespace": ["n"]}, "MISSING_FIELD"),
    ({"op": "delete", "namespace": ["n"], "key": "k", "prefix": ["n"]}, "INVALID_VALUE"),
    ({"op": "get", "namespace": ["n"], "key": "k", "value": {"a": 1}}, "INVALID_VALUE"),
    ({"op": "get", "namespace": ["n", ""], "key": "k"}, "INVALID_VALUE"),
    ({"op": "get", "namespace": ["n"], "key": ""}, "INVALID_VALUE"),
    ({"op": "get", "namespace": ["n"] * 17, "key": "k"}, "TOO_MANY_ITEMS"),
    ({"op": "get", "namespace": ["x" * 201], "key": "k"}, "TEXT_TOO_LONG"),
    ({"op": "get", "namespace": ["n"], "key": "x" * 501}, "TEXT_TOO_LONG"),
    ({"op": "search", "filter": {"a": {"$regex": "x"}}}, "INVALID_VALUE"),
    ({"op": "search", "filter": {"a": {"$gt": "x"}}}, "INVALID_VALUE"),
    ({"op": "search", "filter": {"a": {"$gt": 1, "b": 2}}}, "INVALID_VALUE"),
    ({"op": "search", "limit": 1001}, "INVALID_VALUE"),
    ({"op": "search", "order": "value"}, "INVALID_VALUE"),
    ({"op": "search", "query": " "}, "INVALID_VALUE"),
    ({"op": "search", "query": "a", "order": "key"}, "INVALID_VALUE"),
    (put("k", {}, index=["a..b"]), "INVALID_VALUE"),
    (put("k", {}, index=["a"], no_index=True), "INVALID_VALUE"),
    (put("k", {}, index=["x" * 201]), "TEXT_TOO_LONG"),
    ({"op": "drop"}, "INVALID_VALUE"),
    ({"op": "namespaces", "match": [{"type": "infix", "path": ["a"]}]}, "INVALID_VALUE"),
    (put("k", {"a": "x" * 1000}), "TEXT_TOO_LONG"),
    (put("k", {"a": json.loads("[" * 30 + "]" * 30)}), "INVALID_VALUE"),
    (put("k", {}, if_version=7), "VERSION_DIFFERS"),
]


async def test_a_bad_operation_is_refused(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wrong operation gets its reason, and nothing of its batch happens."""
    # Low bounds, so that no request needs a worker process.
    monkeypatch.setattr(verb, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(batch, "MAX_RETURNED_BYTES", 2000)
    monkeypatch.setattr(batch, "MAX_DELETED", 2)
    monkeypatch.setattr(batch, "MAX_EXAMINED", 6)
    async with caller_in(tmp_path) as call:
        await run(call, put("there", {}))
        for operation, reason in INVALID:
            assert await refused(call, put("other", {}), operation) == reason, operation
        assert await refused(call) == "MISSING_FIELD"
        assert await refused(call, *[get("k")] * 1001) == "TOO_MANY_ITEMS"
        await run(call, *(put(f"large{number}", {"text": "x" * 900}) for number in range(3)))
        assert await refused(call, {"op": "search"}) == "TOO_MANY_ITEMS"
        assert await refused(call, {"op": "delete", "prefix": ["n"]}) == "TOO_MANY_ITEMS"
        [found, one] = await run(call, get("other"), {"op": "search", "limit": 1})
        assert found["record"] is None and len(one["records"]) == 1
        assert await refused(call, *[{"op": "search", "limit": 1}] * 2) == "TOO_MANY_ITEMS"
        for name, most in (("MAX_SEARCHED", 3), ("MAX_SEARCHED_BYTES", 1800)):
            with monkeypatch.context() as bound:
                bound.setattr(batch, name, most)
                assert await refused(call, {"op": "search", "query": "x"}) == "TOO_MANY_ITEMS"


async def test_records_are_no_memories(tmp_path: Path, caller_in: CallerIn) -> None:
    """No recall, search or listing of memories returns a record, and an agent that does not exist has none."""
    async with caller_in(tmp_path) as call:
        assert await refused(call, get("k")) == "AGENT_NOT_FOUND"
        await run(call, put("k", {"text": "Ann moved to Lisbon."}))
        answer = await call("POST", f"{AGENT}/recall", {"query": "Where did Ann move?"})
        assert answer.status_code == 200 and "Lisbon" not in str(answer.json())
        assert (await call("GET", f"{AGENT}/nodes")).json()["nodes"] == []


async def test_a_key_needs_the_scope_of_each_operation(tmp_path: Path) -> None:
    """A key that may only read cannot write or let records live longer; one that may only write cannot read."""
    writer, reader = new_key(tmp_path, "write"), new_key(tmp_path, "read")
    async with CALLERS["rest"](tmp_path, access=KEYS_ON) as call:
        call.show(writer)
        await run(call, put("k", {"a": 1}, ttl_minutes=5))
        assert await refused(call, put("x", {}), get("k")) == "SCOPE_MISSING"
        call.show(reader)
        await run(call, get("k"), {"op": "search"}, {"op": "namespaces"})
        for operation in (put("x", {}), {"op": "delete", "prefix": ["n"]}, get("k", refresh_ttl=True)):
            assert await refused(call, operation) == "SCOPE_MISSING"


MARK = "Zyxomarq"
KEPT = {"op": "get", "namespace": ["kept"], "key": "k"}


def secrets() -> list[dict[str, Any]]:
    """Return puts with the word in every place of a record."""
    return [
        put("k1", {"text": f"On Monday {MARK} came."}),
        put("k2", {"deep": [{f"{MARK} field": 1}]}, "n", "m"),
        put(f"{MARK} key", {"a": 1}, "n"),
        put("k4", {"a": 1}, "n", f"{MARK} label"),
        put("k5", {"text": f"{MARK} was here " * 200}, "n"),
    ]


DELETIONS: dict[str, dict[str, Any]] = {
    "topic": {"topic": MARK},
    "records": {"records": [{"namespace": ["n"]}]},
    "time_range": {"time_range": {"begin": 1_690_000_000_000}},
    "topic and time": {"topic": MARK, "time_range": {"begin": 1_690_000_000_000}},
}


@pytest.mark.parametrize("kind", DELETIONS)
async def test_no_file_and_no_answer_has_a_forgotten_record(
    tmp_path: Path, caller_in: CallerIn, kind: str
) -> None:
    """Values, keys, labels and hashes of them are in no byte of the agent; other records are as they were."""
    directory = tmp_path / "agents" / "ann"
    traces = Traces([MARK], keys=[layout.record_key(("n", "m"), "k2"), layout.record_key(("n",), "k1")])
    async with caller_in(tmp_path) as call:
        if kind != "time_range":
            await run(call, put("k", {"a": "Miso"}, "kept"))
        await run(call, *secrets())
    assert len(traces.found_in(directory)) > 4
    async with caller_in(tmp_path) as call:
        selection = DELETIONS[kind]
        dry = (await call("POST", f"{AGENT}/forget", {**selection, "dry_run": True})).json()
        assert dry["counts"]["records"] == 5 and MARK in str(dry["records"])
        gone = (await call("POST", f"{AGENT}/forget", selection)).json()
        assert gone["counts"]["records"] == 5 and gone["compacted"] and MARK not in str(gone)
        [left, kept] = await run(call, {"op": "search", "limit": 100}, KEPT)
        assert len(left["records"]) == (kind != "time_range")
        assert (kept["record"] is None) == (kind == "time_range")
        verified = await call("POST", f"{AGENT}/audit/verify", {"texts": [f"On Monday {MARK} came.", "Miso"]})
        assert [one["erased"] for one in verified.json()["texts"]] == [True, False]
        assert MARK not in (await call.download(f"{AGENT}/export")).decode()
    assert traces.found_in(directory) == []


async def test_what_was_deleted_before_leaves_the_file_with_the_next_forget(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Deleted and overwritten values leave responses at once, and every byte of the file with a forget."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        text = {"text": f"{MARK} was here " * 200}
        await run(call, put("deleted", text), put("overwritten", text), put("k", text, "p", MARK))
        await run(call, {"op": "delete", "namespace": ["n"], "key": "deleted"}, put("overwritten", {}))
        [done] = await run(call, {"op": "delete", "prefix": ["p"]})
        assert done["deleted"] == 1
        records = (await call("GET", f"{AGENT}/audit")).json()["records"]
        deletions = [one for one in records if one["action"] == "record_deleted"]
        assert [one["details"] for one in deletions] == [{"records": 1}, {"records": 1}]
        [found] = await run(call, {"op": "search"})
        assert [one["key"] for one in found["records"]] == ["overwritten"]
    async with caller_in(tmp_path) as call:
        answer = await call("POST", f"{AGENT}/forget", {"topic": "nothing of the kind"})
        assert answer.json()["compacted"]
    assert Traces([MARK]).found_in(directory) == []


class SetClock(SystemClock):
    """A clock that is set forward by hand."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


async def test_an_expired_record_does_not_exist(tmp_path: Path) -> None:
    """From its time on no operation finds it, a sweep deletes it, and a refresh lets it live on."""
    clock, minute_ms = SetClock(), 60_000
    async with opened(settings_for(tmp_path, embedding={"model": "off"}), clock=clock) as service:
        call = RestCaller(service)
        await run(
            call, put("k", {"a": 1}, ttl_minutes=10), put("kept", {"a": 1}, ttl_minutes=10), put("o", {})
        )
        clock.ahead_ms += 9 * minute_ms
        await run(call, get("kept", refresh_ttl=True))
        clock.ahead_ms += 2 * minute_ms
        [gone, kept, found] = await run(call, get("k"), get("kept"), {"op": "search"})
        assert gone["record"] is None and kept["record"]["value"] == {"a": 1}
        assert [one["key"] for one in found["records"]] == ["kept", "o"]
        await run(call, put("k", {"a": 2}, if_version=0))
        async with service.fleet.using(AgentId("ann")) as agent:

            def keys() -> set[str]:
                store = agent.workspace.store
                return store.read(lambda txn: {one.key for one in txn.records.all()})

            assert await agent.run(keys) == {"k", "kept", "o"}
            clock.ahead_ms += 60 * minute_ms
            agent.retention_task.notice()
            await eventually(lambda: keys() == {"k", "o"})


async def test_a_redacted_agent_stores_no_personal_data_in_records(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Under `redact`, values lose personal data; labels and keys get a form by which they are found again."""
    mail = "zoe@example.com"
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact"})
        await run(call, put(mail, {"note": f"Mail {mail}.", mail: 1}, "users", mail))
        [found, listed] = await run(
            call, get(mail, "users", mail), {"op": "search", "prefix": ["users", mail], "filter": {mail: 1}}
        )
        assert found["record"]["value"]["note"] == "Mail [email]."
        assert len(listed["records"]) == 1 and mail not in str(found)
        gone = await call(
            "POST", f"{AGENT}/forget", {"records": [{"namespace": ["users", mail], "key": mail}]}
        )
        assert gone.json()["counts"]["records"] == 1
    assert Traces([mail]).found_in(tmp_path / "agents" / "ann") == []


async def test_quota_counts_records(tmp_path: Path, caller_in: CallerIn) -> None:
    """An agent beyond its bytes refuses a put, and still deletes."""
    async with caller_in(tmp_path, access={"max_bytes_per_agent": 45_000}) as call:
        for number in range(4):
            await run(call, put(f"k{number}", {"text": "x" * 10_000}))
        assert await refused(call, put("o", {})) == "QUOTA_REACHED"
        [gone] = await run(call, {"op": "delete", "prefix": ["n"]})
        assert gone["deleted"] == 4
