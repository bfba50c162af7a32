"""Operations that change the files of agents, each with its expected state after an interruption at any step.

`prepare` creates the initial files. `perform` runs the operation once, with a fault at one of its steps. `verify`
starts a daemon on the remaining files and checks it. Each runs in a process of its own (`tests/support/forks.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import itertools
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy.ma  # noqa: F401  with the other imports that a run would wait for
import rich._emoji_codes  # noqa: F401
import typer.main

import ebbtide.cli.commands.encryption
import ebbtide.cli.commands.import_file
import ebbtide.cli.commands.restore
import ebbtide.cli.offline
import ebbtide.store.encryption.seal  # noqa: F401  imported here once, for every process that is forked
from ebbtide.cli.app import app, main
from ebbtide.daemon import opened
from ebbtide.errors import EbbtideError, Unavailable
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.settings import Settings, load_settings
from ebbtide.store import layout
from ebbtide.store.chain import line_of
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import WrappedKeys, read_master_key
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.verbs.agents import OpenAgentRequest, delete_agent, list_agents, open_agent
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from ebbtide.verbs.moving import RestoreAgentRequest, backup_agent, restore_agent
from ebbtide.verbs.paging import PageRequest
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service, get_readiness
from tests.support.encrypted import everything, fill, found_in
from tests.support.erased_log import records_of, verified_log
from tests.support.in_process import settle, tell
from tests.support.moving import sent
from tests.support.steps import Steps, kill, watch

# Building the tree of commands takes longer than most commands, so it is built once, before the processes fork.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.main.get_command(app)

MAPS = {"initial_map_bytes": 1 << 20, "max_map_bytes": 1 << 26}

JUMPS = {"a year back": -31_536_000, "a year ahead": 31_536_000, "to 1970": None, "to 2200": None}
"""Offsets of the clock in seconds; None sets it to the beginning of a year."""

ERRNOS = {name: getattr(errno, name) for name in ("EIO", "ENOENT", "EROFS", "ESTALE")}

ALLOWED = re.compile(
    r"lock|agents|work|transfers|audit|keys|keys/\.master|audit/(erased\.jsonl|head\.json|\d+\.proofs)"
)


@dataclass(frozen=True)
class Fault:
    """The fault before the step of this number, from 1; 0 means no fault. `kind` is a key of JUMPS or ERRNOS."""

    kind: str = "none"
    at: int = 0


@dataclass(frozen=True)
class Operation:
    """One operation, and the texts that must be erased after it."""

    run: Callable[[Place], Any]
    """Run the operation once, by command or through a daemon."""
    is_sealed: bool = False
    """Whether there is a master key."""
    starts_sealed: bool | None = None
    """Whether the agent is sealed before the operation; None means the default for new agents."""
    with_agent: bool = True
    """Whether there is an agent `ann` before the operation."""
    hidden: frozenset[str] = frozenset()
    """The outcomes after which no file may contain a text of the agent."""
    refused: tuple[str, ...] = ()
    """Reasons that may refuse a repetition if the operation was already done."""
    view: Callable[[LmdbStore], Any] = everything
    """The view of a store that distinguishes the old agent from the new one."""
    is_online: bool = False
    key_changes: bool = False
    """Whether the master key changes: until a repetition succeeds, a start needs the current one of the two."""
    record_first: bool = False
    """Whether the log of erased agents records the operation before it is done."""


@dataclass
class Place:
    """The files of one run of an operation."""

    root: Path
    name: str = ""
    data: Path = field(init=False)
    master: Path = field(init=False)
    fresh_master: Path = field(init=False)
    steps: Steps | None = None
    ends: Callable[[Place, Service], Coroutine[Any, Any, None]] | None = None
    """A request to the daemon after the operation, before it stops."""

    def __post_init__(self) -> None:
        self.data = self.root / "data"
        self.master = self.root / "master.key"
        self.fresh_master = self.root / "fresh.key"

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.name]

    def acknowledge(self) -> None:
        """Record that the caller received an acknowledgement."""
        (self.root / "acknowledged").touch()

    @property
    def is_acknowledged(self) -> bool:
        return (self.root / "acknowledged").exists()

    def key_file(self) -> Path | None:
        """Return the file of the current master key."""
        if not self.operation.is_sealed:
            return None
        in_force = (
            (self.data / "keys" / ".master").read_text() if (self.data / "keys" / ".master").exists() else ""
        )
        fresh = self.fresh_master.exists() and read_master_key(self.fresh_master).fingerprint
        return self.fresh_master if in_force and in_force == fresh else self.master

    def settings(self) -> Settings:
        """Return the settings of a daemon on the files."""
        key_file = self.key_file()
        return load_settings(
            {
                "store": {"data_dir": self.data, **MAPS},
                "embedding": {"model": "off"},
                "encryption": {"master_key_file": "" if key_file is None else str(key_file)},
            }
        )


# --- running -----------------------------------------------------------------------------------------


def command(*arguments: str) -> Callable[[Place], str]:
    """Return an operation that runs a command. Its result is the exit code, empty for success."""

    def run(place: Place) -> str:
        filled = [argument.format(root=place.root) for argument in arguments]
        flags = ["--data-dir", str(place.data)]
        if place.operation.is_sealed:
            flags += ["--master-key-file", str(place.master)]
        with_steps(place, True)
        code = exit_code([*filled, *flags])
        if not code:
            place.acknowledge()
            if place.steps is not None:
                place.steps.end()
        with_steps(place, False)
        return "" if code == 0 else str(code)

    return run


def exit_code(arguments: list[str]) -> int:
    """Run a command to its end. Return its exit code."""
    try:
        main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def with_steps(place: Place, is_armed: bool) -> None:
    """Start or stop counting steps."""
    if place.steps is not None:
        place.steps.is_armed = is_armed


def online(verb: Callable[[Place, Service], Coroutine[Any, Any, Any]]) -> Callable[[Place], str]:
    """Return an operation of a running daemon. Its result is the reason of a refusal, empty for success."""

    async def served(place: Place) -> str:
        async with opened(place.settings()) as service:
            await resumed(service)
            with_steps(place, True)
            try:
                await verb(place, service)
                place.acknowledge()
                refusal = ""
            except EbbtideError as error:
                refusal = error.reason
            if place.ends is not None:
                with_steps(place, False)
                await place.ends(place, service)
                with_steps(place, True)
        if place.steps is not None:
            place.steps.end()
        with_steps(place, False)
        return refusal

    return lambda place: asyncio.run(served(place))


async def resumed(service: Service) -> None:
    """Wait until the daemon resumed its unfinished work."""
    await asyncio.wait(service.fleet._background[:1])


async def create_ann(place: Place, service: Service) -> None:
    """Create an agent."""
    await open_agent(service, OpenAgentRequest(agent_id="ann", parameters={"decay_rate": 0.25}))


async def delete_ann(place: Place, service: Service) -> None:
    """Delete an agent."""
    await delete_agent(service, AgentRequest(agent_id="ann"))


async def forget_topic(place: Place, service: Service) -> None:
    """Forget a topic: erase it, compact the store."""
    done = await forget_memories(service, ForgetRequest(agent_id="ann", topic="violet ledger"))
    if done.counts.messages and not done.compacted:
        raise Unavailable("the compaction waits for the next start", reason="STORE_UNAVAILABLE")


async def remember_fact(place: Place, service: Service) -> None:
    """Remember a fact, and digest it."""
    await tell(service, "ann", FACT, idempotency_key="fact")


async def back_up(place: Place, service: Service) -> None:
    """Back an agent up."""
    with await backup_agent(service, AgentRequest(agent_id="ann")) as leaving:
        assert leaving.file.read()


def restoring(form: str, *, replace: bool = False, agent: str = "ann") -> Callable[[Place], str]:
    """Restore through a running daemon."""

    async def run(place: Place, service: Service) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            with (place.root / f"ann.{form}").open("rb") as file:
                while piece := file.read(16 << 10):
                    yield piece

        request = RestoreAgentRequest(agent_id=agent, replace=replace, rename=agent != "ann")
        await restore_agent(service, request, pieces())

    return online(run)


# --- the operations ----------------------------------------------------------------------------------

BOTH = frozenset({"old", "new"})
NEW = frozenset({"new"})

SECRET = "The lighthouse keeper hides a violet ledger."
TOLD = "The ferry leaves at nine."
REFUSALS = ("STORE_UNAVAILABLE",)
FACT = "The harbour master owns a brass telescope."


def contents(store: LmdbStore) -> Any:
    """Return the contents of an agent's memories."""
    return store.read(lambda txn: [node.content for node in txn.nodes.all()])


