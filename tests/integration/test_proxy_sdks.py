"""The memory proxy with real clients: `openai`, `openai-agents` and `ollama` of PyPI, `openai` and `ai` of npm.

`make test-integrations` installs them in an environment of their own and runs this.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_proxy import JASMINE, RESPONSE, site
from tests.support.node import node, skip_locally
from tests.support.scripted_upstream import Reply, completion, streamed

SDKS = Path(os.environ.get("EBBTIDE_INTEGRATIONS", "")).absolute() / "sdks"

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        "EBBTIDE_INTEGRATIONS" not in os.environ, reason="`make test-integrations` runs the clients"
    ),
]

USAGE = {"input_tokens": 1, "output_tokens": 1}
CALL = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]

OPENAI = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1/agents/ann/openai/v1", api_key="unused", max_retries=0)
said = [{"role": "user", "content": sys.argv[2]}]
assert client.chat.completions.create(model="m", messages=said).choices[0].message.content == "Noted."
stream = client.chat.completions.create(model="m", messages=said, stream=True)
assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Jasmine tea."
called = client.chat.completions.create(model="m", messages=said).choices[0].message.tool_calls
assert called[0].function.name == "f"
raw = client.responses.with_raw_response.create(model="m", input="Which tea do I drink?")
assert raw.parse().output_text == "The harbour opens at nine."
assert raw.headers["x-ebbtide-memory"].startswith("used")
try:
    client.chat.completions.create(model="m", messages=said)
except openai.NotFoundError as error:
    assert error.request_id == "req-7" and error.code == "model_not_found"
else:
    raise AssertionError
try:
    list(client.chat.completions.create(model="m", messages=said, stream=True))
except Exception as error:
    assert "peer closed" in repr(error) or isinstance(error, openai.APIError), repr(error)
else:
    raise AssertionError
"""

OLLAMA = """
import sys, ollama
client = ollama.Client(host=sys.argv[1] + "/v1/agents/ann/ollama")
said = [{"role": "user", "content": sys.argv[2]}]
assert client.chat(model="m", messages=said).message.content == "Noted."
assert "".join(part.message.content for part in client.chat(model="m", messages=said, stream=True)) == "Jasmine."
try:
    client.chat(model="m", messages=said)
except ollama.ResponseError as error:
    assert (error.status_code, error.error) == (404, "no such model")
else:
    raise AssertionError
"""


AGENTS = """
import asyncio, sys, agents, openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool

agents.set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=sys.argv[1] + "/v1/agents/ann/openai/v1", api_key="unused", max_retries=0)
called = []

@function_tool
def f() -> str:
    "Return the weather."
    called.append(1)
    return "rain"

async def main():
    chat = Agent(name="a", model=OpenAIChatCompletionsModel(model="m", openai_client=client), tools=[f])
    assert (await Runner.run(chat, sys.argv[2])).final_output == "Noted." and called == [1]
    streamed = Runner.run_streamed(chat, "Which tea do I drink?")
    texts = [event.data.delta async for event in streamed.stream_events()
             if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
    assert "".join(texts) == "Jasmine tea.", texts
    answer = Agent(name="a", model=OpenAIResponsesModel(model="m", openai_client=client))
    assert (await Runner.run(answer, "Which tea do I drink?")).final_output == "The harbour opens at nine."
    try:
        await Runner.run(chat, sys.argv[2])
    except openai.NotFoundError as error:
        assert error.request_id == "req-7" and error.code == "model_not_found"
    else:
        raise AssertionError

asyncio.run(main())
"""

NODE_OPENAI = """
import assert from "node:assert/strict";
import OpenAI from "openai";

const [url, said] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1/agents/ann/openai/v1", apiKey: "unused", maxRetries: 0 });
const messages = [{ role: "user", content: said }];
const whole = await client.chat.completions.create({ model: "m", messages });
assert.equal(whole.choices[0].message.content, "Noted.");
let text = "";
for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true }))
  text += chunk.choices[0]?.delta.content ?? "";
assert.equal(text, "Jasmine tea.");
const call = await client.chat.completions.create({ model: "m", messages });
assert.equal(call.choices[0].message.tool_calls[0].function.name, "f");
const asked = client.responses.create({ model: "m", input: "Which tea do I drink?" });
const { data, response } = await asked.withResponse();
assert.equal(data.output_text, "The harbour opens at nine.");
assert.match(response.headers.get("x-ebbtide-memory"), /^used/);
await assert.rejects(client.chat.completions.create({ model: "m", messages }), (error) =>
  error instanceof OpenAI.NotFoundError && error.requestID === "req-7" && error.code === "model_not_found");
const half = await client.chat.completions.create({ model: "m", messages, stream: true });
await assert.rejects(async () => { for await (const _ of half); });
"""

