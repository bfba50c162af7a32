"""Chat models served by Ollama, through its own interface.

Its OpenAI-compatible interface ignores the context size. Properties of Ollama that matter here:

* `options.num_ctx` belongs to every request. A change makes Ollama reload the model, so it increases in few fixed
  steps and never decreases.
* Ollama drops the front of a prompt that does not fit and still returns 200. So the estimate before the request
  decides, and the context size with which `/api/ps` says the model was loaded.
* `think: false` disables reasoning. If a server rejects the field, it is omitted.
"""

from __future__ import annotations

from typing import Any

from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.chat import ServerChat, ServerOptions
from ebbtide.language.served.client import CHECK_TIMEOUT_S, OllamaClient
from ebbtide.language.served.connection import RequestRejected
from ebbtide.language.served.model import Overflow, Overlong
from ebbtide.language.served.prompts import Prompt, without_bounds

STEPS = (4096, 8192, 16384, 32768, 65536, 131072)
"""Context sizes that are requested."""


class OllamaChat(ServerChat, OllamaClient):
    """A client of one model on one Ollama server."""

    ways = ("schema", "plain schema", "json", "nothing")
    optional = ("think",)

    def __init__(self, options: ServerOptions) -> None:
        super().__init__(options)
        self._num_ctx = min(STEPS[0], options.num_ctx)
        self._loaded_ctx: int | None = None
        """The step for which Ollama has been seen to hold the model loaded."""
        self._knows_model = False

    async def _chat(self, prompt: Prompt, json_format: str) -> str:
        needed = self._needed(prompt)
        self._num_ctx = self._step_for(needed)
        answer = await self._post("/api/chat", self._request(prompt, json_format))
        message = answer.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            raise self._unexpected_answer("a message")
        prompt_tokens, reply_tokens = answer.get("prompt_eval_count"), answer.get("eval_count")
        self._count(prompt, prompt_tokens, reply_tokens)
        await self._check_loaded(needed)
        is_full = (
            isinstance(prompt_tokens, int)
            and isinstance(reply_tokens, int)
            and prompt_tokens + reply_tokens >= self._num_ctx
        )
        if is_full:
            raise Overflow
        if answer.get("done_reason") == "length":
            raise Overlong("the reply was cut off")
        return content

    def _request(self, prompt: Prompt, json_format: str) -> dict[str, Any]:
        temperature, seed = self._sampling(prompt)
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "stream": False,
            "think": False,
            "keep_alive": _keep_alive(self.options.keep_alive),
            "options": {
                "num_ctx": self._num_ctx,
                "num_predict": prompt.reply_tokens,
                "temperature": temperature,
                "seed": seed,
            },
        }
        forms = {"schema": prompt.schema, "plain schema": without_bounds(prompt.schema), "json": "json"}
        if json_format in forms:
            request["format"] = forms[json_format]
        return request

    def _step_for(self, needed: int) -> int:
        fitting = next((step for step in STEPS if step >= needed), self._window)
        return min(self._window, max(self._num_ctx, fitting))

    async def _learn_model(self) -> None:
        """Once: check that the model exists, and read its context window."""
        if self._knows_model:
            return
        try:
            answer = await self._http.post("/api/show", {"model": self.name})
        except RequestRejected as rejection:
            if rejection.status == 404 and "not found" in rejection.body and "model" in rejection.body:
                raise self._missing() from None
            # A server with the chat interface only. Its context window is found out from responses.
            self._knows_model = True
            return
        info = answer.get("model_info")
        if isinstance(info, dict):
            made_for = info.get(f"{info.get('general.architecture')}.context_length")
            self._serves(made_for)
        self._knows_model = True

    async def _check_loaded(self, needed: int) -> None:
        """After a change of the context size: check how the model was really loaded."""
        if self._loaded_ctx == self._num_ctx:
            return
        try:
            models = (await self._http.get("/api/ps", timeout_s=CHECK_TIMEOUT_S)).get("models")
        except (ModelUnavailable, RequestRejected, BadReply):
            return
        for model in models if isinstance(models, list) else []:
            if isinstance(model, dict) and self._is_named(model):
                self._loaded_ctx = self._num_ctx
                self._serves(model.get("context_length"))
        if needed > self._window:
            # The front of the prompt may have been dropped, so the reply is useless.
            raise Overflow

    def _serves(self, context: Any) -> None:
        if isinstance(context, int) and not isinstance(context, bool) and 0 < context < self._window:
            if context < self._num_ctx:
                self._num_ctx = self._loaded_ctx = context
            self._window = context

    def _missing(self) -> ModelUnavailable:
        self._knows_model = False
        return super()._missing()

    def _handle_rejection(self, rejection: RequestRejected) -> None:
        if rejection.status == 404:
            # Without such a message the URL is wrong.
            is_ollama = "model" in rejection.body and "not found" in rejection.body
            raise (
                self._missing()
                if is_ollama
                else self._unexpected_answer("/api/chat; check that it is Ollama")
            )
        if rejection.status not in (400, 422):
            raise BadReply(f"the server rejected the prompt (HTTP {rejection.status})")


def _keep_alive(value: str) -> str | int:
    return int(value) if value.lstrip("-").isdigit() else value
