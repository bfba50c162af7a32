"""A route that the metrics name by its pattern, which has no ids of agents in it."""

from __future__ import annotations

from starlette.routing import Match, Route
from starlette.types import Scope


class MeasuredRoute(Route):
    """A route that stays in the scope of its requests."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route, and what to add to its scope: the route, for the metrics."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}
