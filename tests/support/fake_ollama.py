"""A fake that speaks Ollama's wire format: /api/chat, /api/tags, /api/ps, /api/show, /api/embed, no streaming.

It copies Ollama's difficult behaviour: it cuts off the front of a prompt that exceeds the context and still answers
with 200; the context never exceeds the model's maximum; a change of `num_ctx` reloads the model.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ebbtide.language.tokens import estimate
from tests.support.fake_model_server import Answer, FakeModelServer, Reaction, Request, sensible_reply


class FakeOllama(FakeModelServer):
    """An Ollama with some models."""

    def __init__(self, models: tuple[str, ...] = ("qwen2.5:7b",), *, made_for: int = 32768) -> None:
        super().__init__(models)
        self.made_for = made_for
        self.serves = made_for
        """The effective context: smaller than the model's maximum if the operator configured that."""
        self.tells_context = True
        self.tokens_per_guess = 0.5
        """Real tokens for each token that the client estimates."""
        self.refuses_formats: set[str] = set()
        """`schema` or `json`, for old versions."""
        self.refuses_think = False
        self.vector_size = 8
        self.embeds_most_tokens = 512
        """Maximum of real tokens of a text for the embedding model."""
        self.breaks_over: str | None = None
        """A substring that makes the embedding model fail, each time."""
        self.loaded: dict[str, int] = {}
        self.loads = 0
        self.truncations = 0

    async def answered(self, request: Request) -> Answer | Reaction:
        match request.path:
            case "/api/tags":
                return 200, {"models": [{"name": name, "model": name, "size": 1} for name in self.models]}
            case "/api/ps":
                return 200, {"models": [self._running(*item) for item in self.loaded.items()]}
            case "/api/show":
                if request.body["model"] not in self.models:
                    return self._not_found(request.body["model"])
                info = {"general.architecture": "qwen2", "qwen2.context_length": self.made_for}
                return 200, {"model_info": info, "capabilities": ["completion"]}
            case "/api/embed":
                return await self._embed(request.body)
            case "/api/chat":
                return await self._chat(request.body)
        return 404, b"404 page not found"

    def _running(self, name: str, context: int) -> dict[str, Any]:
        running: dict[str, Any] = {"name": name, "model": name}
        return {**running, "context_length": context} if self.tells_context else running

    def _not_found(self, name: str) -> Answer:
        return 404, {"error": f"model '{name}' not found"}

    @property
    def embeds(self) -> list[Any]:
        """Return the bodies of all embedding requests so far."""
        return [r.body for r in self.requests if r.path == "/api/embed"]

    async def _embed(self, body: dict[str, Any]) -> Answer | Reaction:
        if _tagged(body["model"]) not in map(_tagged, self.models):
            return self._not_found(body["model"])
        reaction = await self.reacting(body)
        if reaction.body is not None or reaction.cut_at is not None:
            return reaction
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if self.breaks_over is not None and any(self.breaks_over in text for text in texts):
            return 500, {"error": "do embedding request: EOF"}
        if max(map(estimate, texts)) * self.tokens_per_guess > self.embeds_most_tokens:
            # With truncation enabled it would cut the text and answer without an error.
            assert body.get("truncate") is False
            return 400, {"error": "the input length exceeds the context length"}
        vectors = [vector_of(text, body.get("dimensions", self.vector_size)) for text in texts]
        return 200, {"model": body["model"], "embeddings": vectors, "total_duration": 1, **reaction.fields}

    async def _chat(self, body: dict[str, Any]) -> Answer | Reaction:
        assert body["stream"] is False
        if body["model"] not in self.models:
            return self._not_found(body["model"])
        if self.refuses_think and "think" in body:
            return 400, {"error": f'"{body["model"]}" does not support thinking'}
        form = body.get("format")
        if ("schema" if isinstance(form, dict) else form) in self.refuses_formats:
            return 400, {"error": "invalid format"}
        context = min(body["options"]["num_ctx"], self.serves)
        if self.loaded.get(body["model"]) != context:
            self.loaded[body["model"]] = context
            self.loads += 1
        prompt = sum(estimate(m["content"]) for m in body["messages"])
        tokens = int(prompt * self.tokens_per_guess)
        reaction = await self.reacting(body)
        if reaction.body is not None:
            return reaction
        if tokens > context:
            self.truncations += 1
            # The front with the instructions was cut off, but the model still answers.
            content, tokens = '{"segments": [{"messages": [0], "text": "cut off"}]}', context // 2
        elif reaction.content is not None:
            content = reaction.content
        else:
            content = json.dumps(sensible_reply(body), ensure_ascii=False)
        answer = {
            "model": body["model"],
            "created_at": "2026-11-01T00:00:00Z",
            "message": {"role": "assistant", "content": content},
            "done": True,
            "done_reason": "stop",
            "total_duration": 1,
            "prompt_eval_count": tokens,
            "eval_count": int(estimate(content) * self.tokens_per_guess),
        }
        whole = json.dumps({**answer, **reaction.fields}, ensure_ascii=False).encode()
        return Reaction(body=whole, status=reaction.status, headers=reaction.headers, cut_at=reaction.cut_at)


def vector_of(text: str, size: int) -> list[float]:
    """Return numbers that are equal for equal texts only. Their length is not 1."""
    whole = hashlib.shake_256(text.encode()).digest(size)
    return [(byte - 127.5) / 64 for byte in whole]


def _tagged(name: str) -> str:
    return name if ":" in name else f"{name}:latest"
