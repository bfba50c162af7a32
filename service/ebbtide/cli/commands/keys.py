"""`ebbtide keys`: create, list and revoke API keys in the data directory.

A running daemon notices changes within about a second. A key is printed once, at its creation, on standard output.
Only its hash is stored, so it cannot be shown again.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.console import counted, local_time, out, say, write_json, write_text
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure, new_key_command, sentence
from ebbtide.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ebbtide.access.key_file import KeyFile
    from ebbtide.access.keys import Key

MS_PER_DAY = 86_400_000
MAX_DAYS = 36_500
LONGEST_NAME = 200

keys = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.")

Where = Annotated[
    Path | None,
    typer.Option("--data-dir", help="The data directory; a daemon may be using it.", show_default=False),
]


@keys.command("create")
def create(
    scope: Annotated[
        list[str], typer.Option("--scope", help="read, write or admin; several with commas; repeatable.")
    ],
    agent: Annotated[
        list[str] | None, typer.Option("--agent", "-a", help="Allow this agent; repeatable.")
    ] = None,
    agent_prefix: Annotated[
        list[str] | None,
        typer.Option("--agent-prefix", help="Allow agents whose ids begin with this; repeatable."),
    ] = None,
    all_agents: Annotated[bool, typer.Option("--all-agents", help="Allow all agents.")] = False,
    name: Annotated[str, typer.Option("--name", help="A note, shown by `keys list`.")] = "",
    expires_days: Annotated[
        int | None, typer.Option("--expires-days", min=1, max=MAX_DAYS, help="Days until it expires.")
    ] = None,
    requests_per_s: Annotated[
        float | None,
        typer.Option(
            "--requests-per-s", min=0.001, max=1e6, help="Rate limit of this key, instead of the setting."
        ),
    ] = None,
    max_agents: Annotated[
        int | None,
        typer.Option(
            "--max-agents",
            min=0,
            help="Maximum number of agents of this key, instead of the setting; 0: no limit.",
        ),
    ] = None,
    data_dir: Where = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. It is not shown again."""
    from ebbtide.access.keys import Key, hash_of, new_id, new_secret, written

    bound = _bound(agent or [], agent_prefix or [], all_agents=all_agents)
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Failure(
            f"--name: at most {LONGEST_NAME} characters, none of them a control character.", ExitCode.USAGE
        )
    secret, now_ms = new_secret(), _now_ms()
    key = Key(
        id=new_id(),
        name=name,
        secret_sha256=hash_of(secret),
        scopes=_scopes(scope),
        created_at_ms=now_ms,
        expires_at_ms=None if expires_days is None else now_ms + expires_days * MS_PER_DAY,
        requests_per_s=requests_per_s,
        max_agents=max_agents,
        **bound,
    )
    _change(_file(data_dir), lambda known: ([*known, key], None))
    if as_json:
        write_json({**_shown(key, now_ms), "key": written(key.id, secret)})
        return
    write_text(written(key.id, secret))
    say("Save it now: it is not shown again.", "dim")


@keys.command("list")
def list_keys(data_dir: Where = None, as_json: Json = False) -> None:
    """List keys, including revoked and expired ones, without their secrets."""
    now_ms = _now_ms()
    found = [_shown(key, now_ms) for key in _existing_file(data_dir).read()]
    if as_json:
        write_json({"keys": found})
    elif found:
        out().print(_table(found))
    else:
        place = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
        say(f"No keys yet. `{new_key_command()}{place}` creates one.", "dim")


