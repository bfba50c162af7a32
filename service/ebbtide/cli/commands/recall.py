"""`ebbtide recall`: print what an agent remembers, as text for a language model.

Standard output contains exactly this text. Messages for the person go to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.console import counted, say, write_json, write_text
from ebbtide.cli.credentials import Credentials, credentials
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import (
    DEFAULT_AGENT,
    DEFAULT_URL,
    Agent,
    ApiKeyFile,
    ArchiveUse,
    CaFile,
    ClientCert,
    Dates,
    Explain,
    Json,
    KeySentences,
    Kinds,
    Mode,
    PatienceMs,
    Query,
    Since,
    Sources,
    Speakers,
    StartNodes,
    TokenBudget,
    Tokenizer,
    Until,
    Url,
    Without,
)
from ebbtide.cli.times import check_range

if TYPE_CHECKING:
    from ebbtide.cli.remote import RemoteClient

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORD]...",
        help="Keywords: memories that contain more of them, or are about them, come first.",
    ),
]


def recall(
    words: Words = None,
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    query: Query = None,
    mode: Mode = None,
    speaker: Speakers = None,
    source: Sources = None,
    since: Since = None,
    until: Until = None,
    kind: Kinds = None,
    start_node: StartNodes = None,
    without: Without = None,
    archive: ArchiveUse = None,
    budget: TokenBudget = None,
    tokenizer: Tokenizer = None,
    key_sentences: KeySentences = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="Add the source of each memory; with --query.")
    ] = False,
    explain: Explain = False,
    dates: Dates = None,
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", "-r", help="Follow only links with this name; repeatable."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", help="Hops from where the search starts, 0-8; default: the agent's."),
    ] = None,
    max_results: Annotated[
        int | None,
        typer.Option(
            "--max-results",
            help="Maximum number of memories in the answer; 0 means 10000; default for a query: 20.",
        ),
    ] = None,
    patience_ms: PatienceMs = None,
    as_json: Json = False,
) -> None:
    """Recall memories that contain a word, or answer a --query. Without either: all memories near the focus."""
    check_range(since, until)
    command = _given(
        keywords=words or [],
        relations=relation or [],
        query=query,
        mode=mode,
        speakers=speaker or None,
        sources=source or None,
        time_range=_given(begin=since, end=until) or None,
        kinds=kind or None,
        start_nodes=start_node or None,
        without=without or None,
        archive=archive,
        token_budget=budget,
        tokenizer=tokenizer,
        key_sentences=key_sentences or None,
        citations=sources or None,
        explain=explain or None,
        dates=dates,
        depth=depth,
        max_results=max_results,
        patience_ms=patience_ms,
    )
    nothing = nothing_found(words or [], agent, query, is_narrowed=any(name in command for name in NARROWING))
    shown = credentials(api_key_file, ca_file, client_cert)
    _print(command, agent, url, shown, nothing, as_json=as_json)


NARROWING = (
    "speakers",
    "sources",
    "time_range",
    "kinds",
    "without",
    "archive",
    "token_budget",
)
"""Filters and limits that may be the cause of an empty answer."""


def _given(**options: object) -> dict[str, object]:
    """Return the options that were given. The daemon has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}


def _print(
    command: dict[str, object], agent: str, url: str, shown: Credentials, nothing: str, *, as_json: bool
) -> None:
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, shown) as remote:
        answer = remote.recall(agent, command)
        is_unknown = not answer["text"] and not exists(remote, agent)
    if as_json:
        write_json(answer)
        return
    if answer["relations_unknown"]:
        say(f"Ignored relations that nothing has: {', '.join(answer['relations_unknown'])}.", "dim")
    if answer["text"]:
        write_text(answer["text"])
    else:
        say(f"There is no agent {agent}." if is_unknown else nothing, "dim")
    waiting = waiting_note(answer)
    if waiting:
        say(waiting, "dim")


def exists(remote: RemoteClient, agent: str) -> bool:
    """Return whether an agent exists, to explain an empty answer."""
    try:
        remote.get_agent(agent)
    except Failure as failure:
        return failure.reason != "AGENT_NOT_FOUND"
    return True


def nothing_found(
    words: list[str], agent: str, query: str | None = None, *, is_narrowed: bool = False
) -> str:
    """Return the message for an empty answer."""
    if query is not None and is_narrowed:
        return f"{agent} has no answer within these limits. Try fewer options."
    if query is not None:
        return f"{agent} has no answer to this."
    if words:
        named = " or ".join(f'"{word}"' for word in words)
        return f"No memory matches {named}. Try other words, or --query to search everything for an answer."
    return f"No memories: {agent} has nothing in focus yet."


def waiting_note(answer: Mapping[str, Any]) -> str:
    """Return a note about what the answer may lack; empty if it lacks nothing."""
    parts = []
    if pending := answer.get("pending_batches", 0):
        parts.append(f"{counted(pending, 'batch', 'batches')} not digested yet")
    if parked := answer.get("parked_batches", 0):
        parts.append(f"{counted(parked, 'batch', 'batches')} parked after failures")
    if unembedded := answer["unembedded_messages"]:
        parts.append(f"{counted(unembedded, 'message', 'messages')} found only by words so far")
    return f"({'; '.join(parts)})" if parts else ""
