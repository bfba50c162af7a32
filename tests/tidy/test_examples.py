"""The examples on the pages are the daemon's responses, apart from times and text cut off at `…`."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.rest.app import create_app
from tests.support.forks import run_command
from tests.support.in_process import service_in
from tests.support.process import Daemon
from tests.tidy.pages import read, rows

ANN = "/v1/agents/ann"
LATER = (
    {
        "speaker": "Ann",
        "content": "On Friday Tom visits me in Lisbon. We will take the tram to the old town.",
    },
    {"speaker": "林月", "content": "我五月搬到了青岛，住在海边。"},
)
"""The messages after the example of remember and before the other examples."""

EVE = (
    "My sister Clara plays the cello in an orchestra in Porto, and she practises every morning.",
    "Clara came for tea.",
    "The concert of the orchestra is on Saturday evening.",
)
"""The batches behind "What it looks like" in docs/memory-model.md."""

CHANGING = ("accepted_at", "digested_at", "chunk_id", "score")
"""Fields with times, and with hashes and scores that the page shortens."""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new daemon without agents."""
    async with service_in(tmp_path / "data") as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


def example(request: str) -> tuple[str, Any]:
    """Return the request body and the response as JSON of the example that begins with a request line."""
    pattern = rf"```http\n{re.escape(request)}\n(.*?)\n?HTTP/1\.1 [^\n]*\n(?:[A-Z][\w-]*: [^\n]*\n)*(.*?)```"
    found = re.search(pattern, read("docs/api.md"), re.DOTALL)
    assert found is not None, request
    return found[1].strip(), json.loads(found[2])


async def live_through(client: httpx.AsyncClient) -> None:
    """Send the messages that come before the examples of docs/api.md."""
    await client.put(ANN, json={"focus_limit": 3})
    body, _ = example(f"POST {ANN}/remember")
    for batch in (json.loads(body), *({"messages": [{"role": "user", **said}]} for said in LATER)):
        assert (await client.post(f"{ANN}/remember", json=batch)).status_code == 202
        await client.post(f"{ANN}/flush", json={"passes": True, "vectors": True})