def with_key(store: LmdbStore) -> Any:
    """Return the contents of a store, and whether it still uses its initial key."""
    return everything(store), store.sealed_with == (store.path.parents[2] / "key").read_text()


def no_dates(store: LmdbStore) -> Any:
    """Return the state of a new agent without random values and timestamps."""
    return store.read(
        lambda txn: (txn.counts(), txn.meta.overrides, [_action(one) for one in txn.audit.records()])
    )


def _action(record: Any) -> str:
    said = line_of(record)
    assert said is not None
    return said.action


def _restores() -> dict[str, Operation]:
    """Return every way to restore or import an agent."""
    found = {}
    for form, verb in (("ebb", "restore"), ("jsonl", "import")):
        flags = {
            "new": [],
            "replace": ["--replace"],
            "rename": ["--as" if form == "ebb" else "--agent", "eve"],
        }
        for way, sealed in itertools.product(flags, (False, True)):
            rules: dict[str, Any] = {
                "is_sealed": sealed,
                "hidden": BOTH if sealed else frozenset(),
                "with_agent": way != "new",
            }
            title = f"{verb} {way}, {'sealed' if sealed else 'plain'}"
            taken = () if way == "replace" else ("3", "AGENT_EXISTS")
            found[title] = Operation(
                command(verb, f"{{root}}/ann.{form}", *flags[way]), refused=taken, **rules
            )
            agent = "eve" if way == "rename" else "ann"
            daemon = restoring(form, replace=way == "replace", agent=agent)
            found[f"{title}, daemon"] = Operation(daemon, refused=taken, is_online=True, **rules)
    return found


