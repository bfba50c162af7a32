"""`ebbtide recall`: what an agent remembers, as the text a language model would be given.

Standard output carries that text byte for byte and nothing else; what else is worth knowing goes to
standard error.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ebbtide.cli.console import counted, say, write_json, write_text
from ebbtide.cli.credentials import Credentials, credentials
from ebbtide.cli.options import (
    DEFAULT_AGENT,
    DEFAULT_URL,
    Agent,
    ApiKeyFile,
    ArchiveUse,
    CaFile,
    ClientCert,
    Json,
    KeySentences,
    Kinds,
    Mode,
    NoArchive,
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
from ebbtide.cli.times import check_stretch

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]...", help="A memory matches when any of them occurs in it."),
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
    no_archive: NoArchive = False,
    archive: ArchiveUse = None,
    budget: TokenBudget = None,
    tokenizer: Tokenizer = None,
    key_sentences: KeySentences = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="Name the source of each memory; with --query.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="With --json and --query: tell how the answer came about.")
    ] = False,
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", "-r", help="Follow only links of this name; repeatable."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", help="Hops from the focus, 0-8; default: the agent's.")
    ] = None,
    max_results: Annotated[
        int | None, typer.Option("--max-results", help="Most memories in the answer; 0 means 10000.")
    ] = None,
    patience_ms: Annotated[
        int | None,
        typer.Option("--patience-ms", help="Longest wait for batches not yet digested, 0-30000."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recall what matches; without a word, everything in reach of the focus."""
    check_stretch(since, until)
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
        archive="never" if no_archive else archive,
        token_budget=budget,
        tokenizer=tokenizer,
        key_sentences=key_sentences or None,
        citations=sources or None,
        explain=explain or None,
        depth=depth,
        max_results=max_results,
        patience_ms=patience_ms,
    )
    nothing = nothing_found(words or [], agent, query, is_narrowed=any(name in command for name in NARROWING))
    shown = credentials(api_key_file, ca_file, client_cert)
    _tell(command, agent, url, shown, nothing, as_json=as_json)


NARROWING = (
    "speakers",
    "sources",
    "time_range",
    "kinds",
    "without",
    "archive",
    "token_budget",
)
"""Fields that may be why a question found nothing."""


def _given(**options: object) -> dict[str, object]:
    """The options that were named: for the others the daemon's defaults hold."""
    return {name: value for name, value in options.items() if value is not None}


def _tell(
    command: dict[str, object], agent: str, url: str, shown: Credentials, nothing: str, *, as_json: bool
) -> None:
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, shown) as remote:
        answer = remote.recall(agent, command)
    if as_json:
        write_json(answer)
        return
    if answer["text"]:
        write_text(answer["text"])
    else:
        say(nothing, "dim")
    waiting = what_waits(answer["pending_batches"], answer["parked_batches"])
    if waiting:
        say(waiting, "dim")


def nothing_found(
    words: list[str], agent: str, query: str | None = None, *, is_narrowed: bool = False
) -> str:
    """What is said when the answer is empty."""
    if query is not None and is_narrowed:
        return f"Nothing that {agent} heard answers this within these limits. Try fewer options."
    if query is not None:
        return f"{agent} never heard anything that answers this."
    if words:
        return (
            f"Nothing comes to mind for {', '.join(words)}. "
            "Try other words, --depth 8, or no word at all for everything in reach."
        )
    return f"Nothing comes to mind: {agent} has nothing in focus yet."


def what_waits(pending: int, parked: int) -> str:
    """What the answer could not know yet; empty when there is nothing of the kind."""
    parts = []
    if pending:
        parts.append(f"{counted(pending, 'batch', 'batches')} not digested yet")
    if parked:
        parts.append(f"{counted(parked, 'batch', 'batches')} parked after failures")
    return f"({'; '.join(parts)})" if parts else ""
