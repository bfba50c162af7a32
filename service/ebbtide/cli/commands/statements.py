"""`ebbtide profile` and `ebbtide statements`: what an agent knows, and changes of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ebbtide.cli.commands.create import link_of
from ebbtide.cli.commands.listings import metadata_of
from ebbtide.cli.commands.recall import exists, waiting_note
from ebbtide.cli.console import one_line, say, write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Json, Url
from ebbtide.cli.times import begin_ms

statements = typer.Typer(
    help="State, list, correct and retract what an agent knows; settle conflicts.", no_args_is_help=True
)


class Action(StrEnum):
    """The kinds of feedback."""

    PIN = "pin"
    UNPIN = "unpin"
    UPVOTE = "upvote"
    DOWNVOTE = "downvote"


def _at(name: str, text: str) -> Any:
    return typer.Option(name, parser=begin_ms, metavar="DAY|TIME", help=text)


AsOf = Annotated[int | None, _at("--as-of", "Answer for this day or time (UTC).")]
KnownAt = Annotated[int | None, _at("--known-at", "Answer as it was known at this day or time (UTC).")]
Node = Annotated[str, typer.Argument(metavar="STATEMENT", help="Id of the statement, such as n12.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; stored with the change.")]


def profile(
    entity: Annotated[
        str,
        typer.Argument(
            metavar="[ENTITY]",
            help="The person or thing, by its name or id; default: the user. Use --agent for the agent.",
        ),
    ] = "",
    agent: Agent = DEFAULT_AGENT,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show what an agent knows about the user, or about another person or thing."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.get_profile(agent, entity, as_of=as_of, known_at=known_at)
        is_agent = not found["text"] and bool(entity) and entity != agent and exists(remote, entity)
    if as_json:
        write_json(found)
    elif found["text"]:
        write_text(found["text"])
    else:
        hint = f" For the agent {entity}, use --agent {entity}." if is_agent else ""
        say(f"The agent {agent} knows nothing about {found['name']}.{hint}", "dim")


def why(
    node: Node,
    agent: Agent = DEFAULT_AGENT,
    depth: Annotated[int, typer.Option("--depth", help="Most links of a path, 1 to 4.")] = 3,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show why a statement is true: its causes, the causes of these, and how strong each path is."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.get_causes(agent, node, depth)
    if as_json:
        write_json(found)
        return
    for path in found["paths"]:
        _show_path(path)
    if not found["paths"]:
        say("No cause is known.", "dim")
    if found["truncated"]:
        say("There are further paths.", "dim")


def _show_path(path: dict[str, Any]) -> None:
    for place, step in enumerate(path["steps"]):
        inferred = " inferred" if step["inferred"] else ""
        link = f"{step['relation']} {step['strength']:.2f}{inferred}" if place else f"{path['strength']:.2f}"
        state = f"  ({step['state']})" if step["state"] not in ("", "current") else ""
        write_text(f"{'  ' * place}{step['id']:<6} [{link}] {one_line(step['content'])}{state}")


def consolidate(
    agent: Agent = DEFAULT_AGENT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what a run would change.")
    ] = False,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Consolidate the statements of an agent now instead of in the background."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        done = remote.consolidate(agent, dry_run=dry_run)
    if as_json:
        write_json(done)
        return
    verb = "would change" if dry_run else "changed"
    for step in done["steps"]:
        write_text(f"{step['step']:<10} looked at {step['looked']}, {verb} {step['changed']}")
        for found in step["findings"]:
            write_text(f"  {', '.join(found['node_ids'])}: {one_line(found['text'])}")


@statements.command("list")
def list_statements(
    agent: Agent = DEFAULT_AGENT,
    subject: Annotated[str, typer.Option("--subject", help="Only those about this entity.")] = "",
    topic: Annotated[str, typer.Option("--topic", help="Only those on this topic.")] = "",
    include_past: Annotated[
        bool, typer.Option("--past", help="Also those that ended, or were corrected or retracted.")
    ] = False,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata", metavar="NAME=VALUE", help="Only those of messages with this value; repeatable."
        ),
    ] = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List the statements of an agent, one per line."""
    from ebbtide.cli.remote import RemoteClient

    past = ("superseded", "ended", "corrected", "retracted", "forgotten") if include_past else ()
    states = ("current", "contested", "planned", *past) if include_past else ()
    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.list_statements(
            agent,
            subject=subject,
            topic=topic,
            states=states,
            as_of=as_of,
            known_at=known_at,
            metadata=metadata_of(metadata) or None,
        )
    if as_json:
        write_json(found)
        return
    for one in found:
        _show(one)


