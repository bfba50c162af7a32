"""`ebbtide cluster`: create a cluster, show and check its state, drain nodes, rotate keys, and move agents into it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.console import counted, out, progress, say, warn_of_open_key, write_json
from ebbtide.cli.daemon_settings import given, settings_in_force
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.options import Json, MasterKeyFile

if TYPE_CHECKING:
    from ebbtide.cluster.checking import Checked
    from ebbtide.cluster.jetstream import Servers
    from ebbtide.cluster.names import Names
    from ebbtide.ids import AgentId
    from ebbtide.settings import ClusterSettings, Settings
    from ebbtide.store.encryption.seal import MasterKey

cluster = typer.Typer(
    no_args_is_help=True,
    help="Create a cluster, show its state, drain its nodes, rotate its keys, and move agents into it.",
)

CONNECT_S = 5.0
"""How long a command waits for the log servers."""

LEADER_S = 60.0
"""How long the creation of a cluster waits for their first leader."""

Addresses = Annotated[
    str | None,
    typer.Option("--servers", help="Addresses of the log servers, with commas; else cluster.servers."),
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the cluster; else cluster.name.")]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file (TOML).")]


@cluster.command("init")
def init(
    servers: Addresses = None,
    name: Name = None,
    replicas: Annotated[
        int, typer.Option("--replicas", min=1, max=5, help="Copies of each stream, on as many log servers.")
    ] = 3,
    slots: Annotated[int, typer.Option("--slots", min=1, max=16384, help="Slots of agents.")] = 1024,
    log_streams: Annotated[
        int, typer.Option("--log-streams", min=1, max=64, help="Streams that share the log.")
    ] = 4,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Create the streams of a cluster on the log servers. Once; the numbers of slots and streams are fixed."""
    with _connected(servers, name, config) as (connection, settings):
        from ebbtide.cluster.log import Timing
        from ebbtide.cluster.ownership import answered

        numbers = {"slot_count": slots, "log_streams": log_streams, "replicas": replicas}
        # Log servers that have just been started elect a leader first.
        streams = answered(lambda: connection.create(settings.name, **numbers), Timing(LEADER_S))
    if as_json:
        write_json({"cluster": settings.name, "streams": streams, "slots": slots, "replicas": replicas})
        return
    say(
        f"Created the cluster {settings.name}: {counted(len(streams), 'stream')} with {replicas} copies each."
    )
    say("Start each node with --cluster and a secret_file that all nodes share; see docs/cluster.md.", "dim")


@cluster.command("status")
def status(
    servers: Addresses = None, name: Name = None, config: Config = None, as_json: Json = False
) -> None:
    """Show the nodes that have a lease, their slots, and how many agents there are."""
    with _connected(servers, name, config) as (connection, settings):
        from ebbtide.cluster.status import read_status

        found = read_status(connection, settings)
    if as_json:
        write_json(found)
        return
    if found["nodes"]:
        table = Table(box=None, pad_edge=False)
        for title in ("node", "address", "version", "slots", "state"):
            table.add_column(title)
        for node in found["nodes"]:
            slots = f"{node['slots']:,}"
            table.add_row(node["name"], node["address"], node["version"], slots, node["state"])
        out().print(table)
    else:
        say("No node has started yet.")
    say(
        f"{counted(found['agents'], 'agent')} in {counted(found['slots'], 'slot')}, "
        f"{found['unowned_slots']:,} of them without a node."
    )
    if found["current_log_copies"] < found["log_copies"]:
        say(
            f"Only {found['current_log_copies']} of {found['log_copies']} copies of the log are current; missing: "
            f"{', '.join(found['missing_log_servers']) or 'a server'}.",
            "yellow",
        )