NODE_AI = """
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, isStepCount, jsonSchema, streamText, tool } from "ai";

const [url, said] = process.argv.slice(2);
const model = createOpenAICompatible({ name: "e", baseURL: url + "/v1/agents/ann/openai/v1" })("m");
const common = { model, maxRetries: 0 };
assert.equal((await generateText({ ...common, prompt: said })).text, "Noted.");
const stream = streamText({ ...common, prompt: "Which tea do I drink?" });
let text = "";
for await (const part of stream.textStream) text += part;
assert.equal(text, "Jasmine tea.");
let calls = 0;
const f = tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => `rain ${++calls}` });
const used = await generateText({ ...common, prompt: said, tools: { f }, stopWhen: isStepCount(2) });
assert.equal(used.text, "The harbour opens at nine.");
assert.equal(calls, 1);
await assert.rejects(generateText({ ...common, prompt: said }), (error) =>
  APICallError.isInstance(error) && error.statusCode === 404 && error.responseHeaders["x-request-id"] === "req-7");
const failed = [];
const half = streamText({ ...common, prompt: said, onError: ({ error }) => failed.push(error) });
try { for await (const _ of half.textStream); } catch (error) { failed.push(error); }
assert(failed.length > 0 && failed.every(APICallError.isInstance), failed);
"""

NODE_PROVIDER = """
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";

const [url, said] = process.argv.slice(2);
const model = createOpenAI({ baseURL: url + "/v1/agents/ann/openai/v1", apiKey: "unused" })("gpt-5");
const common = { model, maxRetries: 0, instructions: "Be brief." };
assert.equal((await generateText({ ...common, prompt: said })).text, "The harbour opens at nine.");
const stream = streamText({ ...common, prompt: "Which tea do I drink?" });
let text = "";
for await (const part of stream.textStream) text += part;
assert.equal(text, "Jasmine tea.");
const f = tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => "rain" });
const used = await generateText({ ...common, prompt: "Which tea do I drink?", tools: { f }, stopWhen: isStepCount(2) });
assert.equal(used.text, "The harbour opens at nine.");
"""

NOT_FOUND = Reply(
    (b'{"error": {"message": "no", "type": "t", "param": null, "code": "model_not_found"}}',),
    status=404,
    headers={"content-type": "application/json", "x-request-id": "req-7"},
)


def response() -> Reply:
    """Return an answer of the Responses API with the fields that clients need."""
    body = {"id": "r1", "object": "response", "created_at": 1, "model": "m", **RESPONSE}
    body["output"] = [{"id": "m1", "role": "assistant", "status": "completed", **RESPONSE["output"][1]}]
    return Reply((json.dumps(body).encode(),))


