"""The mem0-compatible API, with requests as the packages mem0ai of PyPI 2.2.1 and npm 3.3.1 send them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.mem0.memories import from_id, to_id
from ebbtide.rest.app import create_app
from ebbtide.verbs.calling import PASS_EVERY_TOKENS
from ebbtide.verbs.service import Service
from tests.support.in_process import service_in, settle, tell
from tests.support.keys import KEYS_ON, new_key
from tests.support.scripted_model import ScriptedModel

LINYUE = "林月"
NUTS = "I am vegetarian and allergic to nuts."
HOME = "我五月搬到了青岛。"
OTHER = to_id("bob", "n1")


REFUSED: list[tuple[str, Any, str]] = [
    ("add/", {"messages": NUTS}, "user_id"),
    ("add/", {"user_id": "ann"}, "messages"),
    ("add/", {"messages": [{"role": "user", "content": 5}], "user_id": "ann"}, "messages[0].content"),
    ("add/", {"messages": 5, "user_id": "ann"}, "messages"),
    ("add/", {"messages": NUTS, "user_id": 7}, "user_id"),
    ("add/", {"messages": NUTS, "user_id": "a/b"}, "user_id"),
    ("add/", {"messages": NUTS, "user_id": "agent:x"}, "user_id"),
    ("add/", {"messages": NUTS, "agent_id": "x" * 200}, "agent_id"),
    ("add/", {"messages": NUTS, "user_id": "ann", "expiration_date": "2030-01-01"}, "expiration_date"),
    ("add/", {"messages": NUTS, "user_id": "ann", "excludes": "health"}, "excludes"),
    ("add/", {"messages": NUTS, "user_id": "ann", "metadata": []}, "metadata"),
    ("add/", {"messages": NUTS, "user_id": "ann", "timestamp": 1e300}, "timestamp"),
    ("add/", {"messages": NUTS, "user_id": "ann", "run_id": "r" * 2000}, "run_id"),
    ("add/", {"messages": NUTS, "user_id": "ann", "filters": {"user_id": "bob"}}, "user_id"),
    ("search/", {"query": "x"}, "user_id"),
    ("search/", {"filters": {"user_id": "ann"}}, "query"),
    ("search/", {"query": "x", "filters": {"OR": [{"user_id": "ann"}]}}, "OR is not served here"),
    ("search/", {"query": "x", "filters": {"NOT": {"user_id": "ann"}}}, "NOT is not served here"),
    ("search/", {"query": "x", "filters": {"AND": [{"AND": []}]}}, "AND within AND"),
    ("search/", {"query": "x", "filters": {"AND": [[]]}}, "filters"),
    ("search/", {"query": "x", "filters": {"user_id": "*"}}, "*"),
    ("search/", {"query": "x", "filters": {"user_id": {"in": ["a"]}}}, "user_id"),
    ("search/", {"query": "x", "filters": {"user_id": "a", "AND": [{"user_id": "b"}]}}, "user_id"),
    ("search/", {"query": "x", "filters": {"user_id": "a", "categories": "c"}}, "categories"),
    ("search/", {"query": "x", "filters": {"user_id": "a"}, "categories": ["c"]}, "categories"),
    ("search/", {"query": "x", "filters": {"user_id": "a"}, "reference_date": 1}, "reference_date"),
    ("search/", {"query": "x", "filters": {"user_id": "a", "keywords": {"icontains": "x"}}}, "keywords"),
    ("search/", {"query": "x", "filters": {"user_id": "a", "metadata": {"k": {"ne": 1}}}}, "metadata.k"),
    ("search/", {"query": "x", "filters": {"user_id": "a", "metadata": {"k": None}}}, "metadata.k"),
    ("search/", {"query": "x", "filters": {"user_id": "a"}, "top_k": 10**30}, "top_k"),
    ("search/", {"query": "x", "filters": {"user_id": "a"}, "top_k": True}, "top_k"),
    ("search/", {"query": "x", "filters": {"user_id": "a"}, "threshold": "high"}, "threshold"),
    ("search/", {"query": "", "filters": {"user_id": "a"}}, "query"),
    ("", {"filters": []}, "filters"),
    ("", {"filters": {"user_id": "a", "created_at": "2024-01-01"}}, "created_at"),
    ("", {"filters": {"user_id": "a", "created_at": {"gte": "soon"}}}, "created_at.gte"),
    ("", {"filters": {"user_id": "a", "memory_ids": [1]}}, "memory_ids"),
    ("", [], "the body"),
    ("?page=0", {"filters": {"user_id": "a"}}, "page"),
    ("?page_size=100000", {"filters": {"user_id": "a"}}, "page_size"),
    ("?page=1&size=2", {"filters": {"user_id": "a"}}, "size"),
]
"""Requests that cannot be served: the path, the body, and what the answer names."""


class Api:
    """A client that sends what mem0's clients send."""

    def __init__(self, service: Service, client: httpx.AsyncClient) -> None:
        self.service = service
        self.client = client

    async def send(self, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        """Send a request and return the body of the answer, which has the status."""
        answer = await self.client.request(method, f"/mem0{path}", json=body, **more)
        found = answer.json()
        assert answer.status_code == status, found
        if status >= 400:
            assert found.keys() == {"detail", "error", "reason"} and found["detail"] == found["error"]
        return found

    async def refused(self, reason: str, status: int, method: str, path: str, body: Any = None) -> str:
        """Send a request that is refused; return the message."""
        found = await self.send(method, path, body, status)
        assert found["reason"] == reason, found
        return str(found["detail"])

    async def refused_any(self, status: int, method: str, path: str, body: Any = None) -> str:
        """Send a request that is refused with a status; return the message."""
        return str((await self.send(method, path, body, status))["detail"])

    async def add(self, text: str = NUTS, user: str = LINYUE, **fields: Any) -> str:
        """Add a message, and wait until it is digested. Return the id of the event."""
        messages = [{"role": "user", "content": text}]
        stored = await self.send(
            "POST", "/v3/memories/add/", {"messages": messages, "user_id": user, **fields}
        )
        await settle(self.service, user, passes=False)
        return str(stored["event_id"])

    async def listed(self, *conditions: Any, page: str = "", **fields: Any) -> Any:
        """List the memories of 林月 that fulfil the conditions."""
        filters = {"AND": [{"user_id": LINYUE}, *conditions]}
        return await self.send("POST", f"/v3/memories/{page}", {"filters": filters, **fields})

    async def texts(self, *conditions: Any, **fields: Any) -> list[str]:
        """Return the texts of the memories that are listed."""
        return [one["memory"] for one in (await self.listed(*conditions, **fields))["results"]]


@contextlib.asynccontextmanager
async def api(path: Path, key: str = "anything", **sections: Any) -> AsyncIterator[Api]:
    """The API of a daemon in this process, for a client with a key."""
    async with service_in(path, ScriptedModel(), **sections) as service:
        transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False)
        headers = {
            "Authorization": f"Token {key}",
            "Mem0-User-ID": "0" * 32,
            "X-Mem0-Client": "mem0-python/2.2.1",
        }
        url = "http://127.0.0.1:8420"
        async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as client:
            yield Api(service, client)


