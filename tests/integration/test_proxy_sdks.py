"""The memory proxy with the real packages `openai` and `ollama`, in an environment of their own.

They are larger than what they test, so they are no dependency. To run these tests:

    python -m venv sdks && sdks/bin/pip install openai ollama
    EBBTIDE_SDKS_PYTHON=sdks/bin/python .venv/bin/python -m pytest tests/integration/test_proxy_sdks.py
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.contract.test_proxy import JASMINE, RESPONSE, site
from tests.support.scripted_upstream import Reply, completion, streamed

PYTHON = os.environ.get("EBBTIDE_SDKS_PYTHON", "")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not PYTHON, reason="set EBBTIDE_SDKS_PYTHON to a Python with openai and ollama"),
]

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


async def run(script: str, url: str) -> None:
    """Run a script in the environment of the packages; it asserts what it gets."""
    arguments = [PYTHON, "-c", script, url.rstrip("/"), JASMINE]
    done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


async def test_the_openai_package(tmp_path: Path) -> None:
    """Chats, streams, tool calls, Responses, errors and a broken stream are as without a proxy."""
    error = {"error": {"message": "no", "type": "t", "param": None, "code": "model_not_found"}}
    broken = streamed("Half")
    response = {"id": "r1", "object": "response", "created_at": 1, "model": "m", **RESPONSE}
    response["output"] = [{"id": "m1", "role": "assistant", "status": "completed", **RESPONSE["output"][1]}]
    async with site(tmp_path) as at:
        at.upstream.replies += [
            completion("Noted."),
            streamed("Jasmine ", "tea."),
            completion("", "tool_calls", tool_calls=CALL),
            Reply((json.dumps(response).encode(),)),
            Reply(
                (json.dumps(error).encode(),),
                status=404,
                headers={"content-type": "application/json", "x-request-id": "req-7"},
            ),
            Reply(broken.parts[:-2], headers=broken.headers, breaks_after=True),
        ]
        await run(OPENAI, str(at.client.base_url))
        assert "jasmine" in await at.remembered()


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
