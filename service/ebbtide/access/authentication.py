"""Authentication and authorisation of every request, over each transport.

`admit` finds out who the caller is, before anything of the request is read. `permit` checks that the caller may do this
with this agent, before anything is looked up, so that an error does not reveal what exists. Each step counts against a
rate limit: `admit` against that of the key, `permit` against that of the agent. A caller without a valid key counts
against the limit of its address. Streams call `permit_still` repeatedly.

With authentication off, every caller is ANYONE and may do everything. The rate limit of agents still applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.access.grants import ANYONE, Caller
from ebbtide.access.keyring import Keyring
from ebbtide.access.keys import presented
from ebbtide.access.rates import Buckets, RateLimits, remote_of
from ebbtide.access.requirements import Needs, Requirement
from ebbtide.access.shared_rates import SharedLimits
from ebbtide.clock import Clock
from ebbtide.errors import Exhausted, Unauthenticated
from ebbtide.settings import AccessSettings


class Authentication:
    """Authenticates and authorises callers; without a keyring it admits everyone."""

    def __init__(
        self,
        settings: AccessSettings,
        keyring: Keyring | None,
        clock: Clock,
        shared: SharedLimits | None = None,
    ) -> None:
        """Create the authentication of a daemon, or of a worker, which shares limits with the other workers."""
        self._settings = settings
        self._keyring = keyring
        self._clock = clock
        self._by_key: RateLimits = shared.by_key if shared else Buckets(settings.burst_s)
        self._by_agent = Buckets(settings.burst_s)
        self._by_remote: RateLimits = shared.by_remote if shared else Buckets(settings.burst_s)

    @property
    def asks_for_keys(self) -> bool:
        """Whether callers must send an API key."""
        return self._keyring is not None

    def admit(self, authorizations: Sequence[str], address: str) -> Caller:
        """Return the caller, from the `Authorization` values and the address of a request.

        MISSING_KEY, INVALID_KEY, RATE_LIMITED; RATE_LIMITED_TRIES instead of the first two if an address tries too
        often. The key is checked first: a valid one passes, whatever other clients try from the same address.
        """
        if self._keyring is None:
            return ANYONE
        text = presented(authorizations)
        try:
            if text is None:
                raise _missing_key()
            key, grant = self._keyring.find(text, self._clock.now_ms())
        except Unauthenticated:
            self._refuse_trying(address)
            raise
        per_s = self._settings.requests_per_s if key.requests_per_s is None else key.requests_per_s
        if per_s:
            self._refuse_faster(self._by_key, key.id, per_s, "key")
        most = self._settings.max_agents_per_key if key.max_agents is None else key.max_agents
        return Caller(key.id, grant, most)

    def permit(self, caller: Caller, required: Requirement, agent_id: str | None) -> None:
        """Check that the caller may do this, with the named agent.

        SCOPE_MISSING, KEY_NOT_FOR_AGENT, RATE_LIMITED; MISSING_KEY for a caller that was never admitted.
        """
        if caller is ANYONE and self._keyring is not None and required.needs is not Needs.NOTHING:
            # A transport that forgot to authenticate must not grant access.
            raise _missing_key()
        caller.grant.refuse_beyond(required, agent_id)
        per_s = self._settings.agent_requests_per_s
        if per_s and agent_id is not None and required.needs is Needs.AGENT:
            self._refuse_faster(self._by_agent, agent_id, per_s, "agent")

    def permit_still(self, caller: Caller, required: Requirement, agent_id: str) -> None:
        """Refuse a stream that was permitted, once the caller's key no longer allows it.

        INVALID_KEY, SCOPE_MISSING, KEY_NOT_FOR_AGENT. It counts against no rate.
        """
        if self._keyring is not None:
            self._keyring.grant_now(caller.key_id, self._clock.now_ms()).refuse_beyond(required, agent_id)

    def _refuse_trying(self, address: str) -> None:
        per_s = self._settings.failed_tries_per_s
        wait_s = self._by_remote.take(remote_of(address), per_s, self._clock.monotonic_s()) if per_s else 0.0
        if wait_s:
            raise Exhausted(
                f"Too many requests without a valid API key from this address (limit {per_s:g} per second).",
                reason="RATE_LIMITED_TRIES",
                metadata={"limit": "address", "requests_per_s": f"{per_s:g}"},
                retry_after_s=wait_s,
            )

    def _refuse_faster(self, buckets: RateLimits, name: str, per_s: float, whose: str) -> None:
        wait_s = buckets.take(name, per_s, self._clock.monotonic_s())
        if wait_s:
            raise Exhausted(
                f"Too many requests for this {whose} (limit {per_s:g} per second).",
                reason="RATE_LIMITED",
                metadata={"limit": whose, "requests_per_s": f"{per_s:g}"},
                retry_after_s=wait_s,
            )


def _missing_key() -> Unauthenticated:
    return Unauthenticated(
        "An API key is required. Send it as Authorization: Bearer ebb_…", reason="MISSING_KEY"
    )
