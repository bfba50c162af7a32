"""The common part of the clients of chat models and embedders: connection, circuit breaker, availability check."""

from __future__ import annotations

import time
from typing import Any

from ebbtide.language.port import BadReply, ModelState, ModelUnavailable
from ebbtide.language.served.breaker import Breaker, BreakerPolicy
from ebbtide.language.served.connection import HttpConnection, RequestRejected

CHECK_TIMEOUT_S = 2.0
CHECK_CACHE_S = 3.0
"""Timeout of an availability check, and how long its result is cached."""


class ServerClient:
    """A client of one model on one server, behind a circuit breaker."""

    kind = ""
    reports_last_error = False
    """Whether the state of an available server includes its last error."""

    def __init__(
        self,
        name: str,
        base_url: str,
        breaker: BreakerPolicy,
        *,
        timeout_s: float,
        api_key: str,
        connections: int,
    ) -> None:
        self.name = name
        self.breaker = Breaker(breaker)
        self._http = HttpConnection(base_url, timeout_s=timeout_s, api_key=api_key, connections=connections)
        self._checked: tuple[float, ModelState] | None = None

    async def state(self) -> ModelState:
        """Return whether the server is available and has the model. The check is cached for a few seconds."""
        if not self.breaker.is_closed:
            return ModelState(self.kind, self.name, False, self.breaker.last_error)
        if self._checked is not None and time.monotonic() - self._checked[0] < CHECK_CACHE_S:
            return self._checked[1]
        try:
            await self._check_server()
        except ModelUnavailable as error:
            state = ModelState(self.kind, self.name, False, str(error))
        else:
            detail = self.breaker.last_error if self.reports_last_error else ""
            state = ModelState(self.kind, self.name, True, detail)
        self._checked = (time.monotonic(), state)
        return state

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._http.close()

    async def _check_server(self) -> None:
        """Raise ModelUnavailable if the server is unavailable or lacks the model."""
        raise NotImplementedError

    def _missing(self) -> ModelUnavailable:
        raise NotImplementedError

    async def _list_models(self, path: str, member: str) -> list[dict[str, Any]]:
        """Return the list of models from the server."""
        try:
            models = (await self._http.get(path, timeout_s=CHECK_TIMEOUT_S)).get(member)
        except (RequestRejected, BadReply):
            raise self._unexpected_answer("a list of models") from None
        if not isinstance(models, list):
            raise self._unexpected_answer("a list of models")
        return [model for model in models if isinstance(model, dict)]

    def _unexpected_answer(self, what: str) -> ModelUnavailable:
        """Return the error for a response outside the protocol: it is not the expected server."""
        return ModelUnavailable(f"the model server {self._http.base_url} sent a response without {what}")


class OllamaClient(ServerClient):
    """A client of one model on Ollama."""

    kind = "ollama"

    async def _check_server(self) -> None:
        models = await self._list_models("/api/tags", "models")
        if not any(self._is_named(model) for model in models):
            raise self._missing()

    def _is_named(self, model: dict[str, Any]) -> bool:
        """Return whether an entry of a list is the model of this client; `:latest` is the default tag."""
        return tagged(str(model.get("model") or model.get("name"))) == tagged(self.name)

    def _missing(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"model {self.name} is not on the server {self._http.base_url}; pull it with: ollama pull {self.name}"
        )


class OpenAIClient(ServerClient):
    """A client of one model on a server with OpenAI's interface."""

    kind = "openai"
    max_other_names = 0
    """Names in the server's list up to which the model is assumed to be there under another name."""
    _has_answered = False

    async def _check_server(self) -> None:
        models = await self._list_models("/v1/models", "data")
        if self._has_answered or any(model.get("owned_by") == "llamacpp" for model in models):
            # It has replied under this name. Some servers accept any name for their only model.
            return
        names = {name for model in models for name in (model.get("id"), *_aliases(model)) if name}
        if len(names) > self.max_other_names and self.name not in names:
            raise self._missing()

    def _missing(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"model {self.name} is not on the server {self._http.base_url}; GET /v1/models lists the models it has"
        )


def tagged(name: str) -> str:
    """Return a name of a model on Ollama with its tag."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _aliases(model: dict[str, Any]) -> list[Any]:
    aliases = model.get("aliases")
    return aliases if isinstance(aliases, list) else []