def fixed(answer: Any) -> Any:
    """Return a response without the fields that change."""
    if isinstance(answer, list):
        return [fixed(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    return {name: fixed(value) for name, value in answer.items() if name not in CHANGING}


async def test_answers_on_the_page_are_those_of_the_daemon(client: httpx.AsyncClient) -> None:
    """Recalls, search, node, entities, links, batch and deletion return what docs/api.md shows."""
    await live_through(client)
    for path in ("/nodes/n1", "/links?page_size=2", "/batches/b1", "/entities?page_size=1"):
        _, shown = example(f"GET {ANN}{path}")
        assert fixed((await client.get(ANN + path)).json()) == fixed(shown)
    question = '{"query": "Where did Ann move?", "citations": true, "max_results": 1}'
    for request in (f"POST {ANN}/recall", f"POST {ANN}/recall\n{question}", f"POST {ANN}/search"):
        route, _, given = request.partition("\n")
        body, shown = example(request)
        answer = await client.post(route.partition(" ")[2], json=json.loads(given or body))
        assert fixed(answer.json()) == fixed(shown)
    _, shown = example(f"DELETE {ANN}/nodes/n1")
    assert (await client.delete(f"{ANN}/nodes/n1")).json() == shown


async def test_recall_as_text_is_that_of_the_daemon(client: httpx.AsyncClient) -> None:
    """The recall shown as text is the daemon's, byte for byte."""
    await live_through(client)
    found = re.search(r"X-Unembedded-Messages: 0\n\n(.*?)\n```", read("docs/api.md"), re.DOTALL)
    assert found is not None
    cue = {"keywords": ["lisbon", "青岛"]}
    answer = await client.post(f"{ANN}/recall", json=cue, headers={"accept": "text/plain"})
    assert answer.text == found[1]


async def test_errors_on_the_page_are_those_of_the_daemon(client: httpx.AsyncClient) -> None:
    """The refusals shown in docs/api.md and docs/errors.md are the daemon's."""
    await live_through(client)
    for request in (f"POST {ANN}/recall\n" + '{"depth": 9}', f"POST {ANN}/batches/b1/retry"):
        _, shown = example(request)
        line, _, body = request.partition("\n")
        given = await client.post(line.partition(" ")[2], json=json.loads(body or "{}") or None)
        assert given.json() == shown
    in_errors = re.search(r"```json\n(.*?)```", read("docs/errors.md"), re.DOTALL)
    assert in_errors is not None
    assert (await client.post(f"{ANN}/recall", json={"depth": 9})).json() == json.loads(in_errors[1])


async def test_a_memory_fades_as_documented(client: httpx.AsyncClient) -> None:
    """The first memory of docs/memory-model.md shrinks pass by pass as in its table, and leaves its trace."""
    await client.put("/v1/agents/eve", json={"focus_limit": 1, "decay_rate": 0.5, "long_term_factor": 0})
    for text in EVE:
        await client.post("/v1/agents/eve/remember", json={"messages": [{"role": "user", "content": text}]})
        await client.post("/v1/agents/eve/flush", json={"passes": True})
    table = rows(read("docs/memory-model.md"), "## What it looks like")
    told = {int(number): content for number, _, content in table if number.isdigit()}
    assert table[0][2] == EVE[0]
    last = max(told)
    for number in range(len(EVE), last + 1):
        if number > len(EVE):
            await client.post("/v1/agents/eve/compress", json={"passes": 1})
            await client.post("/v1/agents/eve/flush", json={"passes": True})
        node = (await client.get("/v1/agents/eve/nodes/n1")).json()
        if number == last:
            assert node["error"]["reason"] == "NODE_FORGOTTEN"
        elif number in told:
            assert node["content"] == told[number]
    assert f'"{EVE[0]}"' in read("README.md")
    assert all(f'"{told[number]}"' in read("README.md") for number in (5, 6))
    text = (await client.post("/v1/agents/eve/recall", json={"keywords": ["Clara"]})).json()["text"]
    assert text.rpartition("\n---\n")[2] in read("docs/memory-model.md")
    _, shown = example("GET /v1/agents/eve/nodes/n1")
    assert (await client.get("/v1/agents/eve/nodes/n1")).json() == shown


def holds(shown: Any, given: Any) -> bool:
    """Return whether a response is as shown, apart from times, scores and what is cut off."""
    if isinstance(shown, dict):
        compared = {name for name in shown if name not in (*CHANGING, "since", "until")}
        return all(name in given and holds(shown[name], given[name]) for name in compared)
    if isinstance(shown, list):
        return len(shown) == len(given) and all(map(holds, shown, given))
    return bool(undated(shown) == undated(given)) if isinstance(shown, str) else bool(shown == given)


async def test_statements_on_the_page_are_those_of_the_daemon(client: httpx.AsyncClient) -> None:
    """The life of a statement in docs/api.md, from its creation to its retraction, is what the daemon returns."""
    home = {"subject": "user", "topic": "residence", "object": "Lisbon", "content": "I live in Lisbon."}
    await client.post(f"{ANN}/statements", json=home)
    section = (
        read("docs/api.md")
        .partition("\n## Statements\n")[2]
        .partition("\n### GET /v1/agents/{agent_id}/conflicts")[0]
    )
    pattern = r"```http\n(\w+) (\S+)\n(.*?)\n?HTTP/1\.1 (\d+) [^\n]*\n(.*?)```"
    found = re.findall(pattern, section, re.DOTALL)
    about = [one for one in found if "/statements" in one[1] or one[1].endswith("/profile")]
    assert len(about) == 8
    # The profile and the search come after the retraction on the page.
    about.sort(key=lambda one: one[0] == "PATCH" or "/retract" in one[1])
    for method, path, body, status, shown in about:
        await client.post(f"{ANN}/flush", json={"vectors": True, "timeout_ms": 30_000})
        answer = await client.request(method, path, json=json.loads(body) if body.strip() else None)
        assert answer.status_code == int(status), (path, answer.text)
        expected = json.loads(re.sub(r",?\s*…", "", shown))
        assert holds(expected, answer.json()), (method, path, expected, answer.json())


def commands(page: str) -> list[tuple[list[str], str]]:
    """Return the commands of a page that its fenced blocks show after `$ ebbtide`, each with its output."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL):
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = shown.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "ebbtide", command
            found.append((arguments, output))
    return found


def undated(text: str) -> str:
    """Return a text without the dates in it."""
    return re.sub(r"\b\d{4}-\d\d-\d\d\b", "DATE", text)


@pytest.mark.timeout(300)
def test_commands_on_the_page_print_what_it_shows(daemon: Daemon) -> None:
    """Each command of docs/knowledge.md, in order, prints what the page shows, apart from dates and `…`."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("EBBTIDE_")}
    shown = commands("docs/knowledge.md")
    assert len(shown) >= 10
    for arguments, output in shown:
        done = run_command(*arguments, env={**environment, "EBBTIDE_URL": daemon.url})
        assert done.returncode == 0, (arguments, done.stderr)
        if output != "…\n":
            assert undated(done.stdout + done.stderr) == undated(output), arguments