@cluster.command("drain")
def drain(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="The node, as `ebbtide cluster status` names it.")
    ],
    undo: Annotated[
        bool, typer.Option("--undo", help="Give the node its share of the slots again, without a restart.")
    ] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0, help="Most seconds to wait until the slots have moved.")
    ] = 60,
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Move all agents of a running node to the others. It gets none until it is started again."""
    with _connected(servers, name, config) as (connection, settings):
        from ebbtide.cluster.draining import drain as drain_node
        from ebbtide.cluster.draining import end_drain

        if undo:
            _say_undone(node, end_drain(connection, settings, node), as_json)
            return
        with progress(f"Draining {node}") as bar:
            task = bar.add_task("slots left", total=None)
            begun_s = time.monotonic()
            done = drain_node(
                connection,
                settings,
                node,
                timeout_s=timeout_s,
                on_progress=lambda left: bar.update(task, completed=left),
            )
            took_s = time.monotonic() - begun_s
    if as_json:
        write_json({"node": node, "left": done.left, "taken": done.taken, "took_s": round(took_s, 2)})
    if done.left:
        raise Failure(
            f"{node} still has {counted(done.left, 'slot')} after {took_s:.0f} s. It continues to give them away.",
            ExitCode.UNAVAILABLE,
            hint="Look at `ebbtide cluster status`, or end the drain with --undo.",
        )
    if not as_json:
        taken = ", ".join(f"{other} took {count}" for other, count in done.taken.items()) or "it had none"
        say(
            f"{node} owns no slots any more: {taken}, in {took_s:.1f} s. It can be stopped; a start ends the drain."
        )


def _say_undone(node: str, was_drained: bool, as_json: bool) -> None:
    if as_json:
        write_json({"node": node, "was_drained": was_drained})
    elif was_drained:
        say(f"{node} gets its share of the slots again.")
    else:
        say(f"{node} was not drained. Nothing changed.")


@cluster.command("check")
def check(
    agent_id: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="The agent. Without it, all agents are checked.")
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file", help="The secret of the nodes; else cluster.secret_file. To compare files."
        ),
    ] = None,
    master_key_file: MasterKeyFile = None,
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Check the hashes of the log, and compare what it leads to with the file of each agent's owner.

    Without the secret only the hashes are checked. With it, the exit code is 9 if a file could not be compared.
    """
    import asyncio
    from dataclasses import asdict

    with _connected(servers, name, config, secret_file) as (connection, settings):
        from ebbtide.cluster.checking import Checker
        from ebbtide.cluster.snapshot_setting import used_snapshots
        from ebbtide.cluster.status import agents_in, used_names
        from ebbtide.ids import parse_agent_id
        from ebbtide.store.encryption.keys import master_key_of

        whole = _settings(servers, name, config, secret_file, master_key_file)
        master = master_key_of(whole.encryption)
        names = used_names(connection, settings)
        _refuse_other_key(connection, names, master)
        secret = _secret(connection, names, settings) if settings.secret_file else b""
        snapshots = used_snapshots(connection, names, settings)
        checker = Checker(connection, names, settings, secret, master, snapshots)
        if agent_id is None:
            agents = sorted(agents_in(connection, names, range(names.slot_count)))
        else:
            agents = [parse_agent_id(agent_id)]

        async def check_all() -> list[Checked]:
            with progress("Checking") as bar:
                return [await checker.check(one) for one in bar.track(agents)]

        checked = asyncio.run(check_all())
    if agent_id is not None and not checked[0].last:
        raise Failure(f"The cluster {settings.name} has no log of an agent {agent_id}.", ExitCode.NOT_FOUND)
    if as_json:
        write_json([asdict(one) for one in checked])
    else:
        _print_checked(checked, is_without_files=not secret)
    if any(one.fault for one in checked):
        raise typer.Exit(ExitCode.DAMAGED)
    if secret and any(one.not_compared for one in checked):
        raise typer.Exit(ExitCode.UNAVAILABLE)


def _print_checked(checked: Sequence[Checked], *, is_without_files: bool) -> None:
    """Print a table of the logs, the faults in words, and the numbers. `is_without_files`: only logs were read."""
    table = Table(box=None, pad_edge=False)
    for title in ("agent", "owner", "records", "bytes", "last record", "log and file"):
        table.add_column(title)
    for one in checked:
        state = (
            "FAULT"
            if one.fault
            else "deleted"
            if not one.exists
            else "log only"
            if one.not_compared
            else "equal"
        )
        numbers = (f"{one.records:,}", f"{one.size_bytes:,}", str(one.last))
        table.add_row(one.agent_id, one.owner, *numbers, state)
    out().print(table)
    for one in checked:
        if one.fault:
            say(f"{one.agent_id}: {one.fault}", "bold red")
        elif one.not_compared and one.exists and not is_without_files:
            say(f"{one.agent_id}: {one.not_compared}", "yellow")
    if is_without_files:
        say("The files of the owners were not compared: pass --secret-file.", "yellow")
    faults = sum(bool(one.fault) for one in checked)
    say(f"{counted(len(checked), 'log')} checked, {counted(faults, 'fault')}.")


