"""Every interleaving of the steps of several owners of one agent, with the real `AgentLog`.

`AgentLog` blocks at each call of its stream. Given the answers to these calls it is deterministic. So a test can stop
it at any call: `Operation` contains the answers so far, and is run again from its beginning with those answers and one
more. A `World` is a value: equal worlds have equal futures, and are visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from ebbtide.cluster.log import AgentLog, Copy, Kind, NoAnswer, Record, Refused, Timing
from ebbtide.cluster.ownership import has_all
from ebbtide.errors import EbbtideError
from ebbtide.store.chain import ChainHead
from tests.cluster.simulated import (
    AGENT,
    SUBJECT,
    Clock,
    Fold,
    MemoryCopy,
    SimulatedStream,
    commit,
    fold,
    position_of,
)

TIMEOUT_S = 0.06
"""Long enough for two attempts of each call."""

Answer: TypeAlias = object
"""The result of a call, or the class of the exception that it raised."""


class Call(NamedTuple):
    """A call of the stream."""

    name: str
    arguments: tuple[object, ...]


class Stopped(BaseException):
    """The operation has no answer to this call yet. No error of the code under test, so it must not catch it."""

    def __init__(self, call: Call) -> None:
        self.call = call


class Answers:
    """A stream that answers from a list, then stops."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)

    def _answer(self, name: str, *arguments: object) -> object:
        for answer in self._answers:
            if isinstance(answer, type) and issubclass(answer, Exception):
                raise answer
            return answer
        raise Stopped(Call(name, arguments))

    def append(self, subject: str, record: Record, expected: int) -> int:
        return self._answer("append", subject, record, expected)  # type: ignore[return-value]

    def after(self, subject: str, sequence: int, most: int) -> tuple[Record, ...]:
        return self._answer("after", subject, sequence, most)  # type: ignore[return-value]

    def at(self, subject: str, sequence: int) -> Record | None:
        return self._answer("at", subject, sequence)  # type: ignore[return-value]

    def last(self, subject: str) -> Record | None:
        return self._answer("last", subject)  # type: ignore[return-value]

    def count(self, subject: str) -> int:
        return 1  # a log is never long here

    def erase_before(self, subject: str, sequence: int) -> bool:
        return True

    def ends(self, subject: str) -> tuple[int, int]:
        # As if the other servers lagged: without damage, the protocol must not need this call.
        return 1 << 62, 0

    def leader(self, subject: str) -> str:
        return "n1"

    def lead_by_another(self, subject: str, avoided: Collection[str]) -> str:
        return ""

    def is_newest(self, copy: Copy, idle: Collection[bytes]) -> bool:
        """Whether the other files have nothing that a copy lacks: a call of the other nodes, not of the stream."""
        return self._answer("is_newest", File.of(copy), tuple(idle))  # type: ignore[arg-type,return-value]


class File(NamedTuple):
    """The file of one owner, as a value."""

    entries: tuple[str, ...] = ()
    head: ChainHead = ChainHead()
    asides: tuple[tuple[str, ...], ...] = ()
    marks: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, copy: MemoryCopy) -> File:
        return cls(copy.entries, copy.head, copy.asides, copy.marks)

    def opened(self) -> MemoryCopy:
        return MemoryCopy(self.entries, self.head, self.asides, marks=self.marks)


COPY = "copy"
"""The name of the operation that completes the file of a closed agent."""


class Operation(NamedTuple):
    """A take, a copy, or the append of one commit, that an owner has begun."""

    name: str
    """The commit, or `COPY`; empty for a take."""
    acknowledged_before: frozenset[str] = frozenset()
    """The commits that were acknowledged before this operation began."""
    answers: tuple[Answer, ...] = ()


class Owner(NamedTuple):
    """One owner: a process on a node."""

    node: str
    life: int = 0
    file: File = File()
    head: ChainHead | None = None
    """The head from which it would append; None while the agent is closed here."""
    commit_count: int = 0
    copy_count: int = 0
    running: Operation | None = None
    waits_for: Call | None = None

    @property
    def author(self) -> str:
        return f"{self.node}/{self.life}"