OPERATIONS: dict[str, Operation] = {
    "encrypt": Operation(
        command("encryption", "encrypt", "ann"), is_sealed=True, starts_sealed=False, hidden=NEW
    ),
    "rotate": Operation(
        command("encryption", "rotate", "ann"), is_sealed=True, hidden=BOTH, view=with_key
    ),
    "decrypt": Operation(command("encryption", "decrypt", "ann"), is_sealed=True, hidden=frozenset({"old"})),
    "rotate master": Operation(
        command("encryption", "rotate-master", "--new-key-file", "{root}/fresh.key"),
        is_sealed=True, hidden=BOTH, key_changes=True,
    ),
    "destroy key": Operation(
        command("encryption", "destroy", "ann", "--yes"), is_sealed=True, hidden=BOTH, refused=("6",), record_first=True
    ),
    "create, plain": Operation(online(create_ann), with_agent=False, view=no_dates, is_online=True),
    "create, sealed": Operation(
        online(create_ann), is_sealed=True, with_agent=False, view=no_dates, is_online=True
    ),
    "delete, plain": Operation(online(delete_ann), hidden=NEW, refused=("AGENT_NOT_FOUND",), is_online=True),
    "delete, sealed": Operation(
        online(delete_ann), is_sealed=True, hidden=BOTH, refused=("AGENT_NOT_FOUND",), is_online=True
    ),
    "forget, plain": Operation(online(forget_topic), view=contents, is_online=True),
    "forget, sealed": Operation(online(forget_topic), is_sealed=True, hidden=BOTH, view=contents, is_online=True),
    "remember, plain": Operation(online(remember_fact), view=contents, is_online=True),
    "remember, sealed": Operation(online(remember_fact), is_sealed=True, hidden=BOTH, view=contents, is_online=True),
    "back up": Operation(online(back_up), is_online=True),
    **_restores(),
}  # fmt: skip


# --- beginning ---------------------------------------------------------------------------------------


