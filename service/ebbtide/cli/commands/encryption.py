"""`ebbtide encryption …`: show and change the encryption of agents, offline.

A change of an agent's key writes a second store next to the old one, and replaces the old one with one rename. Repeat
a command that was interrupted. Irreversible commands ask for confirmation, unless `--yes` is given.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.console import counted, err, out, say, warn_of_open_key, write_json
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, program
from ebbtide.cli.options import DataDir, Json, MasterKeyFile

if TYPE_CHECKING:
    from ebbtide.ids import AgentId
    from ebbtide.store.directory.data_directory import DataDirectory

encryption = typer.Typer(
    name="encryption", help="Show which agents are encrypted, and change keys, offline.", no_args_is_help=True
)

Agents = Annotated[list[str] | None, typer.Argument(metavar="[AGENT]...", help="Only these agents.")]
One = Annotated[str, typer.Argument(metavar="AGENT", help="The agent.")]
All = Annotated[bool, typer.Option("--all", help="Every agent.")]


@encryption.command("status")
def status(data_dir: DataDir = None, master_key_file: MasterKeyFile = None, as_json: Json = False) -> None:
    """Show which agents are encrypted, and the fingerprints of their keys. Needs no master key."""
    from ebbtide.cli.offline import locked

    with locked(data_dir, master_key_file) as (data, _):
        master = data.keys.master_fingerprint()
        rows = [_shown(data, directory) for directory in data.directories()]
    if as_json:
        write_json({"master_key": master, "agents": rows})
        return
    say(f"Master key: {master or 'none, new agents are not encrypted'}.")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for name in ("agent", "encrypted", "key"):
        table.add_column(name, overflow="fold")
    for row in rows:
        encrypted = ("yes" if row["has_key"] else "key destroyed") if row["encrypted"] else "no"
        table.add_row(row["agent_id"], encrypted, row["key_fingerprint"])
    out().print(table)


def _shown(data: DataDirectory, directory: str) -> dict[str, Any]:
    meta = data.meta(directory)
    return {
        "agent_id": directory if meta is None else meta.agent_id,
        "encrypted": meta is not None and meta.encrypted,
        "key_fingerprint": "" if meta is None else meta.key_fingerprint,
        "has_key": data.keys.has_keys(directory),
    }


@encryption.command("encrypt")
def encrypt(
    agents: Agents = None,
    every: All = False,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Encrypt agents that are not encrypted yet."""
    from ebbtide.cli.offline import locked
    from ebbtide.store.transfer.rewrite import seal_agent

    with locked(data_dir, master_key_file) as (data, _):
        for agent_id in _changeable(data, agents, every):
            if _is_encrypted(data, agent_id):
                say(f"{agent_id}  is already encrypted")
            else:
                say(f"{agent_id}  encrypted with key {seal_agent(data, agent_id)}")


