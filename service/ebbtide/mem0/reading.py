"""Requests of mem0's clients, read: ids, filters and options become fields of Ebbtide's operations.

A filter or an option that cannot be applied is refused, never dropped. Only options that change nothing here are
ignored (`IGNORED`). The functions are pure, so a worker process can read a large body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.ids import parse_agent_id
from ebbtide.mem0.memories import AGENT_PREFIX, STORED_AS, iso
from ebbtide.settings import LimitSettings
from ebbtide.verbs.remember import RememberRequest, body_hash
from ebbtide.verbs.requests import echo, read_json, refuse, unknown_field, validated

ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
"""The ids by which mem0 keeps memories apart."""

IGNORED = frozenset(
    {
        *("async_mode", "infer", "keyword_search", "output_format", "rerank", "show_expired", "version"),
    }
)
"""Options without an effect: all words are kept, words count in every search, results are ranked, nothing expires."""

MAX_MEMORIES = 1000
"""Most memories in one request."""

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Owner:
    """The entities of a request: the agent, what narrows it, and the conversation."""

    agent_id: str
    metadata: Mapping[str, Any]
    run_id: str


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that memories must fulfil."""

    owner: Owner
    metadata: Mapping[str, Any]
    """With the ids in the owner's."""
    begin_ms: int | None = None
    end_ms: int | None = None
    memory_ids: tuple[str, ...] | None = None
    keywords: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether no time can be in the period."""
        return self.begin_ms is not None and self.end_ms is not None and self.begin_ms >= self.end_ms

    @property
    def is_counted_by_reading(self) -> bool:
        """Whether all memories must be read to count those that pass."""
        times = self.begin_ms is not None or self.end_ms is not None
        return bool(times or self.owner.run_id or self.keywords or self.metadata)


@dataclass(frozen=True, slots=True)
class Addition:
    """Messages to remember. The key is that of an equal request."""

    owner: Owner
    request: RememberRequest
    key: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Which memories to return, and which of their fields; all without any."""

    filters: Filters
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """A search."""

    listing: Listing
    fields: Mapping[str, Any]
    """Of the operation."""
    top_k: int
    threshold: float


# --- the calls ---------------------------------------------------------------------------------------------


def read_add(body: bytes, default_agent: str, now_ms: int, limits: LimitSettings) -> Addition:
    """Return the batch of an `add`."""
    known = (*ENTITIES, "messages", "filters", "metadata", "timestamp", "expiration_date")
    given = read_body(body, known)
    _refuse_expiration(given)
    entities = [(name, given[name]) for name in ENTITIES if name in given]
    if "filters" in given:
        entities += _terms(given["filters"])
    owner = _owner(_entities(entities, "filters"), default_agent)
    metadata = {**_object("metadata", given.get("metadata", {})), **owner.metadata}
    fields: dict[str, Any] = {
        "agent_id": owner.agent_id,
        "messages": _messages(given.get("messages", []), given.get("timestamp")),
        "conversation_id": owner.run_id or None,
        "metadata": metadata or None,
    }
    request = validated(RememberRequest, fields, limits)
    return Addition(owner, request, f"mem0-{now_ms // DAY_MS}-{body_hash(request).hex()}")


def read_search(body: bytes, default_agent: str) -> Question:
    """Return the question of a `search`."""
    known = ("query", "filters", "metadata", "top_k", "threshold", "fields", "categories", "latest_only")
    given = read_body(body, known)
    _refuse_categories(given)
    filters = read_filters(given, default_agent)
    if filters.keywords:
        _not_served("keywords in a search", "put them in the query")
    query = given.get("query")
    if not isinstance(query, str):
        refuse("query", query, "a text", "MISSING_FIELD" if query is None else "WRONG_TYPE")
    top_k = _whole("top_k", given.get("top_k", 10), MAX_MEMORIES)
    threshold = given.get("threshold", 0.0)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        refuse("threshold", threshold, "0-1, a share of the best score")
    fields: dict[str, Any] = {"query": query, "max_results": top_k}
    if filters.memory_ids is not None:
        # The operation has no such filter, so all results are looked at.
        fields["max_results"] = 0
    if filters.owner.run_id:
        fields["sources"] = [filters.owner.run_id]
    if filters.metadata:
        fields["metadata"] = filters.metadata
    if filters.begin_ms is not None or filters.end_ms is not None:
        fields["time_range"] = {"begin": filters.begin_ms, "end": filters.end_ms}
    if given.get("latest_only"):
        # The archive has earlier words.
        fields["archive"] = "never"
    return Question(Listing(filters, _names(given.get("fields", []))), fields, top_k, float(threshold))