class World(NamedTuple):
    """The log, the owners, and the responses to their callers."""

    records: tuple[Record, ...]
    owners: tuple[Owner, ...]
    late: tuple[tuple[Record, int], ...] = ()
    acknowledged: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    order: frozenset[tuple[str, str]] = frozenset()
    """Pairs of commits; the first was acknowledged before the second began."""
    lost: frozenset[str] = frozenset()
    """Acknowledged commits that the log has lost on every server."""

    def with_owner(self, index: int, owner: Owner) -> World:
        return self._replace(owners=(*self.owners[:index], owner, *self.owners[index + 1 :]))

    def losing(self, count: int) -> World:
        """Return the world after every server has lost the last records: all were restored to an older copy."""
        kept = self.records[: len(self.records) - count]
        lost = frozenset(self.acknowledged) - frozenset(fold(kept).entries)
        closed = tuple(owner._replace(head=None, life=owner.life + 1) for owner in self.owners)
        return self._replace(records=kept, lost=lost, owners=closed)

    def stream(self) -> SimulatedStream:
        return SimulatedStream(list(self.records), late=list(self.late))


def started(owner_count: int, entries: Iterable[str] = ("base",)) -> World:
    """Return a world whose agent has one commit per entry, made by another node."""
    stream = SimulatedStream()
    log = AgentLog(stream, SUBJECT, AGENT, "first/0")
    for entry in entries:
        log.append(commit(entry), log.head)
    return World(tuple(stream.records), tuple(Owner(chr(ord("a") + number)) for number in range(owner_count)))


# --- steps -----------------------------------------------------------------------------------------------


def begin_take(world: World, index: int) -> World:
    return _resumed(world, index, Operation(""))


def begin_copy(world: World, index: int) -> World:
    owner = world.owners[index]
    return _resumed(
        world.with_owner(index, owner._replace(copy_count=owner.copy_count + 1)), index, Operation(COPY)
    )


def begin_commit(world: World, index: int) -> World:
    owner = world.owners[index]
    name = f"{owner.node}{owner.commit_count}"
    world = world.with_owner(index, owner._replace(commit_count=owner.commit_count + 1))
    return _resumed(world, index, Operation(name, frozenset(world.acknowledged)))


def kill(world: World, index: int) -> World:
    """End the process. Its file stays as it is, its requests are still under way, and it starts again."""
    owner = world.owners[index]
    return world.with_owner(
        index,
        Owner(owner.node, owner.life + 1, file_now(owner), None, owner.commit_count, owner.copy_count),
    )


def deliver(world: World) -> World:
    """Let the oldest late append arrive."""
    stream = world.stream()
    stream.deliver()
    return world._replace(records=tuple(stream.records), late=tuple(stream.late))


def answer(world: World, index: int, *, late: bool = False, hidden: int = 0) -> World:
    """Execute the call that an owner waits for. A late append gets no answer; a stale read misses some records."""
    owner = world.owners[index]
    assert owner.running is not None
    assert owner.waits_for is not None
    name, arguments = owner.waits_for
    stream = world.stream()
    stream.hidden, stream.stale_reads = hidden, int(hidden > 0)
    given: Answer
    if name == "is_newest":
        copy, idle = arguments
        others = (file_now(one) for place, one in enumerate(world.owners) if place != index)
        # Without an answer of one of them it is not known.
        given = not hidden and all(has_all(copy, idle, position_of(other)) for other in others)  # type: ignore[arg-type]
    elif late:
        _, record, expected = arguments
        stream.late.append((record, expected))  # type: ignore[arg-type]
        given = NoAnswer
    else:
        try:
            given = getattr(stream, name)(*arguments)
        except (Refused, NoAnswer) as error:
            given = type(error)
    if isinstance(given, list):
        given = tuple(given)
    world = world._replace(records=tuple(stream.records), late=tuple(stream.late))
    return _resumed(world, index, owner.running._replace(answers=(*owner.running.answers, given)))


