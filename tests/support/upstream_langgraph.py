"""A pytest plugin that lets the tests of `langgraph-checkpoint-sqlite` run on Ebbtide's stores.

It takes the place of `langgraph.store.sqlite`: a store opened there is one of an agent of its own, on the daemon at
EBBTIDE_URL. It runs in the environment of the frameworks, so it imports nothing of this project but the client.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import pytest

from ebbtide_client import AsyncClient, Client
from ebbtide_client.integrations.langgraph import AsyncEbbtideStore, EbbtideStore

NOT_OURS = {
    "vector_store_initialization": "the configuration of embeddings",
    "vector_update_with_embedding": "likeness of letters, by which the embeddings of the tests score",
    "vector_search_with_filters": "likeness of letters",
    "embed_with_path": "scores of each field alone",
    "test_scores": "likeness of letters",
    "migrations": "SQL",
    "glob": "SQL",
    "namespace_match_pattern": "SQL",
    "indexable": "SQL",
    "sql_injection_vulnerability": "SQL: it expects an error for a name that SQL cannot quote",
    "hyphens_and_digits": "names with dots, which SQLite reads as paths; other stores of LangGraph do not",
    "numeric_filter_safety": "infinite numbers, which JSON does not have",
}
"""Parts of the names of tests that do not concern Ebbtide, and what they are about."""


class Store(EbbtideStore):
    """A store that the tests open by the name of a database."""

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(cls, _: str, **options: Any) -> Iterator[Store]:
        with Client() as client:
            yield cls(client, f"lg-{uuid.uuid4().hex}", **options)

    def setup(self) -> None:
        """Nothing has to be set up."""


class AsyncStore(AsyncEbbtideStore):
    """The same for an event loop."""

    @classmethod
    @contextlib.asynccontextmanager
    async def from_conn_string(cls, _: str, **options: Any) -> AsyncIterator[AsyncStore]:
        async with AsyncClient() as client:
            yield cls(client, f"lg-{uuid.uuid4().hex}", **options)

    async def setup(self) -> None:
        """Nothing has to be set up."""


def _stand_in() -> None:
    package, base = ModuleType("langgraph.store.sqlite"), ModuleType("langgraph.store.sqlite.base")
    package.SqliteStore, package.AsyncSqliteStore = Store, AsyncStore  # type: ignore[attr-defined]
    for name in (
        *("NS_MATCH_FUNCTION", "BaseSqliteStore", "SqliteIndexConfig"),
        *("_escape_glob_literal", "_namespace_match_pattern"),
    ):
        setattr(base, name, dict)
    sys.modules |= {package.__name__: package, base.__name__: base}


_stand_in()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that do not concern Ebbtide."""
    left_out = [one for one in items if any(part in one.name for part in NOT_OURS)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [one for one in items if one not in left_out]
