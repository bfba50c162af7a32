"""A fake that speaks OpenAI's wire format like real servers: /v1/chat/completions, models, embeddings.

Options set the accepted ways to request JSON, the refused parameters, the error for a prompt that is too long, and
the reported context: the dialects of llama.cpp, llama-cpp-python, vLLM and OpenAI.
"""

from __future__ import annotations

import json
from typing import Any

from ebbtide.language.tokens import estimate
from tests.support.fake_model_server import Answer, FakeModelServer, Reaction, Request, sensible_reply
from tests.support.fake_ollama import vector_of

EVERY_WAY = frozenset({"json_schema", "bounds", "json_object with schema", "json_object"})


class FakeOpenAI(FakeModelServer):
    """A server with some models."""

    def __init__(self, models: tuple[str, ...] = ("qwen2.5:7b",), *, context: int = 32768) -> None:
        super().__init__(models)
        self.context = context
        self.tells_context = True
        self.takes = set(EVERY_WAY)
        """The supported ways to request JSON."""
        self.refuses_with = 400
        self.refuses_words: set[str] = set()
        self.api_key = ""
        self.owned_by = "someone"
        self.vector_size = 8
        self.embeds_most_tokens = 512
        """Maximum of real tokens of a text for the embedding model."""
        self.embeds_most_texts = 2048

    async def answered(self, request: Request) -> Answer | Reaction:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return self._error(401, "invalid_api_key", "Incorrect API key provided")
        match request.path:
            case "/v1/models":
                return 200, {"object": "list", "data": [self._listed(name) for name in self.models]}
            case "/v1/embeddings":
                return await self._embed(request.body)
            case "/v1/chat/completions":
                return await self._chat(request.body)
        return 404, {"detail": "Not Found"}

    def _listed(self, name: str) -> dict[str, Any]:
        listed: dict[str, Any] = {"id": name, "object": "model", "owned_by": self.owned_by}
        return {**listed, "max_model_len": self.context} if self.tells_context else listed

    def _error(self, status: int, code: str, message: str) -> Answer:
        return status, {"error": {"message": message, "type": "invalid_request_error", "code": code}}

    @property
    def embeds(self) -> list[Any]:
        """Return the bodies of all embedding requests so far."""
        return [r.body for r in self.requests if r.path == "/v1/embeddings"]

    async def _embed(self, body: dict[str, Any]) -> Answer | Reaction:
        if body["model"] not in self.models:
            return self._error(404, "model_not_found", f"The model `{body['model']}` does not exist")
        reaction = await self.reacting(body)
        if reaction.body is not None or reaction.cut_at is not None:
            return reaction
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if len(texts) > self.embeds_most_texts:
            message = f"batch size {len(texts)} > maximum allowed batch size {self.embeds_most_texts}"
            return self._error(422, "Validation", message)
        if max(map(estimate, texts)) // 2 > self.embeds_most_tokens:
            message = "input is too large to process. increase the physical batch size"
            return self._error(400, "invalid_request_error", message)
        size = body.get("dimensions", self.vector_size)
        data = [
            {"object": "embedding", "index": index, "embedding": vector_of(text, size)}
            for index, text in enumerate(texts)
        ]
        # The index, not the order, assigns vectors to texts.
        answer = {"object": "list", "data": data[::-1], "model": body["model"]}
        return 200, {**answer, **reaction.fields}

    async def _chat(self, body: dict[str, Any]) -> Answer | Reaction:
        assert body["stream"] is False
        if body["model"] not in self.models:
            return self._error(404, "model_not_found", f"The model `{body['model']}` does not exist")
        for word in sorted(self.refuses_words & body.keys()):
            instead = " Use 'max_completion_tokens' instead." if word == "max_tokens" else ""
            return self._error(400, "unsupported_parameter", f"Unsupported parameter: '{word}'.{instead}")
        if not self._takes(body.get("response_format")):
            return self._error(self.refuses_with, "bad_format", "response_format is not supported")
        prompt = sum(estimate(m["content"]) for m in body["messages"]) // 2
        if prompt > self.context:
            message = f"This model's maximum context length is {self.context} tokens, not {prompt}"
            return self._error(400, "context_length_exceeded", message)
        reaction = await self.reacting(body)
        if reaction.body is not None:
            return reaction
        content = reaction.content
        if content is None:
            content = json.dumps(sensible_reply(body), ensure_ascii=False)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": prompt, "completion_tokens": estimate(content) // 2}
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}
        whole = json.dumps({**answer, **reaction.fields}, ensure_ascii=False).encode()
        return Reaction(body=whole, status=reaction.status, headers=reaction.headers, cut_at=reaction.cut_at)

    def _takes(self, form: dict[str, Any] | None) -> bool:
        if form is None:
            return True
        if form["type"] == "json_schema":
            has_bounds = "maxLength" in json.dumps(form)
            return "json_schema" in self.takes and ("bounds" in self.takes or not has_bounds)
        return ("json_object with schema" if "schema" in form else "json_object") in self.takes
