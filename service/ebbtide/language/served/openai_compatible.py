"""Chat models behind OpenAI's interface: llama.cpp, vLLM, LM Studio, OpenAI and others.

The servers share the path and little else. The supported JSON format is found out (`formats.py`), optional fields that
a server rejects are omitted, and the context window is read from `/v1/models` if present, and from error messages.
"""

from __future__ import annotations

import re
from typing import Any

from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.chat import ServerChat, ServerOptions
from ebbtide.language.served.client import OpenAIClient
from ebbtide.language.served.connection import RequestRejected
from ebbtide.language.served.model import Overflow, Overlong
from ebbtide.language.served.prompts import Prompt, without_bounds

CONTEXT_FIELDS = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "context_window")
"""Fields with the context window: llama.cpp, vLLM, LM Studio, OpenRouter, Groq."""

MIN_WINDOW = 1024

_TOO_LONG = re.compile(
    r"context|exceeds?\b.{0,200}\btokens|too many tokens|maximum.{0,200}length", re.IGNORECASE | re.DOTALL
)
_SERVED = re.compile(r"(?:\"n_ctx\"\s{0,8}:\s{0,8}|context (?:length|size|window)[^\d]{1,20})(\d{3,8})")


class OpenAICompatibleChat(ServerChat, OpenAIClient):
    """A client of one model on one server."""

    ways = ("json_schema", "plain json_schema", "json_object with schema", "json_object", "nothing")
    optional = ("chat_template_kwargs", "seed", "temperature")

    def __init__(self, options: ServerOptions) -> None:
        super().__init__(options)
        self._length_word = "max_tokens"
        self._knows_model = False

    async def _chat(self, prompt: Prompt, json_format: str) -> str:
        try:
            answer = await self._post("/v1/chat/completions", self._request(prompt, json_format))
        except RequestRejected as rejection:
            if self._length_word not in rejection.body or "max_completion_tokens" not in rejection.body:
                raise
            self._length_word = "max_completion_tokens"
            answer = await self._post("/v1/chat/completions", self._request(prompt, json_format))
        usage = answer.get("usage")
        if isinstance(usage, dict):
            self._count(prompt, usage.get("prompt_tokens"), usage.get("completion_tokens"))
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise self._unexpected_answer("choices")
        self._has_answered = True
        if choice.get("finish_reason") == "length":
            raise Overlong("the reply was cut off")
        return _content(message.get("content"))

    def _request(self, prompt: Prompt, json_format: str) -> dict[str, Any]:
        temperature, seed = self._sampling(prompt)
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "stream": False,
            self._length_word: prompt.reply_tokens,
            "temperature": temperature,
            "seed": seed,
            "chat_template_kwargs": {"enable_thinking": False},
        }
        response_format = _response_format(prompt, json_format)
        if response_format:
            request["response_format"] = response_format
        return request

    def _handle_rejection(self, rejection: RequestRejected) -> None:
        if rejection.status == 404:
            raise (
                self._missing()
                if "model" in rejection.body.lower()
                else self._unexpected_answer("/v1/chat/completions")
            )
        if rejection.status == 413:
            self._window = max(MIN_WINDOW, self._window // 2)
            raise Overflow
        if rejection.status not in (400, 422):
            raise BadReply(f"the server rejected the prompt (HTTP {rejection.status})")
        if _TOO_LONG.search(rejection.body):
            found = _SERVED.search(rejection.body)
            served = int(found[1]) if found else self._window // 2
            self._window = max(MIN_WINDOW, min(served, self._window))
            raise Overflow

    async def _learn_model(self) -> None:
        """Once: read the context window that the server reports."""
        if self._knows_model:
            return
        try:
            models = await self._list_models("/v1/models", "data")
        except ModelUnavailable:
            # The prompt itself shows whether the server is available, and some servers have no such list.
            return
        self._knows_model = True
        for model in models:
            if model.get("id") == self.name or len(models) == 1:
                meta = model.get("meta")
                info = {**(meta if isinstance(meta, dict) else {}), **model}
                sizes = [info[field] for field in CONTEXT_FIELDS if isinstance(info.get(field), int)]
                self._window = min([self._window, *(size for size in sizes if size > 0)])


def _response_format(prompt: Prompt, json_format: str) -> dict[str, Any] | None:
    if json_format in ("json_schema", "plain json_schema"):
        schema = prompt.schema if json_format == "json_schema" else without_bounds(prompt.schema)
        return {
            "type": "json_schema",
            "json_schema": {"name": prompt.task, "strict": True, "schema": schema},
        }
    if json_format == "json_object with schema":
        return {"type": "json_object", "schema": without_bounds(prompt.schema)}
    return {"type": "json_object"} if json_format == "json_object" else None


def _content(content: Any) -> str:
    """Return the text of a message, also if it comes in parts. Raise BadReply if it is missing."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is None:
        raise BadReply("the reply is empty")
    if not isinstance(content, str):
        raise BadReply("the reply is not a string")
    return content