def read_get_all(body: bytes, default_agent: str) -> Listing:
    """Return what a `get_all` lists."""
    known = ("filters", "metadata", "start_date", "end_date", "fields", "categories", "latest_only")
    given = read_body(body, known)
    _refuse_categories(given)
    return Listing(read_filters(given, default_agent), _names(given.get("fields", [])))


def read_update(body: bytes) -> dict[str, Any]:
    """Return the fields of a correction; none if nothing would change."""
    known = ("text", "metadata", "timestamp", "expiration_date")
    given = read_body(body, known)
    _refuse_expiration(given)
    if "timestamp" in given:
        _not_served("timestamp in an update", "add the memory with it")
    return _correction(given)


def read_batch(body: bytes, known: Collection[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the memories of a batch: their ids, and the fields of their corrections."""
    memories = read_body(body, ("memories",)).get("memories")
    if not isinstance(memories, list) or not 1 <= len(memories) <= MAX_MEMORIES:
        refuse("memories", memories, f"a list of 1-{MAX_MEMORIES} objects")
    found = []
    for at, one in enumerate(memories):
        if not isinstance(one, dict) or not isinstance(one.get("memory_id"), str):
            refuse(f"memories[{at}]", one, "an object with memory_id")
        name = next((name for name in one if name not in (*known, "memory_id")), None)
        if name is not None:
            raise unknown_field(name)
        found.append((one["memory_id"], _correction(one)))
    return found


def read_entities(query: Iterable[tuple[str, str]], default_agent: str) -> Owner:
    """Return the entities in the query of a `delete_all`."""
    given = list(query)
    for name, _ in given:
        if name not in ENTITIES:
            _not_served(f"{echo(name)} in the query", f"use {', '.join(ENTITIES)}")
    return _owner(_entities(given, "the query"), default_agent)


def read_page(query: Iterable[tuple[str, str]], default_size: int, limit: int) -> tuple[int, int]:
    """Return the page and its size in a query."""
    given = {"page": 1, "page_size": default_size}
    for name, text in query:
        if name not in given:
            _not_served(f"{echo(name)} in the query", "use page and page_size")
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        given[name] = _whole(
            name, int(text) if is_number else text, limit if name == "page_size" else 10**9, "INVALID_PAGE"
        )
    return given["page"], given["page_size"]


def read_body(body: bytes, known: Collection[str]) -> dict[str, Any]:
    """Return the fields of a JSON object but those that are null. Refuse fields with another name."""
    given = read_json(body or b"{}")
    if not isinstance(given, dict):
        refuse("the body", given, "a JSON object", "WRONG_TYPE")
    name = next((name for name in given if name not in known and name not in IGNORED), None)
    if name is not None:
        raise unknown_field(name, "it is not served here")
    return {name: value for name, value in given.items() if value is not None and name in known}


# --- filters -----------------------------------------------------------------------------------------------


def read_filters(given: Mapping[str, Any], default_agent: str) -> Filters:
    """Return the filters in a body."""
    entities: list[tuple[str, Any]] = []
    metadata: dict[str, Any] = {}
    begins: list[int] = []
    ends: list[int] = []
    ids: set[str] | None = None
    keywords = ""
    terms = list(_terms(given.get("filters", {})))
    terms += [("metadata", given["metadata"])] if "metadata" in given else []
    for name, value in terms:
        field = f"filters.{name}"
        if name in ENTITIES:
            entities.append((name, value))
        elif name == "metadata":
            for key, wanted in _object(field, value).items():
                _put(metadata, key, _bare(f"{field}.{key}", wanted), field)
        elif name in ("created_at", "timestamp"):
            _read_times(field, value, begins, ends)
        elif name == "memory_ids":
            found = _ids(field, value)
            ids = found if ids is None else ids & found
        elif name == "keywords":
            keywords = _one(field, value, "icontains")
            if not isinstance(keywords, str) or not keywords:
                refuse(field, value, "an object with icontains, a text")
        else:
            allowed = f"{', '.join(ENTITIES)}, metadata, created_at, timestamp, memory_ids, keywords, AND"
            _not_served(f"the filter {echo(name)}", f"use {allowed}")
    if "start_date" in given:
        begins.append(_time("start_date", given["start_date"]))
    if "end_date" in given:
        # A date without a time is the whole day.
        is_day = isinstance(given["end_date"], str) and len(given["end_date"]) == len("2026-05-01")
        ends.append(_time("end_date", given["end_date"]) + (DAY_MS if is_day else 1))
    owner = _owner(_entities(entities, "filters"), default_agent)
    return Filters(
        owner,
        {**metadata, **owner.metadata},
        max(begins, default=None),
        min(ends, default=None),
        None if ids is None else tuple(sorted(ids)),
        keywords,
    )


def _terms(given: Any, *, is_inner: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the conditions of a flat object, and of the objects in its `AND`."""
    for name, value in _object("filters", given).items():
        if name in ("OR", "NOT", "*") or (name == "AND" and is_inner):
            _not_served(name if name != "AND" else "AND within AND", "ask once for each")
        if name != "AND":
            yield name, value
            continue
        if not isinstance(value, list):
            refuse("filters.AND", value, "a list of objects", "WRONG_TYPE")
        for one in value:
            yield from _terms(one, is_inner=True)


def _entities(terms: Iterable[tuple[str, Any]], field: str) -> dict[str, str]:
    found: dict[str, Any] = {}
    for name, value in terms:
        if name not in ENTITIES:
            _not_served(f"{echo(name)} in {field}", f"use {', '.join(ENTITIES)}")
        if isinstance(value, dict):
            _not_served(f"a comparison of {name}", "give one id")
        if value == "*":
            _not_served(f"* as {name}", "give one id")
        if not isinstance(value, str) or not value.strip():
            refuse(name, value, "a text that is not empty", "WRONG_TYPE")
        _put(found, name, value, name)
    return found


def _owner(entities: Mapping[str, str], default_agent: str) -> Owner:
    user, agent = entities.get("user_id", ""), entities.get("agent_id", "")
    if user.startswith(AGENT_PREFIX):
        refuse("user_id", user, f"an id that does not begin with {AGENT_PREFIX}, as an agent_id is stored")
    second = {"app_id": entities.get("app_id", ""), "agent_id": agent if user else ""}
    named = user or (agent and AGENT_PREFIX + agent)
    if not named and not default_agent:
        description = "required, or agent_id; in filters for search and get_all"
        violations = [FieldViolation("user_id", description)]
        raise InvalidRequest(f"user_id: {description}", reason="MISSING_FIELD", violations=violations)
    return Owner(
        parsed_agent("user_id" if user else "agent_id", named) if named else default_agent,
        {STORED_AS[name]: value for name, value in second.items() if value},
        entities.get("run_id", ""),
    )


def parsed_agent(field: str, text: str) -> str:
    """Return the id of an agent. INVALID_AGENT_ID, with the name of the field."""
    try:
        return parse_agent_id(text)
    except InvalidRequest as error:
        [violation] = error.violations
        message = f"{field}: {echo(text)} {violation.description}; allowed: 1-128 characters, without slashes"
        named = [FieldViolation(field, violation.description)]
        raise InvalidRequest(message, reason=error.reason, violations=named) from None


def _put(found: dict[str, Any], name: str, value: Any, field: str) -> None:
    if name in found and found[name] != value:
        description = f"{echo(name)} is given twice with different values; give it once"
        raise InvalidRequest(f"{field}: {description}", violations=[FieldViolation(field, description)])
    found[name] = value


def _bare(field: str, value: Any) -> Any:
    found = _one(field, value, "eq") if isinstance(value, dict) else value
    if found == "*" or not isinstance(found, str | int | float):
        refuse(field, value, "a text, a number, true or false, or one of these under eq")
    return found


def _one(field: str, value: Any, operator: str) -> Any:
    if not isinstance(value, dict) or value.keys() != {operator}:
        refuse(field, value, f"an object with {operator} and nothing else")
    return value[operator]


def _ids(field: str, value: Any) -> set[str]:
    ids = value if isinstance(value, list) else _one(field, value, "in")
    if not isinstance(ids, list) or len(ids) > MAX_MEMORIES or not all(isinstance(one, str) for one in ids):
        refuse(field, value, f"an object with in, a list of at most {MAX_MEMORIES} ids")
    return set(ids)


def _read_times(field: str, value: Any, begins: list[int], ends: list[int]) -> None:
    if not isinstance(value, dict) or not value or not value.keys() <= {"gte", "gt", "lte", "lt"}:
        refuse(field, value, "an object with gte, gt, lte or lt")
    for operator, given in value.items():
        time_ms = _time(f"{field}.{operator}", given)
        # A period begins with its first millisecond, and ends before its last one.
        moved = time_ms + (operator in ("gt", "lte"))
        (begins if operator in ("gte", "gt") else ends).append(moved)


def _time(field: str, given: Any) -> int:
    """Return a time in milliseconds. mem0's clients send seconds since the epoch, or ISO 8601, else in UTC."""
    time_ms: float | None = None
    if isinstance(given, str):
        try:
            time = datetime.fromisoformat(given)
            time_ms = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError):
            pass
    elif isinstance(given, int | float) and not isinstance(given, bool):
        time_ms = given * 1000
    if time_ms is None or not EARLIEST_MS <= time_ms <= LATEST_MS:
        refuse(field, given, "seconds since the epoch, or ISO 8601 such as 2026-05-01T12:00:00Z")
    return round(time_ms)


# --- other values ------------------------------------------------------------------------------------------


def _messages(given: Any, timestamp: Any) -> Any:
    """Return messages as `remember` takes them; it refuses what is none."""
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [messages] if isinstance(messages, dict) else messages
    if not isinstance(messages, list):
        refuse("messages", given, "a text, a message, or a list of messages", "WRONG_TYPE")
    time_ms = None if timestamp is None else _time("timestamp", timestamp)
    return [_message(one, time_ms) for one in messages]


def _message(given: Any, time_ms: int | None) -> Any:
    if not isinstance(given, dict):
        return given
    message = dict(given)
    if isinstance(message.get("content"), dict):
        message["content"] = [message["content"]]
    if time_ms is not None:
        message.setdefault("timestamp", iso(time_ms))
    return message


def _correction(given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given.get("text") is not None:
        found["content"] = given["text"]
    if given.get("metadata") is not None:
        found["metadata"] = _object("metadata", given["metadata"])
    return found


def _object(field: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(field, value, "an object", "WRONG_TYPE")
    return value


def _names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or len(value) > 100 or not all(isinstance(one, str) for one in value):
        refuse("fields", value, "a list of names")
    return frozenset(value)


def _whole(field: str, value: Any, most: int, reason: str = "INVALID_VALUE") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        refuse(field, value, f"1-{most}", reason)
    return value


def _refuse_expiration(given: Mapping[str, Any]) -> None:
    if given.get("expiration_date") is not None:
        _not_served("expiration_date", "memories fade, but have no last day")


def _refuse_categories(given: Mapping[str, Any]) -> None:
    if given.get("categories"):
        _not_served("categories", "filter by metadata")


def _not_served(what: str, instead: str) -> NoReturn:
    raise InvalidRequest(f"{what} is not served here; {instead}")