async def test_a_memory_is_added_found_corrected_and_deleted(tmp_path: Path) -> None:
    """Every call about one memory answers with the fields that the clients read, for a Chinese id and text too."""
    async with api(tmp_path) as at:
        ping = await at.send("GET", "/v1/ping/")
        assert ping["status"] == "ok" and ping["org_id"] and ping["project_id"] and ping["user_email"] is None
        event = await at.add(
            run_id="r1", app_id="shop", agent_id="bot", metadata={"topic": "food"}, infer=True
        )
        done = await at.send("GET", f"/v1/event/{event}/")
        assert (done["event_type"], done["status"]) == ("ADD", "SUCCEEDED")
        [made] = done["results"]
        assert made["event"] == "ADD"
        body = {"query": "Who is vegetarian?", "filters": {"user_id": LINYUE}, "top_k": 3}
        [found] = (await at.send("POST", "/v3/memories/search/", {**body, "output_format": "v1.1"}))[
            "results"
        ]
        expected = {
            "id": made["id"],
            "memory": NUTS,
            "user_id": LINYUE,
            "agent_id": "bot",
            "app_id": "shop",
            "run_id": "r1",
            "session_id": "r1",
            "metadata": {"topic": "food"},
            "categories": [],
            "created_at": found["created_at"],
            "updated_at": found["created_at"],
        }
        assert found == {**expected, "score": 1.0}
        assert await at.send("GET", f"/v1/memories/{found['id']}/") == expected
        page = await at.send("POST", "/v3/memories/", {"filters": {"user_id": LINYUE}})
        assert page == {"count": 1, "next": None, "previous": None, "results": [expected]}
        change = {"text": HOME, "metadata": {"topic": "home"}, "expiration_date": None}
        changed = await at.send("PUT", f"/v1/memories/{found['id']}/", change)
        assert changed["updated_at"] > expected["created_at"]
        updated = {"updated_at": changed["updated_at"], "metadata": {"topic": "home"}}
        assert changed == {**expected, **updated, "memory": HOME}
        assert await at.texts({"metadata": {"topic": {"eq": "home"}}}, {"app_id": "shop"}) == [HOME]
        await at.send("DELETE", f"/v1/memories/{found['id']}/?delete_linked=true")
        await at.refused("NODE_FORGOTTEN", 404, "GET", f"/v1/memories/{found['id']}/")
        assert (await at.listed())["count"] == 0


