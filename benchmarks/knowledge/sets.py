"""Read and validate the labelled sets for structured memory. `README.md` describes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"
LANGUAGES = ("en", "zh")
PARTS = ("dev", "held_out")

Interval = tuple[int | None, int | None]
"""Half open, in milliseconds since the epoch. A missing end is open."""


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a set."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def milliseconds(moment: str | None) -> int | None:
    """Return a date or a local time as milliseconds since the epoch, as if the local time were UTC."""
    if moment is None:
        return None
    return int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)


def _required(moment: str) -> int:
    value = milliseconds(moment)
    assert value is not None
    return value


@dataclass(frozen=True, slots=True)
class TimeCase:
    """A sentence with the interval that its words state, or none."""

    id: str
    lang: str
    part: str
    reading: str
    reference: int
    text: str
    words: str | None
    interval: Interval
    compare: str
    also: tuple[Interval, ...]

    def accepts(self, answer: Interval | None) -> bool:
        """Whether a reader accepts this answer; None means that no time was found."""
        if self.words is None or answer is None or answer == (None, None):
            return self.words is None and answer in (None, (None, None))
        if self.compare == "start":
            return answer[0] == self.interval[0]
        if self.compare == "within":
            return self._contains(answer)
        return answer == self.interval or answer in self.also

    def _contains(self, answer: Interval) -> bool:
        (low, high), (since, until) = self.interval, answer
        assert low is not None
        assert high is not None
        return since is not None and until is not None and low <= since < until <= high


def _interval(since: str | None, until: str | None) -> Interval:
    return milliseconds(since), milliseconds(until)


def read_times() -> list[TimeCase]:
    """Return the expressions of time."""
    return [
        TimeCase(
            **{name: row[name] for name in ("id", "lang", "part", "reading", "text", "words", "compare")},
            reference=_required(row["reference"]),
            interval=_interval(row["since"], row["until"]),
            also=tuple(_interval(*pair) for pair in row["also"]),
        )
        for row in rows_of("times")
    ]


TOOLS = (
    "create_memory",
    "link_memories",
    "search_memories",
    "update_memory_importance",
    "remember",
    "recall",
    "forget",
)
FORM_TIME = datetime(2026, 5, 20, 9, tzinfo=UTC)
"""When every call of `tool_forms` is made."""

_DEFAULTS: dict[tuple[str, str], Any] = {
    ("create_memory", "importance"): 0.5,
    ("link_memories", "importance"): 0.6,
    ("search_memories", "max_results"): 10,
    ("search_memories", "expand_depth"): 1,
    ("recall", "max_results"): 10,
    ("remember", "role"): "user",
}
_TIMES = ("time_range", "as_of", "time")


@dataclass(frozen=True, slots=True)
class ToolForm:
    """A tool call as a model sends it, with what must come of it."""

    id: str
    lang: str
    part: str
    tool: str
    form: str
    sent: Any
    outcome: str
    arguments: dict[str, Any]
    any_of: dict[str, list[Any]]
    free: tuple[str, ...]
    reason: str | None
    field: str | None

    def accepts(self, arguments: dict[str, Any] | None) -> bool:
        """Whether these arguments may come out, times in milliseconds; None means that the call was refused."""
        if arguments is None or self.outcome == "refused":
            return self.outcome != "accepted" and arguments is None
        names = {*arguments, *self.arguments, *self.any_of} - {*self.free}
        return all(_plain(arguments.get(name), name) in self._allowed(name) for name in names)

    def _allowed(self, name: str) -> list[Any]:
        default = _DEFAULTS.get((self.tool, name))
        values = self.any_of.get(name) or [self.arguments.get(name, default)]
        return [_plain(_in_milliseconds(value) if name in _TIMES else value, name) for value in values]


def _in_milliseconds(value: Any) -> Any:
    return [milliseconds(one) for one in value] if isinstance(value, list) else milliseconds(value)


def _plain(value: Any, name: str) -> Any:
    """Return a value in the form that is compared: no value, no items and no attributes are the same."""
    if isinstance(value, tuple):
        value = list(value)
    if name == "attributes" and isinstance(value, dict):
        value = {key: str(one) for key, one in value.items()}
    return None if value in ("", [], {}) else value


def read_tool_forms() -> list[ToolForm]:
    """Return the tool calls."""
    return [
        ToolForm(
            **{name: row[name] for name in ("id", "lang", "part", "tool", "form", "sent", "outcome")},
            arguments=row.get("arguments", {}),
            any_of=row.get("any_of", {}),
            free=tuple(row.get("free", ())),
            reason=row.get("reason"),
            field=row.get("field"),
        )
        for row in rows_of("tool_forms")
    ]


OUTCOMES = ("same", "both", "superseded", "contested", "late")


@dataclass(frozen=True, slots=True)
class Said:
    """A statement of an update, times in milliseconds."""

    subject: str
    slot: str
    object: str
    negated: bool
    modality: str
    quote: str
    told_at: int
    since: int | None


@dataclass(frozen=True, slots=True)
class Update:
    """Two statements about one subject and slot, and what follows from the second."""

    id: str
    lang: str
    first: Said
    second: Said
    expected: str
    answers: tuple[tuple[str, frozenset[str]], ...]
    """Each outcome that a reader accepts, with the statements that are current at the time of the second."""

    def accepts(self, outcome: str, in_force: frozenset[str]) -> bool:
        """Whether a reader accepts this outcome with these current statements (`first`, `second`)."""
        return (outcome, in_force) in self.answers

    def retires_wrongly(self, in_force: frozenset[str]) -> bool:
        """Whether the first statement is no longer current, though every accepted answer keeps it."""
        return "first" not in in_force and all("first" in kept for _, kept in self.answers)


def read_updates() -> list[Update]:
    """Return the pairs of statements."""
    return [
        Update(
            **{name: row[name] for name in ("id", "lang", "expected")},
            first=_said(row["first"]),
            second=_said(row["second"]),
            answers=tuple((one["expected"], frozenset(one["in_force"])) for one in (row, *row["also"])),
        )
        for row in rows_of("updates")
    ]


def _said(row: dict[str, Any]) -> Said:
    return Said(**{**row, "told_at": _required(row["told_at"]), "since": milliseconds(row["since"])})


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as a quote mentions it."""

    name: str
    type: str
    kin: str | None
    quote: str


