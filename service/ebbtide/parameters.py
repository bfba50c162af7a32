"""The parameters of one agent's memory, with their defaults and bounds.

An agent gets the daemon's defaults (settings section `memory`) and may override each of them (`PUT` and `PATCH
/v1/agents/{id}`). A value out of bounds is refused with its name, the value and the allowed range. Settings of
processes, sockets and files are in `settings.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MAX_RESULTS_CEILING = 10_000
"""The meaning of `max_search_results = 0`: a recall never returns more memories than this."""

SLOT_HEADROOM = 100
"""Under `slots`, `max_nodes` must exceed `focus_limit` by this, or no node can be forgotten for a new one."""


MAX_DAYS = 36_500
"""Longest limited retention in days."""

_DAYS = re.compile(r"(days|evidence):([1-9]\d{0,4})")


def _checked_retention(value: str) -> str:
    days = _DAYS.fullmatch(value)
    if value in ("keep", "none") or (days and int(days[2]) <= MAX_DAYS):
        return value
    shown = "".join(c if c.isprintable() else "?" for c in value[:40])
    raise ValueError(
        f"'{shown}' is not allowed; allowed: keep, none, days:N, evidence:N with N from 1 to {MAX_DAYS}"
    )


_TIME_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]{0,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2}")


def _checked_time_zone(value: str) -> str:
    """Return the name of a time zone of the IANA database."""
    if value != "UTC":
        # Imported here, because a client that sets no time zone need not load the database.
        from zoneinfo import ZoneInfo

        try:
            if not _TIME_ZONE.fullmatch(value):
                raise ValueError(value)
            ZoneInfo(value)
        except (ValueError, KeyError, OSError) as error:
            shown = "".join(c if c.isprintable() else "?" for c in value[:40])
            raise ValueError(
                f"'{shown}' is not allowed; allowed: a name of the IANA database, such as UTC or Europe/Berlin"
            ) from error
    return value


class AgentParameters(BaseModel):
    """How one agent remembers and forgets (memory model, section 7)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    focus_limit: Annotated[int, Field(ge=1, le=64)] = Field(
        5, description="Most memories in focus, and most entities."
    )
    focus_policy: Literal["both", "nodes"] = Field(
        "both",
        description="both: memories and entities move into focus; nodes: memories only, and no entities are created.",
    )
    decay_rate: Annotated[float, Field(gt=0, le=1)] = Field(
        0.97, description="A link's strength is multiplied by this each time its source is scanned."
    )
    link_initial_strength: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5, description="Strength of the links between neighbours within a batch."
    )
    link_break_threshold: Annotated[float, Field(ge=0, le=1)] = Field(
        0.01, description="A link weaker than this is broken."
    )
    delete_threshold: Annotated[int, Field(ge=0, le=1000)] = Field(
        5, description="A memory that would shrink below this many characters is forgotten."
    )
    min_shrink: Annotated[float, Field(ge=0, le=1)] = Field(
        0.25, description="Content is shortened only if it loses at least this share of its length."
    )
    entities_per_memory: Annotated[int, Field(ge=0, le=5)] = Field(
        3, description="Most entities that a memory is linked with: its first keywords that are names."
    )
    entity_memories: Annotated[int, Field(ge=1, le=1024)] = Field(
        32, description="Newest memories of an entity in focus whose links do not decay."
    )
    entity_wait_max: Annotated[int, Field(ge=1, le=100)] = Field(
        3, description="Most passes until an entity is scanned again."
    )
    strategy: Literal["scan", "slots"] = Field(
        "scan", description="scan: every due node in every pass; slots: a bounded number of nodes."
    )
    max_nodes: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        10_000,
        description="Most memories under `slots`; at least focus_limit + 100 there. Entities do not count.",
    )
    compression_batch_size: Annotated[int, Field(ge=1, le=10_000)] = Field(
        100, description="Nodes drawn for one pass under `slots`."
    )
    slot_sample_size: Annotated[int, Field(ge=1, le=1000)] = Field(
        16, description="Nodes drawn to find the least important one when all `slots` are used."
    )
    long_term_factor: Annotated[float, Field(ge=0, le=1)] = Field(
        0.02,
        description="After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass.",
    )
    default_search_depth: Annotated[int, Field(ge=0, le=8)] = Field(
        2, description="Hops of a recall that specifies no depth."
    )
    max_search_results: Annotated[int, Field(ge=0, le=MAX_RESULTS_CEILING)] = Field(
        100, description="Most memories in one answer; 0 means 10000."
    )
    cue_memories: Annotated[int, Field(ge=0, le=1000)] = Field(
        32, description="Newest memories containing a keyword at which a recall starts."
    )
    max_pinned: Annotated[int, Field(ge=0, le=10_000)] = Field(
        100, description="Most pinned memories, which are neither shortened nor forgotten."
    )
    pin_on_request: bool = Field(
        True, description="Whether a memory in which the user asks to remember it is pinned."
    )
    remember_questions: bool = Field(
        False, description="Whether a segment that is only a question becomes a memory."
    )
    locale: Literal["auto", "zh", "en"] = Field(
        "auto", description="Language of the wording; auto decides by the text."
    )
    speaker_prefix: Literal["auto", "always", "never"] = Field(
        "auto", description="When a memory is shown with its speaker."
    )
    digest_system: bool = Field(False, description="Whether system messages become memories.")
    digest_tools: bool = Field(False, description="Whether calls of tools and their output become memories.")
    max_queue_size: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1000, description="Most batches in the inbox, waiting or parked; beyond it, remember is refused."
    )
    max_owed_passes: Annotated[int, Field(ge=1, le=100_000)] = Field(
        100, description="Most compression passes that an agent can owe; further ones are merged."
    )
    pass_every_tokens: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0,
        description="One compression pass is owed for every so many tokens of new memories; 0: one for each batch.",
    )
    segment_max_chars: Annotated[int, Field(ge=20, le=2000)] = Field(
        200, description="Recommended longest segment, in characters."
    )
    retention: Annotated[str, AfterValidator(_checked_retention)] = Field(
        "keep",
        description="How long texts are kept after their digest: keep (for ever), days:N (N days after "
        "acceptance), evidence:N (as days:N, and longer while a true statement cites them), none. Their memories stay.",
    )
    pii: Literal["off", "tag", "redact"] = Field(
        "off",
        description="Handling of personal data in new messages: off (no detection), tag (stored, with"
        " its positions), redact (replaced by its kind before anything is stored).",
    )
    drop_recalled: bool = Field(
        True, description="Whether text of recent recalls is removed from new messages."
    )
    collapse_repeats: bool = Field(False, description="Whether exact repetitions within a batch are dropped.")
    extraction: Literal["off", "rules", "model", "rules+model"] = Field(
        "off",
        description="Whether statements are extracted from messages of the user: by rules, by the language model, or"
        " by both (docs/knowledge.md).",
    )
    max_statements: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10_000, description="Most statements that are kept, since they are true in a lasting slot, or pinned."
    )
    consolidation_interval_h: Annotated[int, Field(ge=0, le=8760)] = Field(
        6, description="Hours between two consolidations of the statements; 0: on request only."
    )
    merge_policy: Literal["propose", "auto"] = Field(
        "propose",
        description="propose: names that may mean one thing are only listed; auto: such names of things, never of "
        "people, are merged if their meaning is close.",
    )
    privacy_budget: Annotated[float, Field(ge=0, le=1000)] = Field(
        10.0, description="Highest sum of the epsilons of counts with differential privacy."
    )
    time_zone: Annotated[str, AfterValidator(_checked_time_zone)] = Field(
        "UTC",
        description="Time zone of dates in texts, and in which words such as today are read: a name of the IANA "
        "database.",
    )

    @model_validator(mode="after")
    def _slots_need_headroom(self) -> Self:
        least = self.focus_limit + SLOT_HEADROOM
        if self.strategy == "slots" and self.max_nodes < least:
            raise ValueError(
                f"max_nodes must be at least focus_limit + {SLOT_HEADROOM} = {least} under slots, "
                f"got {self.max_nodes}"
            )
        return self

    @property
    def kept_days(self) -> int | None:
        """Days for which digested texts are kept; None for ever."""
        days = _DAYS.fullmatch(self.retention)
        return int(days[2]) if days else 0 if self.retention == "none" else None

    @property
    def keeps_evidence(self) -> bool:
        """Whether texts stay while a statement that is true cites them."""
        return self.retention.startswith("evidence:")

    def limit_results(self, requested: int | None) -> int:
        """Return the most memories in one answer: the requested number or the parameter; 0 means the ceiling."""
        most = self.max_search_results if requested is None else requested
        return most or MAX_RESULTS_CEILING
