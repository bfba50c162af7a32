"""New data keys and a new master key in a cluster: killed at any step, the old or the new keys open every agent."""

from __future__ import annotations

import pickle
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ebbtide.cluster.jetstream import Created
from ebbtide.cluster.key_documents import read_keys, replace_keys
from ebbtide.cluster.log import NoAnswer, Record, Refused
from ebbtide.cluster.master_key import Rotated, rotate_master_key
from ebbtide.cluster.membership import NodeInfo
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import Ownership
from ebbtide.errors import EbbtideError, Precondition, agent_moving
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.settings import ClusterSettings
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import DataKeys, WrappedKeys
from ebbtide.store.encryption.seal import MasterKey, Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.transfer.rewrite import seal_agent
from tests.cluster.simulated import SUBJECT, SimulatedStream
from tests.support.encrypted import everything, fill
from tests.support.forks import run_apart
from tests.support.steps import Steps, kill, watch
from tests.support.tier import amount

NAMES = Names("test", 1, 1)
ANN = AgentId("ann")
OLD, NEW, OTHER = (MasterKey(letter * 32) for letter in (b"o", b"n", b"x"))
SETTINGS = ClusterSettings(name=NAMES.cluster, append_timeout_s=1.0)


REPEATED = 8
"""After a kill at one of so many steps the rotation is repeated."""


class Killed(Exception):
    """The process ends before a step."""


@dataclass
class Documents:
    """The documents of a cluster. It knows what a disk of a log server still has."""

    present: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    last: int = 0
    readable: set[bytes] = field(default_factory=set)
    """Contents that were not overwritten: a document that a write replaces stays on the disks."""
    before_step: Callable[[str], None] = lambda name: None
    """Called before each change."""
    ages_s: dict[str, float] = field(default_factory=dict)

    def read(self, subject: str) -> tuple[bytes, int] | None:
        return self.present.get(subject)

    def write(self, subject: str, data: bytes, expected: int) -> int:
        self.before_step(f"write {subject}")
        if expected != self.present.get(subject, (b"", 0))[1]:
            raise Refused
        self.last += 1
        self.present[subject] = data, self.last
        self.readable.add(data)
        return self.last

    def erase(self, subject: str, sequence: int) -> None:
        self.before_step(f"erase {subject}")
        found = self.present.get(subject)
        if found is not None and found[1] == sequence:
            del self.present[subject]
            if all(data != found[0] for data, _ in self.present.values()):
                self.readable.discard(found[0])

    def subjects(self, prefix: str) -> list[str]:
        return sorted(subject for subject in self.present if subject.startswith(f"{prefix}."))

    # --- as a command uses the log servers

    def created(self, cluster: str) -> Created | None:
        return Created(NAMES.slot_count, NAMES.log_streams)

    def use(self, names: Names) -> None:
        assert names == NAMES

    def age_s(self, subject: str) -> float:
        return self.ages_s.get(subject, 1000.0)


