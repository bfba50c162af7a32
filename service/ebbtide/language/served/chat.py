"""Common code of the chat clients: circuit breaker, context window, retries.

The token estimate is corrected upwards by the server's counts. A repeated request uses another temperature and seed,
because at temperature 0 it would get the same unusable reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ebbtide.errors import InvalidRequest, Unavailable
from ebbtide.language.port import BadReply, attempt
from ebbtide.language.served.breaker import BreakerPolicy
from ebbtide.language.served.client import ServerClient
from ebbtide.language.served.connection import RequestRejected, ServerError
from ebbtide.language.served.formats import FormatLadder
from ebbtide.language.served.model import Overflow
from ebbtide.language.served.parsing import object_of
from ebbtide.language.served.prompts import Prompt
from ebbtide.offload.pool import INLINE, TextWorkers

TEMPERATURE_STEP = 0.3
"""Added to the temperature for every repetition of a request."""

MAX_CORRECTION = 3.0
"""Upper limit of the correction of the token estimate."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Settings of a model server, except its kind."""

    base_url: str
    model_name: str
    api_key: str = field(default="", repr=False)
    timeout_s: float = 300.0
    num_ctx: int = 8192
    temperature: float = 0.0
    seed: int = 0
    keep_alive: str = "30m"
    connections: int = 8
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    texts: TextWorkers = field(default=INLINE, repr=False)
    """Workers that parse long replies."""


@dataclass(slots=True)
class Usage:
    """Tokens as counted by the server since the start."""

    prompt_tokens: int = 0
    reply_tokens: int = 0
    requests: int = 0


class ServerChat(ServerClient):
    """A client of one model server, behind a circuit breaker."""

    reports_last_error = True
    ways: tuple[str, ...] = ("nothing",)
    """Ways of requesting JSON, best first."""
    optional: tuple[str, ...] = ()
    """Request fields that are omitted if the server rejects them."""

    def __init__(self, options: ServerOptions) -> None:
        super().__init__(
            options.model_name,
            options.base_url,
            options.breaker,
            timeout_s=options.timeout_s,
            api_key=options.api_key,
            connections=options.connections,
        )
        self.options = options
        self.usage = Usage()
        self._ladder: FormatLadder[str] = FormatLadder(self.ways)
        self._unsupported_fields: set[str] = set()
        self._correction = 1.0
        self._window = options.num_ctx
        self._tries = count(1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options!r})"

    async def window(self) -> int:
        """Return the context window in tokens of our own estimate."""
        return int(self._window / self._correction)

    async def ask(self, prompt: Prompt) -> dict[str, Any]:
        """Send the prompt and return the JSON object of the reply."""
        self._must_fit(prompt)
        with self.breaker.passing():
            return await self._complete(prompt)

    # --- specific to each kind of server --------------------------------------------------------------

    async def _learn_model(self) -> None:
        """Once: read the properties of the model, above all its context window."""
        raise NotImplementedError

    async def _chat(self, prompt: Prompt, json_format: str) -> str:
        """Send the prompt in this format and return the model's text. Raise RequestRejected for a 4xx response."""
        raise NotImplementedError

    def _handle_rejection(self, rejection: RequestRejected) -> None:
        """Raise the error that a rejection means, unless the format may have been rejected."""
        raise NotImplementedError

    # --- common to all kinds of servers ----------------------------------------------------------------

    async def _complete(self, prompt: Prompt) -> dict[str, Any]:
        await self._learn_model()
        self._must_fit(prompt)
        failed_formats: list[str] = []
        last: Exception | None = None
        for json_format in self._ladder.candidates():
            try:
                reply = await self._chat(prompt, json_format)
            except RequestRejected as rejection:
                self._handle_rejection(rejection)
                failed_formats.append(json_format)
                last = BadReply(f"the server rejected the prompt (HTTP {rejection.status})")
            except ServerError as error:
                if self._ladder.has_worked(json_format):
                    raise
                failed_formats.append(json_format)
                last = error
            else:
                self._ladder.record_success(json_format, failed_formats, isinstance(last, ServerError))
                return await self._read(json_format, reply, prompt)
        assert last is not None
        raise last

    async def _read(self, json_format: str, reply: str, prompt: Prompt) -> dict[str, Any]:
        """Return the object in a reply, and record whether the format yields JSON."""
        try:
            found = await self.options.texts.run(len(reply), object_of, reply, prompt.key)
        except BadReply as error:
            self._ladder.read(json_format, is_json="not JSON" not in str(error))
            raise
        except (InvalidRequest, Unavailable) as error:
            raise BadReply(f"the reply cannot be parsed: {error.reason}") from None
        self._ladder.read(json_format, is_json=True)
        return found

    async def _post(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a POST request, repeated without each optional field that the server rejects by name."""
        while True:
            try:
                return await self._http.post(
                    path,
                    {word: value for word, value in request.items() if word not in self._unsupported_fields},
                )
            except RequestRejected as rejection:
                refused = [
                    w for w in self.optional if w in rejection.body and w not in self._unsupported_fields
                ]
                if rejection.status not in (400, 422) or not refused:
                    raise
                self._unsupported_fields.add(refused[0])

    def _must_fit(self, prompt: Prompt) -> None:
        if self._needed(prompt) > self._window:
            raise Overflow

    def _needed(self, prompt: Prompt) -> int:
        return int(prompt.prompt_tokens * self._correction) + prompt.reply_tokens

    def _sampling(self, prompt: Prompt) -> tuple[float, int]:
        """Return the temperature and seed of this attempt. Statements are copied, so they need no temperature."""
        options, again = self.options, attempt.get()
        temperature = 0.0 if prompt.task == "extract" else options.temperature
        if again == 0:
            return temperature, options.seed
        return min(1.5, temperature + TEMPERATURE_STEP * again), options.seed + next(self._tries)

    def _count(self, prompt: Prompt, prompt_tokens: Any, reply_tokens: Any) -> None:
        self.usage.requests += 1
        if isinstance(prompt_tokens, int) and not isinstance(prompt_tokens, bool) and prompt_tokens > 0:
            self.usage.prompt_tokens += prompt_tokens
            ratio = prompt_tokens / prompt.prompt_tokens
            self._correction = min(MAX_CORRECTION, max(self._correction, ratio))
        if isinstance(reply_tokens, int) and not isinstance(reply_tokens, bool) and reply_tokens > 0:
            self.usage.reply_tokens += reply_tokens