Script: TypeAlias = Callable[[Call, int], str]
"""Says what happens to a call, given how many calls of its name the operation made before."""


def run(world: World, index: int, script: Script) -> World:
    """Run an operation to its end, or up to the call at which it is killed.

    The script answers `honest`, `late`, `unanswered` (appended, without an answer), `stale` (the read misses the last
    record), `blank` (the read misses every record), `kill`, or `kill after` (the append arrives first).
    """
    made: dict[str, int] = {}
    while (call := world.owners[index].waits_for) is not None:
        verdict = script(call, made.get(call.name, 0))
        made[call.name] = made.get(call.name, 0) + 1
        if verdict in ("late", "unanswered", "kill after"):
            # An append that arrives at once is the latest of those under way.
            waiting, world = world.late, answer(world._replace(late=()), index, late=True)
            world = world if verdict == "late" else deliver(world)
            world = world._replace(late=(*waiting, *world.late))
        elif verdict != "kill":
            hidden = {"honest": 0, "stale": 1, "blank": len(world.records)}[verdict]
            world = answer(world, index, hidden=hidden)
        if verdict.startswith("kill"):
            return kill(world, index)
    return world


def _resumed(world: World, index: int, running: Operation) -> World:
    """Run an operation from its beginning up to its next call or its end."""
    owner = world.owners[index]
    state = _state_of(owner.author, owner.file, owner.head, running.name, running.answers)
    if state.waits_for is not None:
        return world.with_owner(index, owner._replace(running=running, waits_for=state.waits_for))
    world = world.with_owner(
        index, owner._replace(file=state.file, head=state.head, running=None, waits_for=None)
    )
    if running.name in ("", COPY):
        return world
    if state.head is None:
        is_refused = state.reason == "AGENT_MOVING"
        return world._replace(refused=world.refused | {running.name}) if is_refused else world
    order = world.order | {(before, running.name) for before in running.acknowledged_before}
    return world._replace(acknowledged=(*world.acknowledged, running.name), order=order)


class _State(NamedTuple):
    """An operation after some answers."""

    file: File
    head: ChainHead | None
    """None after an error: the agent is closed."""
    waits_for: Call | None = None
    reason: str = ""


@cache
def _state_of(
    author: str,
    file: File,
    head: ChainHead | None,
    name: str,
    answers: tuple[Answer, ...],
) -> _State:
    copy, clock = file.opened(), Clock()
    timing = Timing(TIMEOUT_S, clock.read, clock.sleep)
    stream = Answers(answers)
    log = AgentLog(stream, SUBJECT, AGENT, author, timing=timing)
    log.is_newest = stream.is_newest
    try:
        if name == COPY:
            log.fold(copy)
            return _State(File.of(copy), None)
        if name:
            assert head is not None
            log.mark = copy.marks[-1] if copy.marks else b""
            head = log.append(commit(name), head)
            copy.apply([commit(name)], head, 0, [log.mark])
        else:
            log.take(copy)
        # Without an agent the next commit creates it, after the last record that was read.
        return _State(File.of(copy), log.head)
    except Stopped as stopped:
        return _State(File.of(copy), head, stopped.call)
    except EbbtideError as error:
        return _State(File.of(copy), None, None, error.reason)


def file_now(owner: Owner) -> File:
    """Return the file of an owner, also in the middle of an operation."""
    if owner.running is None:
        return owner.file
    running = owner.running
    return _state_of(owner.author, owner.file, owner.head, running.name, running.answers).file


# --- exploring -------------------------------------------------------------------------------------------

Steps: TypeAlias = Callable[[World], Iterator[World]]


class Explored(NamedTuple):
    """How much was tried."""

    schedules: int
    """Sequences of steps of the whole depth, or shorter ones after which no step is possible."""
    worlds: int
    """Different worlds that these lead through."""