@dataclass(frozen=True, slots=True)
class NamePair:
    """Two mentions, of one entity or of two."""

    id: str
    lang: str
    first: Named
    second: Named
    same: bool
    by: str | None
    """Of the same entity: spelling, alias or proposal."""
    said: str | None
    """The quote that states the alias."""


def read_names() -> list[NamePair]:
    """Return the pairs of names."""
    return [
        NamePair(
            **{name: row[name] for name in ("id", "lang", "same")},
            first=Named(**row["first"]),
            second=Named(**row["second"]),
            by=row.get("by"),
            said=row.get("said"),
        )
        for row in rows_of("names")
    ]


def read_merges() -> list[NamePair]:
    """Return the pairs of names without quotes."""

    def side(row: dict[str, Any]) -> Named:
        return Named(row["name"], row["type"], row["kin"], "")

    return [
        NamePair(
            row["id"], row["lang"], side(row["first"]), side(row["second"]), row["same"], by=None, said=None
        )
        for row in rows_of("merges")
    ]


@dataclass(frozen=True, slots=True)
class Wordings:
    """A fact with the messages that state it."""

    id: str
    lang: str
    subject: str
    slot: str
    object: str
    wordings: tuple[str, ...]


def read_wordings() -> list[Wordings]:
    """Return the facts in several wordings."""
    return [Wordings(**{**row, "wordings": tuple(row["wordings"])}) for row in rows_of("wordings")]


SEARCH_TIME = datetime(2026, 6, 1, 9, tzinfo=UTC)
"""When every question of `relevance` is sent."""
CUTOFF = 5
QUESTION_KINDS = ("current", "past", "why", "negation", "list", "time", "detail", "none")


@dataclass(frozen=True, slots=True)
class StatementLink:
    """A link from a statement to another one of its agent."""

    relation_type: str
    target: str