def _show(one: dict[str, Any]) -> None:
    from ebbtide.memory.wording import word_value

    value = one_line(word_value(one["slot"], one["object"], negated=one["negated"], is_chinese=False))
    further = f"  contradicts {', '.join(one['conflicts_with'])}" if one["conflicts_with"] else ""
    write_text(f"{one['id']:<6} {one['state']:<10} {one['subject']}  {one['slot']}: {value}{further}")


@statements.command("add")
def create_statement(
    subject: Annotated[str, typer.Argument(help="Whom or what it is about; I for the user.")],
    topic: Annotated[str, typer.Argument(help="The topic, such as residence.")],
    value: Annotated[str, typer.Argument(help="The value, such as Porto.")] = "",
    agent: Agent = DEFAULT_AGENT,
    since: Annotated[int | None, _at("--since", "From when it is true.")] = None,
    until: Annotated[int | None, _at("--until", "Until when it is true.")] = None,
    replaces: Annotated[str, typer.Option("--replaces", help="Id of the statement that it ends.")] = "",
    negated: Annotated[
        bool | None,
        typer.Option("--not/--affirmed", help="Whether the value is denied. Default: what --content says."),
    ] = None,
    content: Annotated[
        str, typer.Option("--content", help="The sentence that says it; default: subject, topic and value.")
    ] = "",
    links: Annotated[
        list[str] | None,
        typer.Option(
            "--link", metavar="NODE=NAME[:STRENGTH]", help="A further link such as n1=about:0.5; repeatable."
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="NAME=VALUE", help="A field to store with it; repeatable."),
    ] = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Store a statement."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        fields = {
            "since": since,
            "until": until,
            "replaces": replaces,
            "negated": negated,
            "content": content,
            "links": [link_of(option) for option in links or ()],
            "metadata": metadata_of(metadata) or None,
        }
        done = remote.create_statement(agent, subject, topic, value, **fields)
    if as_json:
        write_json(done)
        return
    _show(done)
    if not done["created"]:
        say("It was known already; its confidence has grown.", "dim")
    _show_ended(done)


def _show_ended(done: dict[str, Any]) -> None:
    if done["superseded"]:
        say(f"It ended {', '.join(done['superseded'])}.", "dim")