def make_base(root: Path, is_sealed: bool) -> None:
    """Create a data directory with two agents, and the backup and the export of `ann` as she was before."""
    place = Place(root, "rotate" if is_sealed else "delete, plain")
    for number, path in enumerate((place.master, place.fresh_master)):
        path.write_text(f"{number}" * 64)
        path.chmod(0o600)
    master = read_master_key(place.master) if is_sealed else None
    data = DataDirectory(place.data, **MAPS, master_key=master)
    data.acquire()
    store = data.create_store(Identity("ann", 5, 7, layout.FORMAT_VERSION))
    store.write(fill)
    store.close()
    data.release()
    asyncio.run(_lived(place, "ann", "bob"))
    data.acquire()
    store = data.open_store(AgentId("ann"))
    for suffix, form in (("ebb", "backup"), ("jsonl", "export")):
        (root / f"ann.{suffix}").write_bytes(sent(data, store, form))
    (root / "key").write_text(store.sealed_with)
    store.close()
    data.release()
    asyncio.run(_lived(place, "ann"))


async def _lived(place: Place, *agents: str) -> None:
    async with opened(place.settings()) as service:
        for agent in agents:
            own = [SECRET] if agent == "ann" else []
            await tell(service, agent, *own, f"The {agent} keeps a green kettle.")
            await settle(service, agent)


def prepare(base: Path, root: Path, name: str) -> Place:
    """Copy the initial files of an operation."""
    shutil.copytree(base, root)
    place = Place(root, name)
    operation = place.operation
    if not operation.with_agent:
        shutil.rmtree(place.data / "agents" / "ann")
        if not name.startswith("restore"):
            # A sealed backup is restored on a daemon that has its key; any other file gets a new key.
            (place.data / "keys" / "ann").unlink(missing_ok=True)
    return place


# --- once, with a fault ------------------------------------------------------------------------------


def perform(root: Path, name: str, fault: Fault) -> tuple[str, list[str]]:
    """Run an operation once. Return the reason of a refusal, and the steps taken."""
    place = Place(root, name)
    (root / "acknowledged").unlink(missing_ok=True)
    place.steps = steps = Steps(place.data, fault.at, lambda: _happen(place, fault))
    watch(steps)
    if fault.kind in JUMPS:
        place.ends = _goes_on
    elif fault.kind in ERRNOS or fault.kind == "vanish":
        place.ends = _heal
    refusal = place.operation.run(place)
    _bring_back(place)
    return refusal, steps.taken


def _happen(place: Place, fault: Fault) -> None:
    steps = place.steps
    assert steps is not None
    if fault.kind == "kill":
        kill()
    elif fault.kind == "vanish":
        place.data.rename(_elsewhere(place))
    elif fault.kind in ERRNOS:
        steps.broken = ERRNOS[fault.kind]
    elif fault.kind in JUMPS:
        _set_clock(fault.kind)


def _elsewhere(place: Place) -> Path:
    return place.root / "elsewhere"


def _bring_back(place: Place) -> None:
    assert place.steps is not None
    place.steps.broken = None
    if _elsewhere(place).exists():
        assert not place.data.exists(), "nothing was written where the data directory had been"
        _elsewhere(place).rename(place.data)


def _set_clock(kind: str) -> None:
    plain = time.time_ns
    ahead_s = JUMPS[kind]
    if ahead_s is None:
        begin_s = {"to 1970": 0, "to 2200": 7_258_118_400}[kind]
        ahead_s = begin_s - plain() // 1_000_000_000
    time.time_ns = lambda: plain() + ahead_s * 1_000_000_000
    time.time = lambda: time.time_ns() / 1e9


async def _heal(place: Place, service: Service) -> None:
    """While the disk fails the daemon reports it and acknowledges nothing; afterwards everything works."""
    assert place.steps is not None
    if place.steps.broken is not None or _elsewhere(place).exists():
        assert await _refusal(tell(service, "bob", "This is lost.")) in REFUSALS
        assert await _refusal(tell(service, "zoe", "This is lost.")) in REFUSALS
        assert await _refusal(list_agents(service, PageRequest())) in ("", *REFUSALS)
    if _elsewhere(place).exists():
        assert (await get_readiness(service)).status == "unavailable"
    _bring_back(place)
    await _goes_on(place, service)