@dataclass(frozen=True, slots=True)
class BankStatement:
    """A statement that questions may find."""

    id: str
    lang: str
    agent: str
    subject: str
    memory_type: str
    slot: str
    object: str | None
    negated: bool
    quote: str
    told_at: int
    since: int | None
    link: StatementLink | None


@dataclass(frozen=True, slots=True)
class RelevanceQuestion:
    """A question to an agent, with the ids of the statements that answer it, best first."""

    id: str
    lang: str
    agent: str
    kind: str
    query: str
    answers: tuple[str, ...]

    def precision(self, found: Sequence[str]) -> float:
        """Return the share of right statements among the first five."""
        if not self.answers:
            return float(not found)
        if self.kind == "current" and [*found[:1]] != [self.answers[0]]:
            return 0.0
        return len({*found[:CUTOFF]} & {*self.answers}) / min(CUTOFF, len(self.answers))


def read_bank(name: str = "relevance") -> list[BankStatement]:
    """Return the statements of every agent of a set by the time of their messages."""
    bank = [
        BankStatement(
            **{
                **row,
                "told_at": _required(row["told_at"]),
                "since": milliseconds(row["since"]),
                "link": StatementLink(**row["link"]) if row["link"] else None,
            }
        )
        for row in rows_of(f"{name}_statements")
    ]
    return sorted(bank, key=lambda one: (one.agent, one.told_at))


def read_questions(name: str = "relevance") -> list[RelevanceQuestion]:
    """Return the questions of a set."""
    return [RelevanceQuestion(**{**row, "answers": tuple(row["answers"])}) for row in rows_of(name)]


@dataclass(frozen=True, slots=True)
class GoldStatement:
    """A statement that a reader would store."""

    subject: str
    memory_type: str
    slot: str
    object: str
    negated: bool


@dataclass(frozen=True, slots=True)
class GoldMessage:
    """A message of a user with the statements that it makes."""

    id: str
    lang: str
    text: str
    statements: tuple[GoldStatement, ...]


def read_messages() -> list[GoldMessage]:
    """Return the messages for the development of extraction."""
    return [
        GoldMessage(**{**row, "statements": tuple(GoldStatement(**one) for one in row["statements"])})
        for row in rows_of("extraction_dev")
    ]


MESSAGE_PARTS = ("dev", "first", "second", "held_out", "independent", "independent_second")
"""`first` and `second` were held out until their first run, whose errors were then repaired. The author of the two
independent parts had not read the rules when writing them."""


@dataclass(frozen=True, slots=True)
class FreshMessage:
    """A message of a user that the rules of extraction have not seen."""

    id: str
    lang: str
    part: str
    text: str
    states: frozenset[str] = frozenset()
    """The topics of the design on which a reader would store a statement, of the independent parts only.
    `other` is a lasting fact on none of them."""


def read_fresh_messages() -> list[FreshMessage]:
    """Return the messages on which extraction is judged."""
    return [
        FreshMessage(**{**row, "states": frozenset(row.get("states", ()))}) for row in rows_of("messages")
    ]


@dataclass(frozen=True, slots=True)
class Output:
    """A statement that extraction makes of a message. Its verdict is bound to all of it."""

    message: str
    """The id of the message; of a public set, the digest of its text."""
    quote: str
    subject: str
    slot: str
    object: str
    negated: bool
    planned: bool


def read_verdicts() -> dict[Output, bool]:
    """Return whether a reader accepts each judged output."""
    verdicts = {}
    for row in rows_of("verdicts"):
        is_right = row.pop("right")
        row.pop("why", None)
        verdicts[Output(**row)] = is_right
    return verdicts


def read_public_verdicts() -> dict[str, bool]:
    """Return whether a reader accepts each judged output on public sets, by `digest_of`."""
    return {row["digest"]: row["right"] for row in rows_of("public_verdicts")}


def digest_of(set_name: str, text: str, output: Output) -> str:
    """Return what binds a verdict to a message of a public set, whose text is not stored here, and to an output."""
    said = json.dumps(
        [
            set_name,
            text,
            output.quote,
            output.subject,
            output.slot,
            output.object,
            output.negated,
            output.planned,
        ]
    )
    return sha256(said.encode()).hexdigest()[:24]