@statements.command("search")
def search_statements(
    query: Annotated[str, typer.Argument(help="A question in plain words.")],
    agent: Agent = DEFAULT_AGENT,
    most: Annotated[int, typer.Option("--max-results", help="Most statements.")] = 10,
    past: Annotated[bool, typer.Option("--past", help="Also those that are no longer true.")] = False,
    as_of: AsOf = None,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Find statements that answer a question, best first."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.search_statements(agent, query, max_results=most, include_past=past, as_of=as_of)
    if as_json:
        write_json(found)
        return
    for one in found["statements"]:
        _show(one)
    if waiting := waiting_note(found):
        say(waiting, "dim")


@statements.command("link")
def create_link(
    source: Annotated[str, typer.Argument(help="Id of the first node.")],
    target: Annotated[str, typer.Argument(help="Id of the second node.")],
    relation: Annotated[str, typer.Argument(help="causes, caused_by, supports, or another name.")],
    strength: Annotated[float, typer.Option("--strength", help="Above 0 to 1.")] = 0.6,
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Link two memories, statements or entities."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_json(remote.create_link(agent, source, target, relation, strength))


@statements.command("importance")
def set_importance(
    node: Node,
    importance: Annotated[float, typer.Argument(help="Strength of its links with entities, 0 to 1.")],
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Set how important a memory or a statement is."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_json(remote.set_importance(agent, node, importance))


@statements.command("history")
def get_statement_history(
    node: Node,
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Show all versions of the topic of a statement."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.get_statement_history(agent, node)
    if as_json:
        write_json(found)
        return
    for one in found["statements"]:
        _show(one)


@statements.command("show")
def get_statement(
    node: Node,
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Print a statement, with the words that support it, as JSON."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_json(remote.get_statement(agent, node))


@statements.command("correct")
def correct_statement(
    node: Node,
    value: Annotated[str | None, typer.Option("--value", help="The right value.")] = None,
    since: Annotated[int | None, _at("--since", "The right time from which it is true.")] = None,
    until: Annotated[int | None, _at("--until", "The right time until which it is true.")] = None,
    replaces: Annotated[
        str | None, typer.Option("--replaces", help="Id of the statement that it ends; empty for none.")
    ] = None,
    negated: Annotated[
        bool | None, typer.Option("--not/--affirmed", help="Whether the value is denied.")
    ] = None,
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """Correct a statement; the old one stays in the history."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        done = remote.correct_statement(
            agent,
            node,
            object=value,
            since=since,
            until=until,
            negated=negated,
            replaces=replaces,
            reason=reason,
        )
    if as_json:
        write_json(done)
        return
    _show(done)
    _show_ended(done)


@statements.command("retract")
def retract_statement(
    node: Node,
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Retract a statement that was never true."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.retract_statement(agent, node, reason)["ruling_id"])


@statements.command("conflicts")
def list_conflicts(
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List statements that contradict each other."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.list_conflicts(agent)
    if as_json:
        write_json(found)
        return
    for pair in found:
        _show(pair["first"])
        _show(pair["second"])


@statements.command("resolve")
def resolve_conflict(
    keep: Annotated[str, typer.Argument(help="Id of the statement that is true.")],
    drop: Annotated[str, typer.Argument(help="Id of the statement that it ends.")],
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Settle a conflict in favour of one statement."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.resolve_conflict(agent, keep, drop, reason)["ruling_id"])


@statements.command("merge")
def merge_entities(
    entity: Annotated[str, typer.Argument(help="A name, or the id of an entity.")],
    other: Annotated[str, typer.Argument(help="Another one that is the same.")],
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Treat two entities as one in every answer."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.merge_entities(agent, entity, other, reason)["ruling_id"])


@statements.command("merges")
def list_merges(
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List names that may mean one person or thing."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.list_merges(agent)
    if as_json:
        write_json(found)
        return
    for one in found:
        write_text(f"{one['first']} ({one['first_id']})  {one['second']} ({one['second_id']})  {one['why']}")


@statements.command("reject")
def reject_merge(
    entity: Annotated[str, typer.Argument(help="A name, or the id of an entity.")],
    other: Annotated[str, typer.Argument(help="Another one that is not the same.")],
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Reject a proposed merge; the two names are not proposed again."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.reject_merge(agent, entity, other, reason)["ruling_id"])


@statements.command("feedback")
def give_feedback(
    node: Node,
    action: Annotated[Action, typer.Argument(help="pin, unpin, upvote or downvote.")],
    reason: Reason = "",
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Pin a statement so that it is never forgotten, or vote on it."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.give_feedback(agent, node, action.value, reason)["ruling_id"])


@statements.command("rulings")
def list_rulings(
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    as_json: Json = False,
) -> None:
    """List merges, settled conflicts, corrections, retractions, pins and votes."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        found = remote.list_rulings(agent)
    if as_json:
        write_json(found)
        return
    for one in found:
        other = f" {one['other']}" if one["other"] else ""
        write_text(
            f"{one['id']:<6} {one['kind']:<8} {one['target']}{other}  {one_line(one['reason'])}".rstrip()
        )


@statements.command("undo")
def undo_ruling(
    ruling: Annotated[str, typer.Argument(metavar="RULING", help="Id of the ruling, such as r3.")],
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Undo a ruling; answers are then as if it had never been made."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.undo_ruling(agent, ruling)["ruling_id"])