async def _goes_on(place: Place, service: Service) -> None:
    """Another agent remembers and digests as before."""
    await tell(service, "bob", TOLD)
    (place.root / "told").touch()
    done = await settle(service, "bob")
    assert done.digested
    async with asyncio.timeout(60):
        # A digest that the disk stopped pauses before it tries again.
        while (await get_readiness(service)).status != "ready":  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _refusal(verb: Coroutine[Any, Any, Any]) -> str:
    try:
        await asyncio.wait_for(verb, 10)
    except EbbtideError as error:
        return error.reason
    return ""


# --- remaining files ---------------------------------------------------------------------------------


def verify(root: Path, name: str) -> dict[str, Any]:
    """Start and stop a daemon, and return the state of every agent. Nothing of an interrupted step may remain."""
    place = Place(root, name)
    asyncio.run(_started(place))
    # Before any request to an agent: a start by itself removes plain text.
    texts = sorted(found_in(place.data))
    is_secret_there = _holds_secret(place.data)
    key_file = place.key_file()
    master = None if key_file is None else read_master_key(key_file)
    data = DataDirectory(place.data, **MAPS, master_key=master)
    data.acquire()
    try:
        agents = {one: _seen(data, one, place.operation) for one in ("ann", "bob", "eve")}
        assert agents["bob"] is not None
        if (root / "told").exists():
            assert TOLD in agents["bob"][1]
        readable = [one for one, what in agents.items() if isinstance(what, tuple)]
        erased = [(said.agent_id, said.action) for said in map(line_of, records_of(data.erased)) if said]
        assert verified_log(data.erased).broken_at is None
    finally:
        data.release()
    flags = [] if key_file is None else ["--master-key-file", str(key_file)]
    assert exit_code(["check", *readable, "--data-dir", str(place.data), *flags]) == 0
    return {
        "ann": agents["ann"],
        "eve": agents["eve"],
        "erased": erased,
        "strays": strays(place, agents),
        "texts": texts,
        "secret": is_secret_there,
    }


async def _started(place: Place) -> None:
    async with opened(place.settings()) as service:
        await resumed(service)
        for agent in service.fleet.open_agents:
            await settle(service, agent.id)


def _seen(data: DataDirectory, agent: str, operation: Operation) -> Any:
    """Return the state of an agent; None if there is none, and a reason if it cannot be read."""
    try:
        if not data.exists(AgentId(agent)):
            return None
        store = data.open_store(AgentId(agent))
    except EbbtideError as error:
        return error.reason
    try:
        said = contents(store)
        view = operation.view(store) if agent != "bob" else None
        return bool(store.sealed_with), said, view, store.read(_actions)
    finally:
        store.close()


def _actions(txn: Any) -> list[str]:
    return [_action(record) for record in txn.audit.records()]


def strays(place: Place, agents: dict[str, Any]) -> list[str]:
    """Return files and directories that no agent needs, and keys that no store uses."""
    found = []
    for path in sorted(place.data.rglob("*")):
        name = str(path.relative_to(place.data))
        folder, _, file = name.partition("/")
        agent, _, part = file.partition("/")
        is_ours = (
            bool(ALLOWED.fullmatch(name))
            or (
                folder == "agents" and agents.get(agent) and part in ("", "data.mdb", "lock.mdb", "meta.json")
            )
            or (folder == "work" and agents.get(agent))
            or (folder == "keys" and not part and agent in agents)
        )
        if not is_ours:
            found.append(name)
    for agent, what in agents.items():
        keys = WrappedKeys("", [])
        with contextlib.suppress(FileNotFoundError):
            keys = msgspec.json.decode((place.data / "keys" / agent).read_bytes(), type=WrappedKeys)
        is_sealed = isinstance(what, tuple) and what[0]
        if what is None and place.name.startswith("restore new, sealed") and agent == "ann":
            is_sealed = True
        if isinstance(what, tuple | None) and [key.staged for key in keys.keys] != [False] * is_sealed:
            found.append(f"{len(keys.keys)} keys of {agent}, which is {'' if is_sealed else 'not '}sealed")
    return found


def _holds_secret(folder: Path) -> bool:
    """Whether a file contains a word of the topic to forget."""
    return any(b"violet" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