@pytest.mark.parametrize(
    "metadata",
    [{}, {"topic": "food"}, {"a": {"b": 1}}, {"a": "x" * 4070}],
    ids=["none", "flat", "nested", "large"],
)
@pytest.mark.parametrize("pii", ["off", "redact"])
async def test_an_update_has_a_time(tmp_path: Path, metadata: dict[str, Any], pii: str) -> None:
    """Every call shows it, and the metadata of the client stays. Metadata without room for it changes without it."""
    has_room = "a" not in metadata
    async with api(tmp_path, memory={"pii": pii}) as at:
        await at.add(metadata=metadata)
        [before] = (await at.listed())["results"]
        path = f"/v1/memories/{before['id']}/"
        for text in ("I am vegan.", "I eat no meat."):
            changed = await at.send("PUT", path, {"text": text})
            assert (changed["memory"], changed["created_at"]) == (text, before["created_at"])
            assert (changed["updated_at"] > before["updated_at"]) == has_room
            before = changed
        assert before["metadata"] == metadata
        assert [await at.send("GET", path)] == (await at.listed())["results"] == [before]
        body = {"query": "meat", "filters": {"user_id": LINYUE}}
        [found] = (await at.send("POST", "/v3/memories/search/", body))["results"]
        assert {**found, "score": None} == {**before, "score": None}
        if "topic" in metadata:
            assert await at.texts({"metadata": {"topic": "food"}}) == ["I eat no meat."]


async def test_text_that_is_not_digested_is_a_memory_too(tmp_path: Path) -> None:
    """A search finds it by the id of its message, which can be read, corrected once it is digested, and deleted."""
    async with service_in(tmp_path / "d", ScriptedModel()) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            at = Api(service, client)
            await at.add()
            message = to_id(LINYUE, "m1")
            assert (await at.send("GET", f"/v1/memories/{message}/"))["memory"] == NUTS
            changed = await at.send("PUT", f"/v1/memories/{message}/", {"text": HOME})
            assert changed["memory"] == HOME and changed["id"] == to_id(LINYUE, "n1")
            await at.add("I like tea.")
            [tea] = [one for one in (await at.listed())["results"] if one["memory"] == "I like tea."]
            message = to_id(LINYUE, "m3")
            await at.send("DELETE", f"/v1/memories/{message}/")
            await at.refused("NODE_FORGOTTEN", 404, "GET", f"/v1/memories/{tea['id']}/")
            await at.refused("NODE_NOT_FOUND", 404, "DELETE", f"/v1/memories/{message}/")