def explore(start: World, steps: Steps, depth: int, check: Callable[[World], None]) -> Explored:
    """Check every world that at most `depth` steps lead to. Equal worlds are checked, and continued, once."""
    for remembered in (_state, _state_of, _check_final_take):
        remembered.cache_clear()
    level, seen, ended = {start: 1}, {start}, 0
    check(start)
    for _ in range(depth):
        following: dict[World, int] = {}
        for world, paths in level.items():
            nexts = list(steps(world))
            ended += 0 if nexts else paths
            for after in nexts:
                if after not in seen:
                    seen.add(after)
                    check(after)
                following[after] = following.get(after, 0) + paths
        level = following
    return Explored(ended + sum(level.values()), len(seen))


# --- what must always be true ----------------------------------------------------------------------------


def check(world: World) -> None:
    """Check the promises of the protocol, now and after a take by a new node with honest reads."""
    state = _state(world.records)
    _check_commits(world, state.entries)
    _check_authors(world.records)
    for owner in world.owners:
        _check_file(world.records, file_now(owner))
    _check_final_take(world.records, world.late)


@cache
def _state(records: tuple[Record, ...]) -> Fold:
    return fold(records)


def _check_commits(world: World, entries: tuple[str, ...]) -> None:
    assert len(set(entries)) == len(entries), "a commit is in the state twice"
    lost = set(world.acknowledged) - set(entries)
    assert not lost, f"acknowledged commits are lost: {lost}"
    assert not world.refused & set(entries), "a commit that was refused is in the state"
    places = {name: place for place, name in enumerate(entries)}
    for before, after in world.order:
        assert places[before] < places[after], f"{before} was acknowledged before {after} began"


def _check_authors(records: tuple[Record, ...]) -> None:
    """A node that was deposed appends nothing: each commit is from the author of the latest take."""
    owner = records[0].author if records else ""
    for record in records:
        if record.kind == Kind.OWN:
            owner = record.author
        assert record.author == owner, f"{record.author} appended, {owner} had taken the agent"


def _check_file(records: tuple[Record, ...], file: File) -> None:
    """A file is a prefix of the log, and ends with a record at which a file may end."""
    if file.head.number:
        prefix = _state(tuple(record for record in records if record.sequence <= file.head.number))
        assert (prefix.head, prefix.entries) == (file.head, file.entries)


def check_repair(world: World) -> None:
    """Check the promises of a repair, in a world whose log has lost its last records at its start.

    Every acknowledged commit is in the log, or in a file that is still there, as those that the log had lost. Those
    that were acknowledged later, and those that the log had, are in the log. At most one owner repairs it.
    """
    state = _state(world.records)
    assert len(set(state.entries)) == len(state.entries), "a commit is in the state twice"
    assert not world.refused & set(state.entries), "a commit that was refused is in the state"
    files = [file_now(owner) for owner in world.owners]
    kept = {name for file in files for one in (file.entries, *file.asides) for name in one}
    assert set(world.acknowledged) <= kept | set(state.entries), "an acknowledged commit is lost"
    later = {name for name in world.acknowledged if name not in world.lost}
    assert later <= set(state.entries), "a commit that was in the log is not in it any more"
    repairs = [record for record in world.records if record.is_repair]
    assert len(repairs) <= 1, "two owners have repaired the log"
    if repairs:
        assert world.lost <= set(state.entries), "a log was repaired with less than there was"
    for file in files:
        if any(record.head == file.head for record in world.records):
            _check_file(world.records, file)
    _check_final_take(world.records, world.late)


@cache
def _check_final_take(records: tuple[Record, ...], late: tuple[tuple[Record, int], ...]) -> None:
    stream, copy, clock = SimulatedStream(list(records), late=list(late)), MemoryCopy(), Clock()
    timing = Timing(TIMEOUT_S, clock.read, clock.sleep)
    exists = AgentLog(stream, SUBJECT, AGENT, "last/0", timing=timing).take(copy)
    state = _state(records)
    assert exists == state.exists
    assert copy.entries == state.entries
    while exists and stream.late:
        assert not stream.deliver(), "a record arrived after another node had taken the agent"
