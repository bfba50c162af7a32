"""The requirements of an operation: one of some scopes, and agents within the caller's reach.

The catalogue of operations (`verbs/catalogue.py`) says which operation requires what. Deliberately not here: which
caller has which scope (`grants.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Scope = Literal["read", "write", "admin"]

READ: Scope = "read"
WRITE: Scope = "write"
ADMIN: Scope = "admin"
SCOPES: tuple[Scope, ...] = (READ, WRITE, ADMIN)
"""The scopes of a key. None includes another.

`read` allows queries. `write` allows creating agents, and storing, changing and deleting memories. `admin` allows
changing parameters, deleting agents, forgetting, backups and audits.
"""


class Needs(Enum):
    """The agents that a caller must be allowed to use, besides one of the operation's scopes."""

    NOTHING = "no key at all"
    KEY = "any valid key, with any scopes"
    SCOPE = "nothing else; the response covers only agents within the key's reach"
    AGENT = "the agent that the request names is within the key's reach"
    EVERY_AGENT = "the key is not bound to agents, since the response covers all of them"


@dataclass(frozen=True, slots=True)
class Requirement:
    """The scopes and the reach that an operation requires."""

    needs: Needs
    scopes: tuple[Scope, ...] = ()
    """Any one of these is enough."""


def of_agent(scope: Scope) -> Requirement:
    """Require a scope, and the agent that the request names."""
    return Requirement(Needs.AGENT, (scope,))


UNLISTED = Requirement(Needs.EVERY_AGENT, (ADMIN,))
"""The requirements of a route or call that is not in the catalogue."""