@encryption.command("rotate")
def rotate(
    agents: Agents = None,
    every: All = False,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Encrypt agents with new keys. The old keys are destroyed, and backups made with them become unreadable."""
    from ebbtide.cli.offline import locked
    from ebbtide.store.transfer.rewrite import seal_agent

    with locked(data_dir, master_key_file) as (data, _):
        for agent_id in _changeable(data, agents, every):
            if _is_encrypted(data, agent_id):
                say(f"{agent_id}  encrypted with new key {seal_agent(data, agent_id)}")
            else:
                say(f"{agent_id}  is not encrypted; `{program()} encryption encrypt` encrypts it")


@encryption.command("decrypt")
def decrypt(
    agents: Agents = None,
    every: All = False,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Decrypt agents. Their keys are destroyed, and backups made with them become unreadable."""
    from ebbtide.cli.offline import locked
    from ebbtide.store.transfer.rewrite import unseal_agent

    with locked(data_dir, master_key_file) as (data, _):
        hint = "An agent of a cluster is not decrypted in place; an export of it is not encrypted."
        for agent_id in _changeable(data, agents, every, hint):
            was_sealed = unseal_agent(data, agent_id)
            say(f"{agent_id}  {'decrypted' if was_sealed else 'is not encrypted'}")


@encryption.command("rotate-master")
def rotate_master(
    new_key_file: Annotated[
        Path,
        typer.Option("--new-key-file", help="File with the new master key. The settings name the old one."),
    ],
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Encrypt the keys of all agents with another master key. The stores of the agents do not change."""
    from ebbtide.cli.offline import locked
    from ebbtide.store.encryption.keys import read_master_key

    new = read_master_key(new_key_file)
    warn_of_open_key(new_key_file, "the file of the new master key")
    with locked(data_dir, master_key_file) as (data, _):
        logged = next(filter(data.has_log, data.directories()), None)
        if logged is not None:
            raise Failure(
                "This data directory belongs to a node of a cluster. All nodes share the master key, and the keys of "
                "agents that it encrypts are also on the log servers. Nothing was changed.",
                ExitCode.REFUSED,
                hint=f"Stop all nodes and run `{program()} cluster rotate-master-key`.",
            )
        rotated = data.keys.rotate_master(new)
    say(
        f"{counted(rotated, 'key')} encrypted with master key {new.fingerprint}. Set it before the next start."
    )


@encryption.command("destroy")
def destroy(
    agent: One,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    data_dir: DataDir = None,
    master_key_file: MasterKeyFile = None,
) -> None:
    """Destroy an agent's key: the agent and its backups become unreadable. Irreversible. Needs no master key."""
    from ebbtide.actor import NO_ACTOR
    from ebbtide.cli.offline import locked
    from ebbtide.clock import SystemClock
    from ebbtide.store.chain import AuditEntry
    from ebbtide.store.directory.data_directory import directory_name

    with locked(data_dir, master_key_file) as (data, _):
        [agent_id] = _chosen(data, [agent], every=False)
        directory = directory_name(agent_id)
        if data.has_log(directory):
            raise Failure(
                f"{agent} belongs to a cluster: its key is also on the log servers. Nothing was destroyed.",
                ExitCode.REFUSED,
                hint=f"Delete it through a running node, which destroys its key everywhere: `{program()} delete`.",
            )
        if not data.keys.has_keys(directory):
            raise Failure(f"{agent} has no key in {data.root}.", ExitCode.NOT_FOUND)
        if not yes:
            _ask(agent)
        # Write the record before the key is destroyed. Its fingerprint identifies the backups of that key.
        meta = data.meta(directory)
        details: dict[str, object] = {} if meta is None else {"key_fingerprint": meta.key_fingerprint}
        entry = AuditEntry(SystemClock().now_ms(), NO_ACTOR, "key_destroyed", details)
        data.erased.append(entry, agent_id, b"")
        data.keys.destroy(directory)
    say(f"The key of {agent} is destroyed, and its files are unreadable. Delete the agent to remove them.")


def _chosen(data: DataDirectory, agents: list[str] | None, every: bool) -> list[AgentId]:
    from ebbtide.ids import AgentId, parse_agent_id
    from ebbtide.store.directory.data_directory import directory_name

    if bool(agents) == every:
        raise Failure("Name the agents, or pass --all; not both.", ExitCode.USAGE)
    if every:
        metas = [data.meta(directory) for directory in data.directories()]
        return [AgentId(meta.agent_id) for meta in metas if meta is not None]
    chosen = [parse_agent_id(agent) for agent in agents or []]
    for agent_id in chosen:
        if not (data.agents / directory_name(agent_id)).is_dir():
            raise Failure(f"There is no agent {agent_id} in {data.root}.", ExitCode.NOT_FOUND)
    return chosen


def _changeable(data: DataDirectory, agents: list[str] | None, every: bool, hint: str = "") -> list[AgentId]:
    """Return the chosen agents. Raise a Failure with a hint for one whose file is a copy of a log."""
    from ebbtide.store.directory.data_directory import directory_name

    chosen = _chosen(data, agents, every)
    for agent_id in chosen:
        if data.has_log(directory_name(agent_id)):
            raise Failure(
                f"{agent_id} belongs to a cluster: its log, and its copies on other nodes, are encrypted as this file "
                "is. Nothing was changed.",
                ExitCode.REFUSED,
                hint=hint
                or f"`{program()} cluster rotate-key` encrypts it with a new key, while the nodes run.",
            )
    return chosen


def _is_encrypted(data: DataDirectory, agent_id: AgentId) -> bool:
    """Return whether the store is encrypted. After an interrupted command, `meta.json` may be outdated."""
    store = data.open_store(agent_id)
    try:
        return bool(store.sealed_with)
    finally:
        store.close()


def _ask(agent: str) -> None:
    if not sys.stdin.isatty():
        raise Failure(
            "Confirmation required, but standard input is not a terminal. Nothing was destroyed; pass --yes.",
            ExitCode.USAGE,
        )
    say(f"The memory of {agent} and its backups will become unreadable.")
    err().print("Destroy the key for good? \\[y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("Nothing was destroyed.", ExitCode.REFUSED)