@cluster.command("rotate-key")
def rotate_key(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help="Only these agents.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every agent.")] = False,
    secret_file: Annotated[
        Path | None,
        typer.Option("--secret-file", help="The secret of the nodes; else cluster.secret_file."),
    ] = None,
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Encrypt agents with new data keys, while the nodes run, and destroy the old keys.

    Requests for an agent wait meanwhile. Agents that are not encrypted are encrypted. Backups made with an old key
    become unreadable.
    """
    import asyncio

    if bool(agents) == every:
        raise Failure("Name the agents, or pass --all; not both.", ExitCode.USAGE)
    with _connected(servers, name, config, secret_file) as (connection, settings):
        from ebbtide.cluster.owners import Owners
        from ebbtide.cluster.status import agents_in, used_names
        from ebbtide.errors import EbbtideError
        from ebbtide.ids import parse_agent_id

        names = used_names(connection, settings)
        if not settings.secret_file:
            raise Failure("The secret of the nodes is required: pass --secret-file.", ExitCode.USAGE)
        owners = Owners(connection, names, settings, _secret(connection, names, settings))
        timeout_s = _settings(servers, name, config, secret_file).limits.transfer_timeout_s
        chosen = (
            sorted(agents_in(connection, names, range(names.slot_count)))
            if every
            else [parse_agent_id(agent) for agent in agents or []]
        )

        async def rotate(agent_id: AgentId) -> tuple[str, str]:
            try:
                return await owners.rotate_key(agent_id, timeout_s), ""
            except EbbtideError as error:
                if every and error.reason == "AGENT_NOT_FOUND":
                    return "", ""  # it was deleted
                return "", error.message

        async def rotate_all() -> dict[str, tuple[str, str]]:
            with progress("Rotating keys") as bar:
                return {agent_id: await rotate(agent_id) for agent_id in bar.track(chosen)}

        done = asyncio.run(rotate_all())
    rotated = {agent: key for agent, (key, _) in done.items() if key}
    failed = {agent: why for agent, (_, why) in done.items() if why}
    if as_json:
        write_json({"rotated": rotated, "failed": failed})
    else:
        for agent, key in rotated.items():
            say(f"{agent}  encrypted with new key {key}")
        for agent, why in failed.items():
            say(f"{agent}: {why}", "bold red")
    if failed:
        raise typer.Exit(ExitCode.UNAVAILABLE)


@cluster.command("rotate-master-key")
def rotate_master_key(
    old_key_file: Annotated[Path, typer.Option("--old-key-file", help="File with the present master key.")],
    new_key_file: Annotated[Path, typer.Option("--new-key-file", help="File with the new master key.")],
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Wrap the data keys of all agents with another master key, while all nodes are stopped.

    No agent is rewritten. After an interruption run it again with the same two keys.
    """
    from ebbtide.store.encryption.keys import read_master_key

    old, new = read_master_key(old_key_file), read_master_key(new_key_file)
    if old.fingerprint == new.fingerprint:
        raise Failure("The two files have the same master key.", ExitCode.USAGE)
    for file in (old_key_file, new_key_file):
        warn_of_open_key(file, f"the file {file} of a master key")
    with _connected(servers, name, config) as (connection, settings):
        from ebbtide.cluster.master_key import rotate_master_key as rotate

        with progress("Wrapping keys") as bar:
            done = rotate(connection, settings, old, new, track=bar.track)
    if as_json:
        write_json(
            {"rotated": done.rotated, "left_out": done.left_out, "master_key_fingerprint": new.fingerprint}
        )
        return
    say(
        f"The keys of {counted(done.rotated, 'agent')} are wrapped with the master key {new.fingerprint}. "
        "Start the nodes with it."
    )
    for directory, why in done.left_out.items():
        say(f"Left out {directory}: {why}", "yellow")


