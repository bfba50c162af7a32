"""Authentication without a transport: a caller that was never admitted has no access; grants are exact."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.access.authentication import Authentication
from ebbtide.access.grants import ANYONE, Reach, granting
from ebbtide.access.key_file import KeyFile
from ebbtide.access.keyring import Keyring
from ebbtide.access.rates import MAX_BUCKETS
from ebbtide.access.requirements import SCOPES, UNLISTED, Needs, Requirement
from ebbtide.clock import SystemClock
from ebbtide.errors import EbbtideError, Forbidden, Unauthenticated
from ebbtide.settings import AccessSettings
from ebbtide.verbs.catalogue import REQUIREMENTS
from tests.support.keys import bearer, id_of, new_key

requirements = st.sampled_from([*(required for _, required in REQUIREMENTS.values()), UNLISTED])
names = st.text("ab-", min_size=1, max_size=3)


def authentication(data_dir: Path) -> Authentication:
    """Return an authentication that requires keys."""
    keyring = Keyring(KeyFile(data_dir))
    keyring.load()
    return Authentication(AccessSettings(authentication="keys"), keyring, SystemClock())


def test_unauthenticated_callers_have_no_access(tmp_path: Path) -> None:
    """With authentication enabled, a transport that skips it gets access to the health checks only."""
    access = authentication(tmp_path)
    for name, (_, required) in REQUIREMENTS.items():
        if required.needs is Needs.NOTHING:
            access.permit(ANYONE, required, None)
            continue
        with pytest.raises(Unauthenticated) as refused:
            access.permit(ANYONE, required, "ann")
        assert refused.value.reason == "MISSING_KEY", name


def test_a_caller_is_known_by_the_id_of_its_key(tmp_path: Path) -> None:
    """A caller has the id of its key and that key's grant."""
    key = new_key(tmp_path, "read", agents=["ann"])
    caller = authentication(tmp_path).admit(list(bearer(key).values()), "127.0.0.1")
    assert caller.key_id == id_of(key)
    assert caller.grant == granting(["read"], Reach(frozenset({"ann"})))


@given(
    requirements,
    st.sets(st.sampled_from(SCOPES)),
    st.frozensets(names, max_size=2),
    st.lists(names, max_size=2),
    st.booleans(),
    st.one_of(st.none(), names),
)
def test_a_grant_allows_exactly_its_scopes_and_reach(
    required: Requirement,
    scopes: set[str],
    agents: frozenset[str],
    prefixes: list[str],
    is_everywhere: bool,
    agent: str | None,
) -> None:
    """An operation is permitted if and only if the grant has one of its scopes and its agent is within reach."""
    within = is_everywhere or (
        agent is not None and (agent in agents or any(map(agent.startswith, prefixes)))
    )
    has_scope = bool(scopes & set(required.scopes))
    expected = {
        Needs.NOTHING: True,
        Needs.KEY: True,
        Needs.SCOPE: has_scope,
        Needs.AGENT: has_scope and within,
        Needs.EVERY_AGENT: has_scope and is_everywhere,
    }[required.needs]
    grant = granting(scopes, Reach(agents, tuple(prefixes), is_everywhere))
    if expected:
        grant.refuse_beyond(required, agent)
        return
    with pytest.raises(Forbidden) as refused:
        grant.refuse_beyond(required, agent)
    assert refused.value.reason == ("KEY_NOT_FOR_AGENT" if has_scope else "SCOPE_MISSING")


def test_attempts_are_counted_per_address_by_default(tmp_path: Path) -> None:
    """By default an address runs out of attempts, another one has its own, and a valid key passes."""
    good = list(bearer(new_key(tmp_path, "read")).values())
    access = authentication(tmp_path)

    def tried(address: str) -> str:
        with pytest.raises(EbbtideError) as refused:
            access.admit(["Bearer letmein"], address)
        return refused.value.reason

    reasons = [tried("192.0.2.7") for _ in range(200)]
    assert reasons[0] == "INVALID_KEY" and "RATE_LIMITED_TRIES" in reasons
    assert tried("192.0.2.8") == "INVALID_KEY"
    assert access.admit(good, "192.0.2.7").key_id


def test_remembered_addresses_are_bounded(tmp_path: Path) -> None:
    """The number of remembered addresses is bounded."""
    access = authentication(tmp_path)
    for number in range(MAX_BUCKETS + 100):
        with pytest.raises(Unauthenticated):
            access.admit([], str(IPv4Address(number)))
    assert len(access._by_remote) == MAX_BUCKETS