async def test_the_text_of_an_id_is_what_update_and_delete_change(tmp_path: Path) -> None:
    """A passage of several memories is found as one result for each, with the text that `get` returns."""
    family = (
        "I take Prozac every morning. I work at Siemens in Graz. "
        "My daughter Ida has asthma and sees Dr. Weber every week."
    )
    query = {"query": "Who has asthma?", "filters": {"user_id": LINYUE}}
    async with api(tmp_path) as at:

        async def found() -> list[dict[str, Any]]:
            results: list[dict[str, Any]] = (await at.send("POST", "/v3/memories/search/", query))["results"]
            for one in results:
                assert await at.send("GET", f"/v1/memories/{one['id']}/") == {
                    name: value for name, value in one.items() if name != "score"
                }
            return results

        await at.add(family)
        asthma, other = await found()
        assert asthma["memory"] == family[family.index("My") :] and "asthma" not in other["memory"]
        await at.send("PUT", f"/v1/memories/{asthma['id']}/", {"text": "Ida has no asthma."})
        assert {one["memory"] for one in await found()} >= {"Ida has no asthma."}
        assert not any("Weber" in one["memory"] for one in await found())
        assert "Prozac" in (await at.send("GET", f"/v1/memories/{other['id']}/"))["memory"]
        first = (await found())[0]
        assert first["memory"] == "Ida has no asthma."
        await at.send("DELETE", f"/v1/memories/{first['id']}/")
        assert not any("asthma" in one["memory"] for one in await found())
        assert await at.texts() == [family.partition(" My")[0]]


async def test_an_equal_request_is_stored_once_unless_it_was_deleted(tmp_path: Path) -> None:
    """A client may repeat an add on the same day; text that was deleted in between is stored again."""
    async with api(tmp_path) as at:
        first = await at.add(metadata={"a": 1, "b": 2})
        assert await at.add(metadata={"b": 2, "a": 1}) == first
        assert await at.add(metadata={"a": 1}) != first
        for one in (await at.listed())["results"]:
            await at.send("DELETE", f"/v1/memories/{one['id']}/")
        assert await at.add(metadata={"a": 1, "b": 2}) != first
        assert await at.texts() == [NUTS]