def until(at: int) -> Callable[[str], None]:
    """Return what raises before the change number `at`."""
    left = [at]

    def step(_: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return step


# --- the documents -------------------------------------------------------------------------------------


def test_a_replacement_that_is_interrupted_leaves_the_old_or_the_new_keys() -> None:
    """At every step one of the two can be read; a repetition leaves the new ones, and nothing of the old ones."""
    for second in (b"second", b"third"):
        for at in range(1, 20):
            documents = Documents()
            replace_keys(documents, NAMES, "ann", b"first")
            documents.before_step = until(at)
            try:
                replace_keys(documents, NAMES, "ann", b"second")
                break
            except Killed:
                documents.before_step = lambda _: None
            assert read_keys(documents, NAMES, "ann") in (b"first", b"second")
            replace_keys(documents, NAMES, "ann", second)
            assert read_keys(documents, NAMES, "ann") == second
            assert documents.readable == {second}, at
        assert at > 4, "a replacement has four steps"
        documents.before_step = lambda _: None
        replace_keys(documents, NAMES, "ann", None)
        assert read_keys(documents, NAMES, "ann") is None and documents.readable == set()


def test_a_deposed_owner_replaces_no_keys() -> None:
    """It is paused before any of its changes while the next owner replaces the keys: those of the next owner stay."""
    for at in range(1, 5):
        contest = Contest(at)
        with pytest.raises(EbbtideError, match="moving"):
            contest.replace_at_a()
        assert contest.owner == "b"
        assert read_keys(contest.documents, NAMES, "ann") == b"of b"


class Contest:
    """Node a replaces the keys of an agent, and is paused before its change number `at`: node b is the owner then."""

    def __init__(self, at: int) -> None:
        self.owner = "a"
        self.documents = Documents()
        replace_keys(self.documents, NAMES, "ann", b"first")
        self._left = at
        self.documents.before_step = self._pause

    def _pause(self, _: str) -> None:
        self._left -= 1
        if not self._left:
            self.documents.before_step = lambda _: None
            self.owner = "b"
            replace_keys(self.documents, NAMES, "ann", b"of b", lambda: self._confirm("b"))

    def _confirm(self, name: str) -> None:
        if self.owner != name:
            raise agent_moving()

    def replace_at_a(self) -> None:
        """Replace the keys, and repeat what was refused."""
        for _ in range(9):
            with suppress(Refused):
                replace_keys(self.documents, NAMES, "ann", b"of a", lambda: self._confirm("a"))


# --- a data key ----------------------------------------------------------------------------------------


@dataclass
class Membership:
    """A node that owns every agent, or none."""

    owns_all: bool = True
    lease = 1
    is_settled = has_lease = True
    is_fenced = False

    def owns(self, slot: int) -> bool:
        return self.owns_all

    accepts = owns


@dataclass
class LogServers:
    """The log servers in a file. Each change is a step, and is durable when it has returned."""

    file: Path
    steps: Steps | None = None
    documents: Documents = field(default_factory=Documents)
    stream: SimulatedStream = field(default_factory=SimulatedStream)
    lock: Any = field(default_factory=threading.RLock)
    """Records are also erased on a thread of their own."""

    def __post_init__(self) -> None:
        if self.file.exists():
            present, last, readable, records = pickle.loads(self.file.read_bytes())
            self.documents, self.stream = Documents(present, last, readable), SimulatedStream(records)
        for owner, names in ((self.documents, ("write", "erase")), (self.stream, ("append", "erase_before"))):
            for name in names:
                setattr(owner, name, self._durable(name, getattr(owner, name)))
        for name in ("after", "at", "last", "count", "ends"):
            setattr(self.stream, name, self._undisturbed(getattr(self.stream, name)))

    def _durable(self, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(subject: str, *arguments: Any) -> Any:
            kind = arguments[0].kind if isinstance(arguments[0], Record) else ""
            if self.steps is not None:
                self.steps.step(f"{name} {kind}", subject)
            with self.lock:
                result = change(subject, *arguments)
                self.save()
            return result

        return changed

    def _undisturbed(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*arguments: Any) -> Any:
            with self.lock:
                return read(*arguments)

        return reading

    def save(self) -> None:
        """Write everything."""
        documents = self.documents
        state = (documents.present, documents.last, documents.readable, self.stream.records)
        fresh = self.file.with_suffix(".fresh")
        fresh.write_bytes(pickle.dumps(state))
        fresh.replace(self.file)


@contextmanager
def node(
    home: Path,
    name: str,
    servers: LogServers,
    master: MasterKey | None = OLD,
    membership: Membership | None = None,
) -> Iterator[DataDirectory]:
    """Yield the data directory of a node, which owns every agent."""
    data = DataDirectory(home / name, initial_map_bytes=1 << 18, max_map_bytes=1 << 26, master_key=master)
    data.acquire()
    documents = cast(Any, servers.documents)
    ownership = Ownership(
        cast(Any, servers.stream),
        documents,
        cast(Any, membership or Membership()),
        NAMES,
        author=name,
        append_timeout_s=1.0,
        map_bytes=1 << 18,
        max_map_bytes=1 << 26,
    )
    data.replication, data.keys.fetch = ownership, ownership.data_keys
    ownership.seal_of = data.keys.seal_of
    try:
        data.keys.follow()
        data.keys.admit()
        yield data
    finally:
        ownership.close()
        data.release()


def create(home: Path, *, is_encrypted: bool = True) -> dict[str, Any]:
    """Create an agent with content at node a. Return the content."""
    servers = LogServers(home / "servers")
    with node(home, "a", servers, OLD if is_encrypted else None) as data:
        assert not data.exists(ANN)
        store = data.create_store(Identity(ANN, 5, 7, layout.FORMAT_VERSION))
        store.write(fill)
        found = everything(store)
        store.close()
        return found


def rotated(home: Path, at: int) -> tuple[list[str], str]:
    """Rotate the key at node a, and kill the process before step `at`. Return the steps and the fingerprint."""
    steps = Steps(home / "a", at, kill)
    servers = LogServers(home / "servers", steps)
    with node(home, "a", servers) as data:
        watch(steps)
        assert data.exists(ANN)
        steps.is_armed = True
        fingerprint = seal_agent(data, ANN)
        steps.is_armed = False
    return steps.taken, fingerprint


def seen_at(home: Path, name: str, master: MasterKey = OLD, without: str = "") -> tuple[dict[str, Any], str]:
    """Return the content of the agent and the fingerprint of its key, as a node finds them that takes it.

    Unless this is `without`, the log servers have no other key of the agent, not even in what was deleted.
    """
    servers = LogServers(home / "servers")
    with node(home, name, servers, master) as data:
        assert data.exists(ANN)
        store = data.open_store(ANN)
        try:
            assert check_store(store) == []
            found = everything(store), store.sealed_with
        finally:
            store.close()
        keys = servers.documents.read(NAMES.data_keys("ann"))
        assert keys is not None and keys[0] == data.keys.content("ann")
        keys_here = msgspec.json.decode(keys[0], type=WrappedKeys).keys
        assert len(keys_here) == 1
        if found[1] != without:
            # A kill may leave a document about a key that was never used.
            readable = [one for one in servers.documents.readable if b'"wrapped"' in one]
            assert all(keys_here[0] in msgspec.json.decode(one, type=WrappedKeys).keys for one in readable)
            fingerprints = {seal.fingerprint for one in readable for seal in seals_in(one, master)}
            assert fingerprints == {found[1]}, "the log servers have an old key"
        return found


def at_rest(home: Path, folder: Path, at: int) -> Path:
    """Return a copy of some log servers and node a, on which a rotation was killed before step `at`."""
    place = folder / f"killed-{at}"
    shutil.copytree(home, place)
    code, _ = run_apart(folder / "log", rotated, place, at)
    assert code == -signal.SIGKILL
    return place


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_kill_at_any_step_leaves_the_old_key_or_the_new_one(tmp_path: Path, is_encrypted: bool) -> None:
    """Any node opens the agent afterwards, whole, with one key; the rotation can be repeated; no old key is left."""
    home = tmp_path / "home"
    home.mkdir()
    content = create(home, is_encrypted=is_encrypted)
    before = LogServers(home / "servers").documents.read(NAMES.data_keys("ann"))
    assert (before is not None) == is_encrypted
    old = seals_in(before[0])[0].fingerprint if before is not None else ""
    done = tmp_path / "done"
    shutil.copytree(home, done)
    code, (steps, fingerprint) = run_apart(tmp_path / "log", rotated, done, 0)
    assert code == 0
    # Another node first, then the one that rotated the key.
    assert seen_at(done, "b") == seen_at(done, "a") == (content, fingerprint)
    kinds = [step.split()[0] for step in steps]
    assert {"append", "write", "rename", "commit"} <= set(kinds)
    rebase = next(number for number, step in enumerate(steps) if step.startswith("append rebase"))
    assert rebase > kinds.index("write"), (
        "the new key is on the log servers before the store that it encrypts"
    )
    count = min(len(steps), amount("EBBTIDE_KEY_STEPS", 2, 30))
    places = sorted(
        {1 + round(number * (len(steps) - 1) / (count - 1)) for number in range(count)} | {rebase + 2}
    )
    outcomes = set()
    for at in places:
        if not is_encrypted and at <= rebase + 1:
            continue  # the old store has no key: `seen_at` expects one
        place = at_rest(home, tmp_path, at)
        first, second = ("b", "a") if at % 2 else ("a", "b")
        found = seen_at(place, first, without=old)
        assert found == seen_at(place, second, without=old) and found[0] == content
        outcomes.add(found[1] == old)
        if at % REPEATED == places[0] % REPEATED:
            code, (_, again) = run_apart(tmp_path / "log", rotated, place, 0)
            assert code == 0 and seen_at(place, "b") == seen_at(place, "a") == (content, again)
    assert outcomes == ({True, False} if is_encrypted else {False})


def seals_in(content: bytes, master: MasterKey = OLD) -> list[Seal]:
    """Return the seals in a document, after unwrapping them."""
    keys = DataKeys(Path("/nowhere"), master)
    return list(keys._seals(msgspec.json.decode(content, type=WrappedKeys), "ann"))


def test_other_nodes_lose_the_old_key(tmp_path: Path) -> None:
    """A node removes its obsolete copy with the old wrapped key. When it takes the agent, it has the new one."""
    create(tmp_path)
    seen_at(tmp_path, "b")
    servers = LogServers(tmp_path / "servers")
    with node(tmp_path, "a", servers) as data:
        assert data.exists(ANN)
        fingerprint = seal_agent(data, ANN)
    start = next(one.sequence for one in servers.stream.records if one.kind.startswith("rebase"))
    while not servers.stream.erase_before(SUBJECT, start):
        pass
    others = Membership(owns_all=False)
    with node(tmp_path, "b", servers, membership=others) as data:
        assert data.keys.has_keys("ann") and data.discard_copies(0) == 1
        assert not data.keys.has_keys("ann")
    content, key = seen_at(tmp_path, "b")
    assert (content, key) == seen_at(tmp_path, "a") and key == fingerprint


# --- the master key ------------------------------------------------------------------------------------


def lease(name: str, *, renewals: int = 5) -> bytes:
    """Return the lease of a node."""
    return msgspec.msgpack.encode(NodeInfo(name, f"life of {name}", f"{name}:1", "1", renewals))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A cluster with an agent, and with two nodes that have stopped."""
    create(tmp_path)
    servers = LogServers(tmp_path / "servers")
    servers.documents.write(NAMES.master_key, OLD.fingerprint.encode(), 0)
    for name in ("a", "b"):
        servers.documents.write(NAMES.node(name), lease(name, renewals=-1), 0)
    return tmp_path


def rotate(documents: Documents, old: MasterKey = OLD, new: MasterKey = NEW) -> Rotated:
    """Rotate the master key without a pause."""
    return rotate_master_key(cast(Any, documents), SETTINGS, old, new, sleep=lambda _: None)


def fingerprint_of(documents: Documents) -> str:
    found = documents.read(NAMES.master_key)
    assert found is not None
    return found[0].decode()


def test_another_master_key_opens_the_agents_afterwards(home: Path) -> None:
    """Nodes open every agent with the new key, also with files of the old one, and with the old key none."""
    before = seen_at(home, "a")
    servers = LogServers(home / "servers")
    assert rotate(servers.documents) == Rotated(1, {})
    assert fingerprint_of(servers.documents) == NEW.fingerprint
    with node(home, "c", LogServers(home / "servers"), OLD) as data, pytest.raises(Precondition) as refused:
        data.exists(ANN)
    assert refused.value.reason == "MASTER_KEY_REFUSED"
    # Node a has files that are wrapped with the old key, node b has none.
    assert seen_at(home, "a", NEW) == seen_at(home, "b", NEW) == before
    assert rotate(LogServers(home / "servers").documents) == Rotated(0, {})


@pytest.mark.parametrize("is_exchanged", [False, True])
def test_a_rotation_of_the_master_key_that_is_interrupted_can_be_repeated(
    home: Path, is_exchanged: bool
) -> None:
    """Meanwhile no fingerprint lets a node start; the end is whole in both directions."""
    before = seen_at(home, "a")
    saved = (home / "servers").read_bytes()
    for at in range(1, 30):
        (home / "servers").write_bytes(saved)
        documents = LogServers(home / "servers").documents
        documents.before_step = until(at)
        try:
            rotate(documents)
            break
        except Killed:
            documents.before_step = lambda _: None
        known = fingerprint_of(documents)
        assert known == (OLD.fingerprint if at == 1 else f"{OLD.fingerprint} {NEW.fingerprint}")
        old, new = (NEW, OLD) if is_exchanged else (OLD, NEW)
        rotate(documents, old, new)
        assert fingerprint_of(documents) == new.fingerprint
        assert seen_at(home, f"node{at}", new) == before
    assert at > 5


def test_a_master_key_is_not_rotated_under_running_nodes(home: Path) -> None:
    """A node that renews its lease is named, and nothing changes."""
    documents = LogServers(home / "servers").documents
    found = documents.read(NAMES.node("b"))
    assert found is not None
    documents.write(NAMES.node("b"), lease("b"), found[1])
    documents.ages_s[NAMES.node("b")] = 2.0
    before = dict(documents.present)
    with pytest.raises(Precondition, match=r"Stop all nodes of the cluster first.* b\.") as refused:
        rotate(documents)
    assert refused.value.reason == "CLUSTER_UNUSABLE" and documents.present == before
    documents.ages_s.clear()
    waited = list[float]()
    rotate_master_key(cast(Any, documents), SETTINGS, OLD, NEW, sleep=waited.append)
    assert waited == [SETTINGS.lease_s], "its process may rely on its lease for a moment"
    taken = documents.read(NAMES.node("b"))
    assert taken is not None and msgspec.msgpack.decode(taken[0], type=NodeInfo).life == ""


def test_other_master_keys_are_refused(home: Path) -> None:
    """Keys of another cluster change nothing. Data keys that neither of the two has wrapped are left out."""
    documents = LogServers(home / "servers").documents
    before = dict(documents.present)
    with pytest.raises(Precondition) as refused:
        rotate(documents, OTHER, NEW)
    assert refused.value.reason == "MASTER_KEY_REFUSED" and documents.present == before
    foreign = msgspec.json.encode(WrappedKeys(OTHER.fingerprint, []))
    replace_keys(documents, NAMES, "bea", foreign)
    done = rotate(documents)
    assert done.rotated == 1 and OTHER.fingerprint in done.left_out["bea"]
    assert read_keys(documents, NAMES, "bea") == foreign


def test_without_an_answer_the_fingerprint_names_both_keys(home: Path) -> None:
    """Log servers that do not answer end the rotation before the new fingerprint."""
    documents = LogServers(home / "servers").documents

    def fail(name: str) -> None:
        if "data_keys" in name:
            raise NoAnswer

    documents.before_step = fail
    with pytest.raises((EbbtideError, NoAnswer)):
        rotate(documents)
    assert fingerprint_of(documents) == f"{OLD.fingerprint} {NEW.fingerprint}"
