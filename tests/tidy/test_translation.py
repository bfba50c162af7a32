"""One complete table translates the errors of lmdb."""

from __future__ import annotations

import lmdb

from ebbtide.errors import FAMILIES, REASONS
from ebbtide.store.translation import TRANSLATION

FOREIGN = {
    name: kind
    for name, kind in vars(lmdb).items()
    if isinstance(kind, type) and issubclass(kind, lmdb.Error) and kind is not lmdb.Error
}


def test_every_error_of_lmdb_is_translated() -> None:
    """Every error of lmdb has a family and a reason; a release with a new error fails here."""
    assert sorted(FOREIGN.keys() - TRANSLATION.keys()) == []


def test_translations_fit_together() -> None:
    """Each translation names a family of the tree and a reason of that family."""
    for name, (family, reason) in TRANSLATION.items():
        assert FAMILIES[family.__name__] is family, name
        assert REASONS[reason].family == family.__name__, name
