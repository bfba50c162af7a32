"""Make the client of a model server from the settings."""

from __future__ import annotations

from ebbtide.language.served.breaker import BreakerPolicy
from ebbtide.language.served.chat import ServerChat, ServerOptions
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.ollama import OllamaChat
from ebbtide.language.served.openai_compatible import OpenAICompatibleChat
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.settings import LanguageSettings

KINDS: dict[str, type[ServerChat]] = {"ollama": OllamaChat, "openai": OpenAICompatibleChat}

DEFAULT_URLS = {"ollama": "http://127.0.0.1:11434", "openai": "http://127.0.0.1:8080"}


def server_options(language: LanguageSettings, texts: TextWorkers = INLINE) -> ServerOptions:
    """Return the options of a server from the settings. A trailing `/v1` or `/api` is removed from the URL."""
    base_url = (language.base_url or DEFAULT_URLS[language.model]).rstrip("/")
    base_url = base_url.removesuffix("/v1" if language.model == "openai" else "/api")
    return ServerOptions(
        base_url=base_url,
        model_name=language.model_name,
        api_key=language.api_key.get_secret_value(),
        timeout_s=language.model_timeout_ms / 1000,
        num_ctx=language.num_ctx,
        temperature=language.temperature,
        seed=language.seed,
        keep_alive=language.keep_alive,
        # One more, so that an availability check never waits for a call.
        connections=language.model_concurrency + 1,
        breaker=BreakerPolicy(
            language.breaker_failures, language.breaker_open_ms / 1000, language.breaker_cap_ms / 1000
        ),
        texts=texts,
    )


def server_model(language: LanguageSettings, texts: TextWorkers = INLINE) -> ServedModel:
    """Return the configured model on its server. No request is sent yet."""
    return ServedModel(KINDS[language.model](server_options(language, texts)))