@keys.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
    data_dir: Where = None,
    as_json: Json = False,
) -> None:
    """Revoke a key. Irreversible."""
    from msgspec.structs import replace

    now_ms = _now_ms()

    def alter(known: Sequence[Key]) -> tuple[list[Key], bool]:
        gone = [replace(k, revoked_at_ms=now_ms) if is_meant(k) else k for k in known]
        return gone, any(is_meant(k) for k in known)

    def is_meant(key: Key) -> bool:
        return key.id == key_id and key.revoked_at_ms is None

    file = _existing_file(data_dir)
    if not any(is_meant(key) for key in file.read()) or not _change(file, alter):
        raise Failure("There is no such key, or it is already revoked.", ExitCode.NOT_FOUND)
    if as_json:
        write_json({"id": key_id, "revoked": True})
    else:
        say(f"Revoked {key_id}. A running daemon refuses it within about a second.")


def _file(data_dir: Path | None) -> KeyFile:
    from ebbtide.access.key_file import KeyFile
    from ebbtide.cli.daemon_settings import settings_in_force

    settings = settings_in_force({} if data_dir is None else {"store": {"data_dir": data_dir}})
    return KeyFile(settings.store.data_dir)


def _existing_file(data_dir: Path | None) -> KeyFile:
    """Return the file of keys. Raise a Failure if its directory does not exist."""
    file = _file(data_dir)
    if not file.path.parent.is_dir():
        raise Failure(f"There is no data directory at {file.path.parent}.", ExitCode.NOT_FOUND)
    return file


def _change(file: KeyFile, alter: Callable[[Sequence[Key]], tuple[list[Key], Any]]) -> Any:
    try:
        return file.change(alter)
    except OSError as error:
        why = sentence(error.strerror or str(error))
        raise Failure(f"{file.path} cannot be written: {why}", ExitCode.REFUSED) from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _scopes(given: list[str]) -> tuple[str, ...]:
    from ebbtide.access.requirements import SCOPES

    named = {part.strip() for scope in given for part in scope.split(",")}
    if not named <= set(SCOPES):
        raise Failure(f"--scope: allowed are {', '.join(SCOPES)}.", ExitCode.USAGE)
    return tuple(scope for scope in SCOPES if scope in named)


def _bound(agents: list[str], prefixes: list[str], *, all_agents: bool) -> dict[str, Any]:
    from ebbtide.ids import parse_agent_id

    if all_agents == bool(agents or prefixes):
        raise Failure(
            "Choose the agents of the key: --agent, --agent-prefix, or --all-agents alone.", ExitCode.USAGE
        )
    for agent in agents:
        parse_agent_id(agent)
    for prefix in prefixes:
        # It must be a valid beginning of an id.
        parse_agent_id(f"{prefix}a")
        if not prefix:
            raise Failure("--agent-prefix must not be empty; use --all-agents.", ExitCode.USAGE)
    return {"agents": tuple(agents), "agent_prefixes": tuple(prefixes), "all_agents": all_agents}


def _shown(key: Key, now_ms: int) -> dict[str, Any]:
    """Return all fields of a key except its hash."""
    state = "active" if key.counts_at(now_ms) else "expired" if key.revoked_at_ms is None else "revoked"
    return {
        "id": key.id,
        "name": key.name,
        "state": state,
        "scopes": list(key.scopes),
        "agents": list(key.agents),
        "agent_prefixes": list(key.agent_prefixes),
        "all_agents": key.all_agents,
        "created_at": key.created_at_ms,
        "expires_at": key.expires_at_ms,
        "revoked_at": key.revoked_at_ms,
        "requests_per_s": key.requests_per_s,
        "max_agents": key.max_agents,
    }


def _table(found: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for column in ("id", "name", "state", "scopes", "agents", "expires"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for key in found:
        reach = [*key["agents"], *(f"{prefix}…" for prefix in key["agent_prefixes"])]
        shown = ", ".join(reach[:3]) + (
            f" and {counted(len(reach) - 3, 'more', 'more')}" if reach[3:] else ""
        )
        table.add_row(
            key["id"],
            key["name"],
            key["state"],
            ",".join(key["scopes"]),
            "all" if key["all_agents"] else shown,
            "-" if key["expires_at"] is None else local_time(key["expires_at"]),
        )
    return table