async def test_filters_narrow_a_listing_and_a_search(tmp_path: Path) -> None:
    """Run, metadata, times, ids and keywords; pages have counts and links; a listing is newest first."""
    async with api(tmp_path) as at:
        for number in range(5):
            run, metadata = f"r{number % 2}", {"even": number % 2 == 0}
            await at.add(
                f"Boat {number} is blue.", run_id=run, metadata=metadata, timestamp=1_700_000_000 + number
            )
        assert await at.texts({"run_id": "r1"}) == ["Boat 3 is blue.", "Boat 1 is blue."]
        assert await at.texts({"metadata": {"even": False}}) == ["Boat 3 is blue.", "Boat 1 is blue."]
        assert await at.texts({"keywords": {"icontains": "BOAT 2"}}) == ["Boat 2 is blue."]
        times = {"gt": 1_700_000_000, "lte": "2023-11-14T22:13:22Z"}
        assert await at.texts({"created_at": times}) == ["Boat 2 is blue.", "Boat 1 is blue."]
        assert await at.texts(end_date="2023-11-14") == [f"Boat {one} is blue." for one in (4, 3, 2, 1, 0)]
        assert await at.texts(start_date="2023-11-15") == []
        ids = [one["id"] for one in (await at.listed())["results"]]
        wanted = [ids[1], ids[3], OTHER, "unreadable"]
        assert await at.texts({"memory_ids": {"in": wanted}}) == ["Boat 3 is blue.", "Boat 1 is blue."]
        narrowed = (
            {"memory_ids": {"in": wanted}},
            {"metadata": {"even": False}},
            {"keywords": {"icontains": "3"}},
        )
        assert await at.texts(*narrowed) == ["Boat 3 is blue."]
        assert await at.texts({"created_at": {"gte": 10, "lt": 5}}) == []
        page = await at.listed(page="?page=2&page_size=2", fields=["memory"])
        assert [one["memory"] for one in page["results"]] == ["Boat 2 is blue.", "Boat 1 is blue."]
        assert page["count"] == 5 and page["results"][0].keys() == {"id", "memory"}
        assert page["next"] == "http://127.0.0.1:8420/mem0/v3/memories/?page=3&page_size=2"
        assert page["previous"].endswith("?page=1&page_size=2")
        far = await at.listed(page="?page=999999999&page_size=1000")
        assert (far["results"], far["next"], far["count"]) == ([], None, 5)
        for condition, expected in (
            ({"run_id": "r1"}, {1, 3}),
            ({"metadata": {"even": True}}, {0, 2, 4}),
            ({"timestamp": {"gte": 1_700_000_003}}, {3, 4}),
            ({"memory_ids": {"in": wanted}}, {1, 3}),
        ):
            filters = {"AND": [{"user_id": LINYUE}, condition]}
            body = {"query": "Which boat is blue?", "filters": filters, "rerank": True}
            found = (await at.send("POST", "/v3/memories/search/", body))["results"]
            assert {int(one["memory"][5]) for one in found} == expected
        body = {
            "query": "Which boat is blue?",
            "filters": {"user_id": LINYUE},
            "top_k": 2,
            "fields": ["score"],
        }
        best, second = (await at.send("POST", "/v3/memories/search/", body))["results"]
        assert best["score"] == 1.0 and best.keys() == {"id", "score"}
        [only] = (await at.send("POST", "/v3/memories/search/", {**body, "threshold": 1, "top_k": 1}))[
            "results"
        ]
        assert only == best and second["score"] <= 1


async def test_what_cannot_be_served_is_refused_with_its_name(tmp_path: Path) -> None:
    """A wrong type, an unknown option, or a filter that cannot be applied is 400, and nothing is stored or dropped."""
    async with api(tmp_path) as at:
        for path, body, named in REFUSED:
            message = (await at.send("POST", f"/v3/memories/{path}", body, 400))["detail"]
            assert named in message, (path, body, message)
        assert (await at.send("GET", "/v1/entities/"))["count"] == 0


async def test_ids_that_name_nothing_are_not_found(tmp_path: Path) -> None:
    """Unreadable ids, ids of other forms and unknown agents are 404 for every call; other calls are 501 with a name."""
    async with api(tmp_path) as at:
        encoded = to_id("ann", "n1").partition(".")[2]
        unknown = [
            "missing",
            "a%2Fb",
            "%FF",
            "n1",
            "n1.",
            f".{encoded}",
            f"x.{encoded}",
            f"n1.{encoded}=",
            "n1.Li4",
            OTHER,
        ]
        for one in unknown:
            for method, body in (("GET", None), ("PUT", {"text": "x"}), ("DELETE", None)):
                await at.refused_any(404, method, f"/v1/memories/{one}/", body)
            await at.refused_any(404, "GET", f"/v1/event/{one}/")
        for method, path in (
            ("GET", f"/v1/memories/{OTHER}/history/"),
            ("POST", "/v1/feedback/"),
            ("POST", "/v1/exports/"),
            ("GET", "/api/v1/orgs/organizations/ebbtide/projects/ebbtide/"),
            ("GET", "/v1/memories/"),
            ("PATCH", "/v3/memories/add/"),
            ("GET", "/v2/entities/user/ann/profile/"),
        ):
            message = (await at.send(method, path, None if method == "GET" else {}, 501))["detail"]
            assert path in message and method in message


