"""The daemon without servers, inside the test: every operation on a real store, with a model chosen by the test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ebbtide.daemon import opened
from ebbtide.settings import Settings, load_settings
from ebbtide.store.encryption.keys import master_key_of
from ebbtide.verbs.batches import Flushed, FlushRequest, flush
from ebbtide.verbs.recall import Recalled, RecallRequest, recall
from ebbtide.verbs.remember import Message, Remembered, RememberRequest, remember
from ebbtide.verbs.service import Service
from tests.support.process import check_data_directory

IMPATIENT: dict[str, Any] = {"retry_base_ms": 5, "retry_cap_ms": 20, "max_retries": 0}
"""Short timeouts and retries, so that tests do not wait for failures."""


def settings_for(data_dir: Path, **sections: dict[str, Any]) -> Settings:
    """Return settings with a data directory, and with the test's own values."""
    store = {"data_dir": data_dir, **sections.pop("store", {})}
    language = {**IMPATIENT, **sections.pop("language", {})}
    return load_settings({"store": store, "language": language, **sections})


@contextlib.asynccontextmanager
async def service_in(data_dir: Path, model: Any = None, **sections: dict[str, Any]) -> AsyncIterator[Service]:
    """Run a service for the length of a block; then check every store that it left."""
    options: dict[str, Any] = {} if model is None else {"make": lambda settings, builtin: model}
    settings = settings_for(data_dir, **sections)
    async with opened(settings, **options) as service:
        yield service
    check_data_directory(data_dir, master_key_of(settings.encryption))


async def tell(service: Service, agent: str, *texts: str, **fields: Any) -> Remembered:
    """Remember user messages."""
    messages = [Message(role="user", content=text) for text in texts]
    return await remember(service, RememberRequest(agent_id=agent, messages=messages, **fields))


async def settle(service: Service, agent: str, *, passes: bool = True, timeout_ms: int = 20_000) -> Flushed:
    """Wait until everything is digested and passes are done."""
    return await flush(service, FlushRequest(agent_id=agent, passes=passes, timeout_ms=timeout_ms))


async def ask(service: Service, agent: str, *keywords: str, **fields: Any) -> Recalled:
    """Recall by keywords."""
    return await recall(service, RecallRequest(agent_id=agent, keywords=list(keywords), **fields))
