"""A chat through the memory proxy of a daemon, over the API of the model server that the daemon has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TextIO
from urllib.parse import quote

import httpx

from ebbtide.cli.console import one_line, without_controls
from ebbtide.cli.exit_codes import ExitCode, of_error
from ebbtide.cli.failures import Failure

TIMEOUT_S = 600.0

APIS = (("openai/v1", "models", "data", "id"), ("ollama", "api/tags", "models", "name"))
"""The path of each API, the path of its list of models, and their place in it."""

NO_PROXY = "The daemon has no model server for its memory proxy."
HOW_TO = (
    "Install Ollama (https://ollama.com), run `ollama pull qwen2.5:3b`, and start the daemon with "
    """EBBTIDE_PROXY__UPSTREAMS='{"ollama": {"url": "http://127.0.0.1:11434"}}'. """
    "For other servers see docs/proxy.md."
)


@dataclass(slots=True)
class ProxyChat:
    """A conversation, which the client sends in whole with each message."""

    client: httpx.Client
    base: str
    """The address of the API for the agent."""
    model: str
    messages: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def found(cls, client: httpx.Client, url: str, agent: str, model: str) -> Self:
        """Return a chat with a model, by default the first of the server. Raise a Failure without any."""
        for path, listing, name, key in APIS:
            base = f"{url.rstrip('/')}/v1/agents/{quote(agent, safe='')}/{path}"
            try:
                response = client.get(f"{base}/{listing}")
            except httpx.HTTPError as error:
                raise Failure(
                    f"The daemon does not answer: {type(error).__name__}.", ExitCode.UNAVAILABLE
                ) from None
            if response.status_code == 404:
                continue
            if response.status_code != 200 and not model:
                raise _failure(response)
            models = _models(response, name, key)
            if model or models:
                return cls(client, base, model or models[0])
            raise Failure("The model server has no model.", ExitCode.UNAVAILABLE, hint=HOW_TO)
        raise Failure(NO_PROXY, ExitCode.REFUSED, hint=HOW_TO)

    def send(self, text: str, output: TextIO) -> str:
        """Send a message and write the answer as it arrives. Return what the memory added.

        Raise a Failure if there is no whole answer. The message is then no part of the chat.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        is_ollama = self.base.endswith("/ollama")
        path = "api/chat" if is_ollama else "chat/completions"
        body = {"model": self.model, "messages": messages, "stream": True}
        said = []
        try:
            with self.client.stream("POST", f"{self.base}/{path}", json=body) as response:
                if response.status_code != 200:
                    response.read()
                    raise _failure(response)
                for piece in _pieces(response, is_ollama=is_ollama):
                    said.append(piece)
                    output.write(without_controls(piece))
                    output.flush()
                memory = one_line(without_controls(response.headers.get("x-ebbtide-memory", "none")))
        except httpx.HTTPError as error:
            raise Failure(f"The answer broke off: {type(error).__name__}.", ExitCode.UNAVAILABLE) from None
        output.write("\n")
        output.flush()
        self.messages = [*messages, {"role": "assistant", "content": "".join(said)}]
        return memory


def _pieces(response: httpx.Response, *, is_ollama: bool) -> Iterator[str]:
    """Yield the text of an answer as it arrives."""
    for line in response.iter_lines():
        data = line if is_ollama else line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if not data.strip() or data == "[DONE]":
            continue
        try:
            chunk = json.loads(data)
            said = chunk["message"] if is_ollama else (chunk["choices"] or [{"delta": {}}])[0]["delta"]
            content = said.get("content")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise Failure("The model server sent no chat.", ExitCode.UNAVAILABLE) from None
        if isinstance(content, str):
            yield content


def _models(response: httpx.Response, name: str, key: str) -> list[str]:
    try:
        return [str(one[key]) for one in response.json()[name]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _failure(response: httpx.Response) -> Failure:
    """Return the failure for an error of the proxy or of the model server."""
    try:
        error: Any = response.json()["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        error = f"The model server answered with HTTP {response.status_code}."
    if isinstance(error, dict):
        message, reason = str(error.get("message", "")), str(error.get("code", ""))
    else:
        message, reason = str(error), ""
    status = response.status_code
    code = ExitCode.UNAVAILABLE if status == 502 else of_error(reason, status)
    return Failure(without_controls(message), code, reason=reason)