async def test_bodies_that_are_not_json_have_errors_of_the_shape(tmp_path: Path) -> None:
    """Broken JSON, other media types and bodies that are too large are answered in the shape of the API."""
    async with api(tmp_path) as at:
        for content, kind, status in (
            (b"{", "application/json", 400),
            (b'{"query":"\xff"}', "application/json", 400),
            (b"query=x", "application/x-www-form-urlencoded", 415),
            (b"[" * 2_000, "application/json", 400),
            (b" " * (9 << 20), "application/json", 413),
        ):
            answer = await at.client.post(
                "/mem0/v3/memories/search/", content=content, headers={"content-type": kind}
            )
            assert answer.status_code == status and answer.json()["detail"], content[:20]


async def test_many_memories_are_changed_and_deleted(tmp_path: Path) -> None:
    """A batch may be of several users; all possible changes are made, and the first failure is named."""
    async with api(tmp_path) as at:
        for user in ("ann", "bob"):
            await at.add(f"The boat of {user} is blue.", user)
        ids = [to_id(user, "n1") for user in ("ann", "bob")]
        update = [{"memory_id": one, "text": "It is red."} for one in ids]
        assert "2" in (await at.send("PUT", "/v1/batch/", {"memories": update}))["message"]
        broken = [{"memory_id": to_id("ann", "n99"), "text": "x"}, {**update[1], "text": "It is green."}]
        assert "memories[0]" in await at.refused(
            "NODE_NOT_FOUND", 404, "PUT", "/v1/batch/", {"memories": broken}
        )
        texts = [(await at.send("GET", f"/v1/memories/{one}/"))["memory"] for one in ids]
        assert texts == ["It is red.", "It is green."]
        foreign = {"memory_id": "0b7a1c52-1b0e-4b8e-8a55-1c7c1c9d2f10", "text": "x"}
        broken = [{**update[0], "text": "It is white."}, foreign, {**update[1], "text": "It is black."}]
        assert "memories[1]" in await at.refused(
            "NODE_NOT_FOUND", 404, "PUT", "/v1/batch/", {"memories": broken}
        )
        texts = [(await at.send("GET", f"/v1/memories/{one}/"))["memory"] for one in ids]
        assert texts == ["It is white.", "It is black."]
        await at.refused("NODE_NOT_FOUND", 404, "DELETE", "/v1/batch/", {"memories": [{"memory_id": "x"}]})
        await at.send("DELETE", "/v1/batch/", {"memories": [{"memory_id": one} for one in ids]})
        for one in ids:
            await at.refused("NODE_FORGOTTEN", 404, "GET", f"/v1/memories/{one}/")
        for memories in ([], "x", [5], [{"memory_id": 5}], [{"memory_id": ids[0], "x": 1}], [{}] * 1001):
            await at.send("DELETE", "/v1/batch/", {"memories": memories}, 400)