def answered(item: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the Responses API with one item and all that the provider of the AI SDK needs."""
    head = {"id": "r2", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**head, "output": [{**item, "status": "completed"}], "usage": USAGE}


def spoken(*texts: str) -> dict[str, Any]:
    """Return a message of the Responses API."""
    said = {"type": "output_text", "text": "".join(texts), "annotations": []}
    return {"type": "message", "id": "m1", "role": "assistant", "content": [said]}


def streamed_response(*texts: str) -> Reply:
    """Return an answer of the Responses API as a stream."""
    whole = answered(spoken(*texts))
    began = {**spoken(), "status": "in_progress", "content": []}
    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    items: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": began},
        *({"type": "response.output_text.delta", **place, "delta": text} for text in texts),
        {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
        {"type": "response.completed", "response": whole},
    ]
    parts = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in items)
    return Reply(tuple(parts), headers={"content-type": "text/event-stream"})


def broken() -> Reply:
    """Return a stream that breaks off."""
    half = streamed("Half")
    return Reply(half.parts[:-2], headers=half.headers, breaks_after=True)


async def run(script: str, url: str, folder: Path | None = None) -> None:
    """Run a script in the environment of the packages, of npm if there is a folder; it asserts what it gets."""
    if folder is None:
        command = [str(SDKS / "bin" / "python"), "-c", script]
    else:
        executable = node()
        if executable is None:
            skip_locally("Node is not installed")
        (folder / "node_modules").symlink_to(SDKS / "node_modules")
        (folder / "client.mjs").write_text(script, encoding="utf-8")
        command = [str(executable), str(folder / "client.mjs")]
    arguments = [*command, url.rstrip("/"), JASMINE]
    done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("client", ["pypi", "npm"])
async def test_the_openai_package(tmp_path: Path, client: str) -> None:
    """Chats, streams, tool calls, Responses, errors and a broken stream are as without a proxy."""
    async with site(tmp_path) as at:
        at.upstream.replies += [
            completion("Noted."),
            streamed("Jasmine ", "tea."),
            completion("", "tool_calls", tool_calls=CALL),
            response(),
            NOT_FOUND,
            broken(),
        ]
        script, folder = (OPENAI, None) if client == "pypi" else (NODE_OPENAI, tmp_path)
        await run(script, str(at.client.base_url), folder)
        assert "jasmine" in await at.remembered()


async def test_the_agents_of_openai(tmp_path: Path) -> None:
    """An agent uses its tools, streams, gets memories, and gets the errors of the model server."""
    async with site(tmp_path) as at:
        at.upstream.replies += [
            completion("", "tool_calls", tool_calls=CALL),
            completion("Noted."),
            streamed("Jasmine ", "tea."),
            response(),
            NOT_FOUND,
        ]
        await run(AGENTS, str(at.client.base_url))
        assert "jasmine" in await at.remembered()
        assert JASMINE in at.upstream.requests[2].json["messages"][0]["content"]
        assert JASMINE in at.upstream.requests[3].json["instructions"]


async def test_the_ai_sdk(tmp_path: Path) -> None:
    """Texts, streams, rounds of tools, errors and a broken stream are as without a proxy."""
    async with site(tmp_path) as at:
        at.upstream.replies += [
            completion("Noted."),
            streamed("Jasmine ", "tea."),
            completion("", "tool_calls", tool_calls=CALL),
            completion("The harbour opens at nine."),
            NOT_FOUND,
            broken(),
        ]
        await run(NODE_AI, str(at.client.base_url), tmp_path)
        assert "jasmine" in await at.remembered()
        assert JASMINE in at.upstream.requests[1].json["messages"][0]["content"]


async def test_the_openai_provider_of_the_ai_sdk(tmp_path: Path) -> None:
    """Its default is the Responses API: texts, streams and rounds of tools, with memories in the instructions."""
    async with site(tmp_path) as at:
        harbour = answered(spoken("The harbour opens at nine."))
        call = answered(
            {"type": "function_call", "id": "f1", "call_id": "c1", "name": "f", "arguments": "{}"}
        )
        whole = [Reply((json.dumps(one).encode(),)) for one in (harbour, call, harbour)]
        at.upstream.replies += [whole[0], streamed_response("Jasmine ", "tea."), *whole[1:]]
        await run(NODE_PROVIDER, str(at.client.base_url), tmp_path)
        assert "jasmine" in await at.remembered()
        first, *others = at.upstream.requests
        assert first.target == "/v1/responses" and "instructions" not in first.json
        for sent in others:
            assert JASMINE in sent.json["instructions"]


async def test_the_ollama_package(tmp_path: Path) -> None:
    """Chats, streams and errors are as without a proxy."""

    def line(text: str, done: bool) -> bytes:
        message = {"role": "assistant", "content": text}
        return json.dumps({"model": "m", "message": message, "done": done}).encode() + b"\n"

    async with site(tmp_path) as at:
        at.upstream.replies += [
            Reply((line("Noted.", True),)),
            Reply(
                (line("Jas", False), line("mine.", True)), headers={"content-type": "application/x-ndjson"}
            ),
            Reply((b'{"error":"no such model"}',), status=404),
        ]
        await run(OLLAMA, str(at.client.base_url))
        assert "jasmine" in await at.remembered()