@cluster.command("adopt")
def adopt(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="The data directory; no daemon may use it.")
    ] = None,
    master_key_file: MasterKeyFile = None,
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Move the agents of a single machine into a cluster. Agents that the cluster has already are left out."""
    from ebbtide.cli.offline import locked

    with (
        _connected(servers, name, config) as (connection, settings),
        locked(data_dir, master_key_file) as (data, _),
    ):
        from ebbtide.cluster.adoption import adopt_all

        done = adopt_all(data, connection, settings)
    if as_json:
        write_json({"adopted": done.adopted, "left_out": done.left_out})
        return
    say(f"Moved {counted(len(done.adopted), 'agent')} into the cluster.")
    for agent_id, why in done.left_out.items():
        say(f"Left out {agent_id}: {why}")


@cluster.command("repair")
def repair(
    agent_id: Annotated[str, typer.Argument(metavar="AGENT", help="The agent whose log is to be replaced.")],
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="The data directory of its owner; no daemon may use it.")
    ] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Replace the log even if it has later records than the file.")
    ] = False,
    master_key_file: MasterKeyFile = None,
    servers: Addresses = None,
    name: Name = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Replace a log that is damaged or lacks records (LOG_BEHIND) by the content of the agent's file on this node."""
    from ebbtide.cli.offline import locked
    from ebbtide.ids import parse_agent_id

    with (
        _connected(servers, name, config) as (connection, settings),
        locked(data_dir, master_key_file) as (data, _),
    ):
        from ebbtide.cluster.adoption import repair as repair_log

        done = repair_log(data, connection, settings, parse_agent_id(agent_id), discards=discard)
    if as_json:
        write_json({"agent_id": agent_id, "file_head": done.file_head, "log_head": done.log_head})
        return
    say(
        f"The log of {agent_id} has the content of the file now. The file ended with record {done.file_head}, "
        f"the log with record {done.log_head}."
    )


def _secret(connection: Servers, names: Names, settings: ClusterSettings) -> bytes:
    """Return the secret in the file of the settings. Raise a Failure if it is not that of the nodes."""
    from ebbtide.cluster.node import fingerprint, read_secret

    secret, known = read_secret(settings.secret_file), connection.read(names.secret)
    if known is not None and known[0].decode() != fingerprint(secret):
        raise Failure(
            f"{settings.secret_file} is not the secret of the nodes of this cluster.", ExitCode.USAGE
        )
    return secret


def _refuse_other_key(connection: Servers, names: Names, master: MasterKey | None) -> None:
    """Raise a Failure if a master key is not that of the nodes."""
    known = connection.read(names.master_key)
    # While it is being rotated there are two.
    fingerprints = [] if known is None else known[0].decode().split()
    if master is not None and fingerprints and master.fingerprint not in fingerprints:
        raise Failure(
            f"{master.fingerprint} is not the master key of the nodes of this cluster, which is "
            f"{' or '.join(fingerprints)}.",
            ExitCode.USAGE,
        )


@contextmanager
def _connected(
    servers: str | None, name: str | None, config: Path | None, secret_file: Path | None = None
) -> Iterator[tuple[Servers, ClusterSettings]]:
    """Connect to the log servers for the block."""
    settings = _settings(servers, name, config, secret_file).cluster
    if not settings.servers:
        raise Failure("No log servers are configured.", ExitCode.USAGE, hint="Pass --servers nats://a:4222.")
    try:
        from ebbtide.cluster.jetstream import Servers
        from ebbtide.cluster.log import NoAnswer
        from ebbtide.telemetry import configure_log
    except ModuleNotFoundError:
        raise Failure(
            "The client of the log servers is not installed.",
            ExitCode.UNAVAILABLE,
            hint="pip install 'ebbtide[cluster]'",
        ) from None
    connection = Servers(
        settings.servers, credentials_file=settings.credentials_file, tls_ca_file=settings.tls_ca_file
    )
    try:
        configure_log("error", "console")
        connection.connect(CONNECT_S)
        yield connection, settings
    except NoAnswer as error:
        why = f": {error}" if str(error) else ""
        raise Failure(
            f"The log servers do not answer{why}.",
            ExitCode.UNAVAILABLE,
            hint="More than half of them must run.",
        ) from None
    finally:
        connection.close()


def _settings(
    servers: str | None,
    name: str | None,
    config: Path | None,
    secret_file: Path | None,
    master_key_file: Path | None = None,
) -> Settings:
    """Return the settings with these flags."""
    flags: dict[str, dict[str, Any]] = {
        "cluster": {
            "servers": None if servers is None else tuple(servers.split(",")),
            "name": name,
            "secret_file": None if secret_file is None else str(secret_file),
        },
        "encryption": {"master_key_file": None if master_key_file is None else str(master_key_file)},
    }
    return settings_in_force(given(flags), config)
