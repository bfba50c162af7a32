"""The scores of the statements that a search reaches, and their order.

score = 0.4 similarity + 0.2 importance + 0.2 / (1 + distance) + 0.1 e^(-rate days) + 0.1 ln(1 + n) / ln(1 + n_max)

The weights and rates are settings. The distance counts links from a statement that was found by its words or topic.
Days count since it was said last, and n is how often a search has returned it. A question on a topic may reach hundreds
of statements, so they are compared as columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from ebbtide.fleet.recall.statement_matches import StatementMatches
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.slot_names import SLOTS
from ebbtide.memory.statements import DAY_MS, Version
from ebbtide.memory.topic_words import asks_for_the_past
from ebbtide.memory.versions import SlotReplay, VersionColumns
from ebbtide.settings import SearchSettings
from ebbtide.statements import KINDS
from ebbtide.verbs.recall import TimeRange
from ebbtide.verbs.statements import View

PAST_PENALTY = 0.3
"""Subtracted from the score of a current statement if a question is about an earlier time."""

MAX_VALUES = 64
"""Most values of a topic of which the latest one is preferred."""

LATEST_SHARE = 1.2
"""Similarity of the latest of several values of a topic that seldom has more than one, relative to the best of them.
It answers a question about the present, and the others one about an earlier time.
"""


class Limits(NamedTuple):
    """The statements that a search lets through."""

    kinds: Sequence[str]
    """Kinds of statements; empty for all."""
    time_range: TimeRange | None
    max_results: int
    include_past: bool


class Scored(NamedTuple):
    """A statement that a search has found."""

    score: float
    statement: NodeId
    version: Version
    distance: int
    comes_last: bool
    """Whether it follows the true values of its topic: it is planned, or the question is for another time."""


class _TrueValues(NamedTuple):
    """The values of a topic that are true."""

    versions: Sequence[Version]
    last_since_ms: int
    """When the last one of them began."""
    similarity: float
    """That of the most similar one."""

    def has_other(self, version: Version) -> bool:
        """Return whether one of them is not a version."""
        return len(self.versions) > 1 or (bool(self.versions) and self.versions[0] is not version)


class StatementScores:
    """The scores of one search."""

    def __init__(self, view: View, matches: StatementMatches, limits: Limits, past_ms: int | None) -> None:
        self._view = view
        self._matches = matches
        self._limits = limits
        self._is_dated = past_ms is not None
        self._as_of_ms = view.as_of_ms if past_ms is None else past_ms
        """The time for which to answer: the one that the question names, or that of the request."""
        self._asks_for_past = (
            limits.include_past and not self._is_dated and asks_for_the_past(matches.question)
        )
        self._similar: Mapping[NodeId, float] = {}
        self._true_values: dict[SlotReplay, _TrueValues] = {}
        """The values of a slot that are true, of those that were compared."""

    def best(
        self, similar: Mapping[NodeId, float], reached: Mapping[NodeId, int], linked: Set[NodeId]
    ) -> list[Scored]:
        """Return the best statements that the request lets through, best first.

        `similar` has the similarity of each statement, and `reached` the distance of each that is compared. One that is
        much less similar than the best one is left out, unless it was reached along links or is in `linked`.
        """
        self._similar = similar
        found = {one: version for one in reached if (version := self._shown(one)) is not None}
        if not found:
            return []
        ids, versions = list(found), list(found.values())
        columns = columns_of(versions)
        distance = np.array([reached[one] for one in ids])
        near = np.array([similar.get(one, 0.0) for one in ids])
        is_true, is_plan = states(columns, self._as_of_ms)
        is_alive = self._view.workspace.network.are_alive(ids)
        is_current = is_true & is_alive
        is_wanted = self._wanted(is_current, columns, versions)
        score = self._unadjusted(columns, near, distance, ids)
        self._prefer_latest(score, near, versions, is_current, is_plan, columns.may_follow)
        least = self._matches.weights.least_share * float(near[is_wanted].max(initial=0.0))
        is_near = (near >= least) | (distance > 0)
        if linked:
            is_near |= np.array([one in linked for one in ids])
        if self._limits.include_past:
            # The values of a topic belong together.
            slots = {versions[place].replay for place in np.flatnonzero(is_wanted & (near >= least)).tolist()}
            is_near |= np.array([one.replay in slots for one in versions])
        comes_last = is_plan | (~is_true if self._is_dated else False)
        places = np.flatnonzero(is_wanted & is_near)
        places = places[np.lexsort((np.array(ids)[places], -score[places]))]
        most = self._limits.max_results
        if not comes_last[places].any():
            places = places[:most]
        scored = [
            Scored(float(score[at]), ids[at], versions[at], int(distance[at]), bool(comes_last[at]))
            for at in places.tolist()
        ]
        return self._true_first(scored)[:most]

    def _shown(self, statement: NodeId) -> Version | None:
        """Return the version of a statement, if it is the one of its statements that is shown."""
        version = self._matches.version_of(statement)
        return version if version is not None and self._view.shown(version) == statement else None

    def _wanted(self, is_current: Array, columns: VersionColumns, versions: Sequence[Version]) -> Array:
        """Return which versions the request lets through."""
        limits = self._limits
        is_wanted = ~columns.is_withdrawn if limits.include_past else is_current.copy()
        if limits.kinds:
            is_wanted &= np.isin(columns.kind, [KINDS.index(kind) for kind in limits.kinds])
        if limits.time_range is not None:
            for at in np.flatnonzero(is_wanted).tolist():
                is_wanted[at] = _is_within(versions[at], limits.time_range)
        return is_wanted

    def _unadjusted(
        self, columns: VersionColumns, near: Array, distance: Array, ids: Sequence[NodeId]
    ) -> Array:
        """Return the scores by the formula."""
        weights, uses = self._view.workspace.search, self._view.workspace.statement_uses
        used = np.log1p(np.array([uses.of(one) for one in ids], dtype=np.float64))
        score: Array = (
            weights.similarity_weight * near
            + weights.importance_weight * columns.importance
            + weights.distance_weight / (1 + distance)
            + weights.recency_weight * recencies(columns, weights, self._view.now_ms)
            + weights.use_weight * used / (used.max() or 1.0)
        )
        return score

    def _prefer_latest(
        self,
        score: Array,
        near: Array,
        versions: Sequence[Version],
        is_current: Array,
        is_plan: Array,
        may_follow: Array,
    ) -> None:
        """Change the scores and similarities of those that are the latest value of their topic.

        They are raised above the other values, or lowered if the question asks for an earlier time.
        """
        of_similarity = self._view.workspace.search.similarity_weight
        is_latest = ~is_plan
        for at in np.flatnonzero(is_current & may_follow).tolist():
            version = versions[at]
            true = self._true_values_of(version)
            if true is None or not true.has_other(version):
                continue
            if true.last_since_ms > version.since_ms:
                is_latest[at] = False
            elif is_latest[at] and not self._asks_for_past:
                best = max(self._similar.get(version.statement, 0.0), true.similarity) * LATEST_SHARE
                score[at] += of_similarity * (best - near[at])
                near[at] = best
        if self._asks_for_past:
            score[is_current & is_latest] -= PAST_PENALTY

    def _true_values_of(self, version: Version) -> _TrueValues | None:
        """Return the values of the topic of a version that are true, if one may have followed the other.

        They may not if the topic has any number of values at a time. Of a topic that no slot knows, that is unknown.
        """
        slot = version.replay
        if not 1 < len(slot.versions) <= MAX_VALUES:
            return None
        if slot.slot.name in SLOTS and slot.slot.cardinality == "many":
            return None
        if slot not in self._true_values:
            true = [
                one
                for one in slot.versions
                if not one.first.negated and one.first.modality != "planned" and one.holds_at(self._as_of_ms)
            ]
            self._true_values[slot] = _TrueValues(
                true,
                max((one.since_ms for one in true), default=0),
                max((self._similar.get(one.statement, 0.0) for one in true), default=0.0),
            )
        return self._true_values[slot]

    def _true_first(self, scored: list[Scored]) -> list[Scored]:
        """Return statements, best first, a planned value of a topic after the values that are true.

        To a question for a past time, a value of any other time comes after them.
        """
        slots = {one.version.replay for one in scored if one.comes_last}
        if not slots:
            return scored
        true: dict[SlotReplay, float] = {}
        for one in scored:
            if one.version.replay in slots and not one.comes_last:
                true[one.version.replay] = min(one.score, true.get(one.version.replay, one.score))

        def order(one: Scored) -> tuple[float, bool, NodeId]:
            version, is_last = one.version, False
            if one.comes_last and (values := self._rivals_of(version)) is not None:
                is_last = values.has_other(version)
            score = min(one.score, true.get(version.replay, one.score)) if is_last else one.score
            return -score, is_last, one.statement

        return sorted(scored, key=order)

    def _rivals_of(self, version: Version) -> _TrueValues | None:
        may_follow = version.replay.columns().may_follow[version.place]
        return self._true_values_of(version) if may_follow else None


def states(columns: VersionColumns, as_of_ms: int) -> tuple[Array, Array]:
    """Return which versions are true at a time or planned then, and which of these are planned.

    This is `Replay.state_alone` for many.
    """
    begin, end = columns.since_ms, columns.until_ms
    holds = (begin <= as_of_ms) & (as_of_ms < end)
    is_plan = np.where(holds, columns.is_planned, (begin > as_of_ms) & (end > begin)) & ~columns.is_withdrawn
    return (holds & ~columns.is_withdrawn) | is_plan, is_plan


def recencies(columns: VersionColumns, settings: SearchSettings, now_ms: int) -> Array:
    """Return how recent each version is, as `recency` does for one."""
    tasks = columns.kind == KINDS.index("task")
    last_ms = np.where(tasks, np.maximum(columns.told_at_ms, columns.since_ms), columns.told_at_ms)
    rates = np.array([settings.decay_per_day(kind) for kind in KINDS])
    days = np.maximum(0, now_ms - last_ms) / DAY_MS
    recent: Array = np.exp(-rates[columns.kind] * days)
    return recent


def columns_of(versions: Sequence[Version]) -> VersionColumns:
    """Return the columns of versions of any slots, in their order."""
    begins, count = dict[SlotReplay, int](), 0
    for one in versions:
        if one.replay not in begins:
            begins[one.replay] = count
            count += len(one.replay.versions)
    places = np.array([begins[one.replay] + one.place for one in versions])
    return VersionColumns(
        *(np.concatenate(parts)[places] for parts in zip(*(slot.columns() for slot in begins), strict=True))
    )


def _is_within(version: Version, period: TimeRange) -> bool:
    """Return whether a message of a period states a version."""
    return any(
        (period.begin is None or period.begin <= one.told_at_ms)
        and (period.end is None or one.told_at_ms < period.end)
        for one in version.assertions
    )