async def test_everything_of_a_run_an_app_or_a_user_is_deleted(tmp_path: Path) -> None:
    """Memories of other runs, apps and users stay; the parameters of a user stay until the user is deleted."""
    async with api(tmp_path) as at:
        for number, fields in enumerate(
            ({"run_id": "r1"}, {"app_id": "shop"}, {"run_id": "r1", "app_id": "shop"}, {})
        ):
            await at.add(f"Boat {number} is blue.", **fields)
        await at.add("Bob's boat is red.", "bob")
        await at.send("DELETE", f"/v1/memories/?user_id={LINYUE}&app_id=shop&run_id=r1")
        assert len(await at.texts()) == 3
        await at.send("DELETE", f"/v1/memories/?user_id={LINYUE}&run_id=r1")
        assert await at.texts() == ["Boat 3 is blue.", "Boat 1 is blue."]
        await at.send("DELETE", f"/v1/memories/?user_id={LINYUE}&app_id=shop")
        assert await at.texts() == ["Boat 3 is blue."]
        await at.send("DELETE", f"/v1/memories/?user_id={LINYUE}")
        assert await at.texts() == []
        found = await at.send("GET", "/v1/entities/")
        named = {one["name"]: (one["type"], one["total_memories"]) for one in found["results"]}
        assert named == {LINYUE: ("user", 0), "bob": ("user", 1)} and found["count"] == 2
        for query in (
            "",
            "?user_id=*",
            "?run_id=r1",
            "?user_id=bob&filters=x",
            "?user_id=bob&user_id=ann",
            "?user_id=",
        ):
            await at.send("DELETE", f"/v1/memories/{query}", status=400)
        await at.send("DELETE", "/v1/memories/?user_id=nobody")
        await at.send("POST", "/v3/memories/add/", {"messages": "I like tea.", "agent_id": "茶"})
        await at.send("DELETE", "/v2/entities/agent/茶/")
        await at.send("DELETE", "/v1/entities/user/bob/")
        await at.refused("AGENT_NOT_FOUND", 404, "DELETE", "/v2/entities/user/bob/")
        for kind, name in (("run", "r1"), ("app", "shop"), ("user", "a%2Fb"), ("user", "agent:x")):
            await at.send("DELETE", f"/v2/entities/{kind}/{name}/", status=400)
        assert [one["name"] for one in (await at.send("GET", "/v1/entities/"))["results"]] == [LINYUE]


async def test_a_key_reaches_its_users_only(tmp_path: Path) -> None:
    """Without a valid key nothing is served; a bound key is refused for other users, and names its own by default."""
    key = new_key(tmp_path, "read", "write", agents=["ann"])
    async with api(tmp_path, key, access=KEYS_ON) as at:
        await tell(at.service, "bob", "Bob's boat is red.")
        for header, reason in (
            (f"Token {key[:-1]}", "INVALID_KEY"),
            ("Token", "MISSING_KEY"),
            ("", "MISSING_KEY"),
        ):
            found = await at.send("GET", "/v1/ping/", status=401, headers={"Authorization": header})
            assert found["reason"] == reason
        await at.send("GET", "/v1/ping/", headers={"Authorization": f"Bearer {key}"})
        for method, path, body in (
            ("POST", "/v3/memories/add/", {"messages": NUTS, "user_id": "bob"}),
            ("POST", "/v3/memories/search/", {"query": "x", "filters": {"user_id": "bob"}}),
            ("POST", "/v3/memories/", {"filters": {"user_id": "bob"}}),
            ("GET", f"/v1/memories/{OTHER}/", None),
            ("PUT", f"/v1/memories/{OTHER}/", {"text": "x"}),
            ("DELETE", f"/v1/memories/{OTHER}/", None),
            ("GET", f"/v1/event/{to_id('bob', 'b1')}/", None),
            ("PUT", "/v1/batch/", {"memories": [{"memory_id": OTHER, "text": "x"}]}),
            ("DELETE", "/v1/batch/", {"memories": [{"memory_id": OTHER}]}),
        ):
            await at.refused("KEY_NOT_FOR_AGENT", 403, method, path, body)
        for path in ("/v1/memories/?user_id=ann", "/v2/entities/user/bob/"):
            await at.refused("SCOPE_MISSING", 403, "DELETE", path)
        await at.send("POST", "/v3/memories/add/", {"messages": NUTS})
        page = await at.send("POST", "/v3/memories/", {"filters": {}})
        assert [(one["memory"], one["user_id"]) for one in page["results"]] == [(NUTS, "ann")]
        assert [one["name"] for one in (await at.send("GET", "/v1/entities/"))["results"]] == ["ann"]


