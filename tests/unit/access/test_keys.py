"""The format of keys: a written key is read back, and no other text is a key."""

from __future__ import annotations

import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from ebbtide.access.keys import ID_ALPHABET, Key, hash_of, new_id, new_secret, parsed, presented, written

ids = st.text(ID_ALPHABET, min_size=12, max_size=12)
secrets = st.binary(min_size=32, max_size=32).map(bytes.hex)
anything = st.one_of(st.text(), st.from_regex(r"ebb_[a-z0-9_]*_[0-9a-f]*", fullmatch=True))


@given(ids, secrets)
def test_written_keys_are_parsed(key_id: str, secret: str) -> None:
    """Every key is parsed into its id and its secret, alone or after Bearer in any case."""
    key = written(key_id, secret)
    assert parsed(key) == (key_id, secret)
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert presented([f"{scheme} {key}"]) == key


@given(anything)
@example("")
@example("ebb_" + "a" * 12 + "_" + "0" * 64 + "\n")
@example("ebb_" + "a" * 12 + "_" + "٠" * 64)
@example("EBB_" + "a" * 12 + "_" + "0" * 64)
def test_keys_have_one_format(text: str) -> None:
    """Any text is either no key, or exactly the text that its parsed parts produce: there is one format."""
    found = parsed(text)
    assert found is None or written(*found) == text


@given(st.lists(st.text(), max_size=3))
def test_any_header_is_accepted_or_ignored(values: list[str]) -> None:
    """Any `Authorization` header yields no key, or a text without white space; two headers never yield one."""
    found = presented(values)
    assert found is None or not any(c.isspace() for c in found)
    assert len(values) < 2 or found == ""
    assert values or found is None


def test_new_keys_differ_and_have_the_form() -> None:
    """Ids and secrets never repeat, and a secret has 256 random bits."""
    made = [(new_id(), new_secret()) for _ in range(200)]
    assert len({key_id for key_id, _ in made}) == len({secret for _, secret in made}) == 200
    assert [parsed(written(*one)) for one in made] == made
    assert {len(bytes.fromhex(secret)) for _, secret in made} == {32}


def test_only_the_hash_is_stored_and_only_the_id_shown() -> None:
    """A key stores only the SHA-256 of its secret, and `repr` shows only the id."""
    secret = new_secret()
    key = Key(id="a" * 12, name="n", secret_sha256=hash_of(secret), scopes=("read",), created_at_ms=1)
    assert key.secret_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert key.has_secret(secret)
    assert not key.has_secret(new_secret()) and not key.has_secret("")
    assert repr(key) == str(key) == f"Key({'a' * 12!r})"


def test_a_key_is_valid_until_revoked_or_expired() -> None:
    """A key is invalid from the millisecond of its expiry on; a revoked one is always invalid."""
    key = Key(id="a" * 12, name="", secret_sha256="", scopes=("read",), created_at_ms=1, expires_at_ms=10)
    assert key.counts_at(9) and not key.counts_at(10)
    revoked = Key(id="a" * 12, name="", secret_sha256="", scopes=("read",), created_at_ms=1, revoked_at_ms=5)
    assert not revoked.counts_at(4) and not revoked.counts_at(6)