async def test_refusals_have_the_status_that_clients_expect(tmp_path: Path) -> None:
    """A reached quota is 413 instead of 507, and a full queue is 429 with a time to wait."""
    async with api(tmp_path, access={"max_nodes_per_agent": 1}) as at:
        await at.add()
        await at.refused(
            "QUOTA_REACHED", 413, "POST", "/v3/memories/add/", {"messages": HOME, "user_id": LINYUE}
        )
    async with api(tmp_path / "b", access={"agent_requests_per_s": 0.01}) as at:
        answers = [
            await at.client.post(
                "/mem0/v3/memories/search/", json={"query": "x", "filters": {"user_id": "ann"}}
            )
            for _ in range(3)
        ]
        assert answers[-1].status_code == 429 and int(answers[-1].headers["retry-after"]) > 0


async def test_agents_are_created_for_many_small_batches(tmp_path: Path) -> None:
    """An agent that an add creates owes one pass for many tokens; an agent that exists keeps its parameters."""
    async with api(tmp_path) as at:
        await tell(at.service, "bob", "Bob's boat is red.")
        for user in ("ann", "bob"):
            await at.add(user=user)
        found = [(await at.client.get(f"/v1/agents/{user}")).json() for user in ("ann", "bob")]
        assert [one["parameters"]["pass_every_tokens"] for one in found] == [PASS_EVERY_TOKENS, 0]


async def test_two_first_requests_at_once_are_answered(tmp_path: Path) -> None:
    """The npm client sends two pings at once, while the calls are imported."""
    async with api(tmp_path) as at:
        pings = await asyncio.gather(*(at.send("GET", "/v1/ping/") for _ in range(5)))
        assert all(one["status"] == "ok" for one in pings)


async def test_values_of_every_kind_are_stored_and_returned(tmp_path: Path) -> None:
    """Metadata with a number of any size, ids within `filters`, parts of messages, and redacted metadata."""
    async with api(tmp_path, memory={"pii": "redact"}) as at:
        metadata = {"big": 10**30, "deep": {"a": [1, None]}, "mail": "ann@example.com"}
        part = {"type": "text", "text": NUTS}
        body = {
            "messages": {"role": "user", "content": part},
            "filters": {"user_id": "ann"},
            "metadata": metadata,
        }
        await at.send("POST", "/v3/memories/add/", body)
        filters = {"user_id": "ann", "metadata": {"mail": "ann@example.com"}}
        [one] = (await at.send("POST", "/v3/memories/", {"filters": filters}))["results"]
        assert one["memory"] == NUTS and one["metadata"] == {**metadata, "mail": "[email]"}


@pytest.mark.parametrize("agent", ["ann", LINYUE, "agent:bot", "a b", "🦜" * 32])
def test_ids_of_memories_name_their_agent(agent: str) -> None:
    """An id is readable in a path, and leads back to its agent and node."""
    text = to_id(agent, "n12")
    assert from_id(text) == (agent, "n12") and text.isascii() and not set(text) & set("/%=+ ")


@pytest.mark.full
async def test_a_large_body_is_read_in_a_worker_process(tmp_path: Path) -> None:
    """A large body is stored and answered as a small one."""
    # The first large body waits for the imports of a worker process.
    async with api(tmp_path, limits={"text_timeout_ms": 100_000}) as at:
        messages = [{"role": "user", "content": f"Boat {number} is blue. " * 50} for number in range(90)]
        body = {"messages": messages, "user_id": "ann", "metadata": {"a": "b"}, "run_id": "r"}
        first, second = [(await at.send("POST", "/v3/memories/add/", body))["event_id"] for _ in range(2)]
        assert first == second
        filters = {"user_id": "ann", "memory_ids": {"in": ["x" * 300] * 1000}}
        assert (await at.send("POST", "/v3/memories/", {"filters": filters}))["count"] == 0
