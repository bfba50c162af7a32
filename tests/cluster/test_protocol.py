"""The log of one agent: every interleaving of a few owners, and each rule of the protocol alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from ebbtide.cluster import log
from ebbtide.cluster.log import STALE_READ_S, Kind, Record
from ebbtide.cluster.ownership import has_lost, is_beyond
from ebbtide.errors import EbbtideError
from ebbtide.store.chain import ChainHead
from tests.cluster.interleavings import (
    Call,
    Owner,
    Script,
    Steps,
    World,
    answer,
    begin_commit,
    begin_copy,
    begin_take,
    check,
    check_repair,
    deliver,
    explore,
    kill,
    run,
    started,
)
from tests.cluster.simulated import (
    SUBJECT,
    Crash,
    Node,
    NotOwned,
    Outcome,
    SimulatedStream,
    commit,
    content,
    fold,
)


def reason_of(error: pytest.ExceptionInfo[EbbtideError]) -> str:
    return error.value.reason


# --- every interleaving --------------------------------------------------------------------------------


@pytest.fixture
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a log that lacks records be read twice, as every other call is tried twice."""
    monkeypatch.setattr(log, "STALE_READ_S", 0.06)


@pytest.fixture
def small_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each commit of the tests be one part and its final record."""
    monkeypatch.setattr(log, "MAX_BODY_BYTES", len(commit("a0")) - 4)


def always(verdict: str, name: str) -> Script:
    """Return the script that gives every call of a name this outcome."""
    return lambda call, _: verdict if call.name == name else "honest"


def first(verdict: str, name: str) -> Script:
    """Return the script that gives the first call of a name this outcome."""
    return lambda call, made: verdict if (call.name, made) == (name, 0) else "honest"


def honest(_: Call, __: int) -> str:
    return "honest"


TAKES = (honest, first("stale", "after"))
COMMITS = (honest, first("late", "append"), always("late", "append"), first("kill after", "append"))


def operations(max_takes: int, max_commits: int) -> Steps:
    """Return the steps that are whole operations, kills, ends of leases and late arrivals."""

    def steps(world: World) -> Iterator[World]:
        for index, owner in enumerate(world.owners):
            if takes_of(world, owner) < max_takes:
                for script in TAKES:
                    yield run(begin_take(world, index), index, script)
            if owner.head is not None:
                if owner.commit_count < max_commits:
                    for script in COMMITS:
                        yield run(begin_commit(world, index), index, script)
                yield kill(world, index)
        if world.late:
            yield deliver(world)

    return steps


def takes_of(world: World, owner: Owner) -> int:
    return sum(record.kind == Kind.OWN and record.author[0] == owner.node for record in world.records)


def calls(
    max_takes: int, max_commits: int, max_lives: int = 1, max_late: int = 2, max_copies: int = 0
) -> Steps:
    """Return the steps that are single calls of the stream, so that operations of several owners overlap."""

    def steps(world: World) -> Iterator[World]:
        for index, owner in enumerate(world.owners):
            if owner.waits_for is None:
                if takes_of(world, owner) < max_takes:
                    yield begin_take(world, index)
                if owner.head is None and owner.copy_count < max_copies:
                    yield begin_copy(world, index)
                if owner.head is not None and owner.commit_count < max_commits:
                    yield begin_commit(world, index)
            else:
                yield answer(world, index)
                if owner.waits_for.name != "append":
                    yield answer(world, index, hidden=1)
                    yield answer(world, index, hidden=len(world.records))
                elif len(world.late) < max_late:
                    yield answer(world, index, late=True)
            if (owner.head is not None or owner.waits_for is not None) and owner.life < max_lives:
                yield kill(world, index)
        if world.late:
            yield deliver(world)

    return steps


@pytest.mark.usefixtures("few_attempts")
def test_two_owners_in_every_order_of_six_operations() -> None:
    """No order of takes, commits, kills, stale reads and late appends loses or repeats a commit.

    105 776 schedules, through 7 232 different worlds.
    """
    assert explore(started(2), operations(2, 1), 6, check).schedules > 100_000


@pytest.mark.usefixtures("few_attempts")
def test_three_owners_in_every_order_of_four_operations() -> None:
    """The same for three owners. 5 436 schedules."""
    assert explore(started(3), operations(1, 1), 4, check).schedules > 5_000


@pytest.mark.usefixtures("few_attempts")
def test_two_owners_that_overlap_in_every_order_of_eleven_calls() -> None:
    """The same if two owners take and commit at the same time, and a process ends between any two calls.

    27 590 406 schedules, through 9 954 different worlds.
    """
    assert explore(started(2), calls(1, 1), 11, check).schedules > 10_000_000


@pytest.mark.usefixtures("few_attempts")
def test_two_owners_that_create_an_agent_in_every_order_of_eleven_calls() -> None:
    """The same for an agent that does not exist yet. 22 730 982 schedules."""
    assert explore(started(2, ()), calls(1, 1), 11, check).schedules > 1_000_000


@pytest.mark.usefixtures("few_attempts", "small_records")
def test_two_owners_with_large_commits_in_every_order_of_eleven_calls() -> None:
    """The same if each commit is a part and its final record."""
    assert explore(open_at_first_owner(), calls(2, 1, max_late=1), 11, check).schedules > 1_000_000


@pytest.mark.usefixtures("few_attempts", "small_records")
def test_copies_before_takes_in_every_order_of_eleven_calls() -> None:
    """The same if a node completes its copy while the other one owns the agent, and before it takes it."""
    steps = calls(2, 1, max_lives=0, max_late=1, max_copies=1)
    assert explore(open_at_first_owner(), steps, 11, check).schedules > 1_000_000


@pytest.mark.usefixtures("few_attempts")
@pytest.mark.parametrize("lost", [1, 3, 4])
def test_two_owners_that_repair_in_every_order_of_calls(lost: int) -> None:
    """The log has lost its last records, and the files of both owners may be beyond it.

    One of them is about to ask the other one whether it may repair the log.
    """
    world = open_at_first_owner()
    world = run(begin_commit(world, 0), 0, honest)
    world = run(begin_take(world, 1), 1, honest)
    world = run(begin_commit(world, 1), 1, honest)
    world = world.losing(lost)
    repairing = begin_take(world, 1)
    while (call := repairing.owners[1].waits_for) is not None and call.name != "is_newest":
        repairing = answer(repairing, 1)
    assert call is not None
    explored = explore(repairing, calls(3, 2, max_lives=2, max_late=1), 9, check_repair)
    assert explored.schedules > 10_000


@pytest.mark.usefixtures("few_attempts")
@pytest.mark.parametrize("lost", [1, 2, 3, 4, 5])
def test_two_owners_in_every_order_of_operations_after_a_loss(lost: int) -> None:
    """The same with whole operations, in which a repair may be interrupted, or arrive late."""
    world = open_at_first_owner()
    world = run(begin_commit(world, 0), 0, honest)
    world = run(begin_take(world, 1), 1, honest)
    world = run(begin_commit(world, 1), 1, honest)
    world = world.losing(lost)
    takes = (*TAKES, first("late", "append"), first("kill after", "append"), first("kill", "append"))

    def steps(one: World) -> Iterator[World]:
        for index, owner in enumerate(one.owners):
            for script in takes:
                yield run(begin_take(one, index), index, script)
            if owner.head is not None and owner.commit_count < 3:
                for script in COMMITS:
                    yield run(begin_commit(one, index), index, script)
        if one.late:
            yield deliver(one)

    assert explore(world, steps, 4, check_repair).schedules > 1_000


def open_at_first_owner() -> World:
    """Return a world in which the first of two owners has taken the agent."""
    return run(begin_take(started(2), 0), 0, honest)


# --- single rules --------------------------------------------------------------------------------------


@pytest.fixture
def stream() -> SimulatedStream:
    return SimulatedStream()


@pytest.fixture
def owner(stream: SimulatedStream) -> Node:
    """A node that has created the agent, with one commit, and taken it."""
    node = Node(stream, "a")
    assert not node.take()
    node.commit("base")
    assert node.take()
    return node


@pytest.mark.parametrize(
    ("commits", "shortens", "is_replaced"),
    [(3, True, False), (8, False, False), (8, True, True), (38, False, True)],
)
def test_a_long_log_is_replaced_if_asked_and_a_very_long_one_always(
    stream: SimulatedStream,
    owner: Node,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
    shortens: bool,
    is_replaced: bool,
) -> None:
    """Also: the log says once that it is long, and the content that replaces it is that of the file."""
    monkeypatch.setattr(log, "LONG_LOG_RECORDS", 10)
    assert owner.take()
    called = list[bool]()
    owner.log.on_long = lambda: called.append(owner.log.is_very_long)
    names = [f"commit {number}" for number in range(commits)]
    for name in names:
        owner.commit(name)
    assert called == ([False] if commits >= 8 else [])
    assert owner.take(shortens=shortens)
    assert (stream.records[-1].kind == Kind.REBASE) == is_replaced
    assert owner.log.is_long == (commits >= 8 and not is_replaced)
    assert fold(stream.records).entries == owner.copy.entries == ("base", *names)


def test_an_append_without_answer_that_arrived_is_a_success(stream: SimulatedStream, owner: Node) -> None:
    """The record after the expected one is this node's own: the commit was appended, and this node was not deposed."""
    stream.script.append(Outcome.UNANSWERED)
    owner.commit("one")
    assert fold(stream.records).entries == owner.copy.entries == ("base", "one")


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.UNAVAILABLE, Outcome.REFUSED])
def test_an_append_is_repeated_until_it_is_acknowledged(
    stream: SimulatedStream, owner: Node, outcome: Outcome
) -> None:
    """A lost request, an append in progress, and a refusal whose reason cannot be read yet are no failure."""
    stream.script.extend([outcome] * 5)
    owner.commit("one")
    assert stream.append_count == 8  # the creation, its `own`, and six attempts
    assert fold(stream.records).entries == owner.copy.entries == ("base", "one")


def test_the_author_decides_whether_a_record_is_ones_own(stream: SimulatedStream, owner: Node) -> None:
    """Two nodes may append an equal record; only its author has taken the agent."""
    other = Node(stream, "b")
    assert other.take()
    owner.open_log()
    owner.copy.apply([], other.log.head)
    other.commit("same")
    with pytest.raises(EbbtideError) as error:
        owner.commit("same")
    assert reason_of(error) == "AGENT_MOVING"


def test_an_append_in_doubt_ends_after_the_timeout(stream: SimulatedStream, owner: Node) -> None:
    """Without an answer for the whole time-out the caller gets NOT_ENOUGH_LOG_SERVERS, and no commit is made."""
    stream.script.extend([Outcome.LOST] * 1000)
    before_s = owner.clock.now_s
    with pytest.raises(EbbtideError) as error:
        owner.commit("one")
    assert reason_of(error) == "NOT_ENOUGH_LOG_SERVERS"
    assert 19 < owner.clock.now_s - before_s <= 20
    assert owner.copy.entries == ("base",)


def test_an_append_in_doubt_that_arrives_before_the_next_take_counts_once(
    stream: SimulatedStream, owner: Node
) -> None:
    """The next take of the same node applies it."""
    stream.script.extend([Outcome.LATE] * 60)
    with pytest.raises(EbbtideError):
        owner.commit("one")
    stream.script.clear()
    assert stream.deliver()
    assert owner.take()
    assert not any(stream.deliver() for _ in list(stream.late))
    owner.commit("two")
    assert owner.copy.entries == fold(stream.records).entries == ("base", "one", "two")


def test_an_append_in_doubt_is_refused_after_the_next_take(stream: SimulatedStream, owner: Node) -> None:
    """The `own` record of a take fences late appends, also those of the same node."""
    stream.script.extend([Outcome.LATE] * 60)
    with pytest.raises(EbbtideError):
        owner.commit("one")
    stream.script.clear()
    assert owner.take()
    assert not any(stream.deliver() for _ in list(stream.late))
    assert fold(stream.records).entries == ("base",)


def test_a_deposed_owner_gets_agent_moving(stream: SimulatedStream, owner: Node) -> None:
    """Its next append is refused; no attempt is made a second time."""
    other = Node(stream, "b")
    assert other.take()
    count = stream.append_count
    with pytest.raises(EbbtideError) as error:
        owner.commit("one")
    assert reason_of(error) == "AGENT_MOVING"
    assert stream.append_count == count + 1
    assert owner.copy.entries == ("base",)


def test_a_node_that_does_not_own_the_agent_sends_nothing(stream: SimulatedStream, owner: Node) -> None:
    """Neither a take nor an append reaches the log servers."""
    count = stream.append_count
    owner.owns = False
    for act in (lambda: owner.commit("one"), owner.take, owner.log.append_gone):
        with pytest.raises(NotOwned):
            act()
    assert stream.append_count == count


def test_a_crash_between_append_and_commit_loses_nothing(stream: SimulatedStream, owner: Node) -> None:
    """The record is in the log, and the next take applies it to the file."""
    owner.copy.crashes = True
    with pytest.raises(Crash):
        owner.commit("one")
    assert owner.copy.entries == ("base",)
    assert owner.take()
    assert owner.copy.entries == ("base", "one")


def test_a_take_reads_on_after_a_stale_read(stream: SimulatedStream, owner: Node) -> None:
    """A file that was completed from a stale read is not opened: its `own` record is refused."""
    other = Node(stream, "b")
    assert other.take()
    owner.take()
    owner.commit("one")
    stream.hidden, stream.stale_reads = 1, 4
    assert other.take()
    assert other.copy.entries == ("base", "one")


def test_a_take_waits_for_reads_without_an_answer(stream: SimulatedStream, owner: Node) -> None:
    """Reads are repeated for the time-out, then the caller gets NOT_ENOUGH_LOG_SERVERS."""
    stream.silent_reads = 5
    assert owner.take()
    stream.silent_reads = 10_000
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "NOT_ENOUGH_LOG_SERVERS"


# --- parts, rebase, gone -------------------------------------------------------------------------------


def large(*names: str) -> tuple[str, ...]:
    """Return names whose commit has two parts with `small_records`."""
    return tuple(f"{name}-{'xyz' * number}" for number, name in enumerate(names, 1))


@pytest.mark.usefixtures("small_records")
def test_parts_count_with_their_final_record(stream: SimulatedStream, owner: Node) -> None:
    """A body above the limit is split, and put together by each take."""
    names = large("one", "two", "three")
    owner.commit(*names)
    assert [record.kind for record in stream.records[-2:]] == [Kind.PART, Kind.DELTA]
    other = Node(stream, "b")
    assert other.take()
    assert other.copy.entries == owner.copy.entries == ("base", *names)


@pytest.mark.usefixtures("small_records")
def test_parts_without_their_final_record_are_dropped(stream: SimulatedStream, owner: Node) -> None:
    """After a take they are in no later commit."""
    stream.script.extend([Outcome.HONEST] + [Outcome.LOST] * 60)
    with pytest.raises(EbbtideError):
        owner.commit(*large("one", "two", "three"))
    stream.script.clear()
    assert stream.records[-1].kind == Kind.PART
    other = Node(stream, "b")
    assert other.take()
    other.commit("four")
    assert owner.take()
    assert owner.copy.entries == other.copy.entries == ("base", "four") == fold(stream.records).entries


@pytest.mark.usefixtures("small_records")
@pytest.mark.parametrize("read_at_once", [1, 2, 3, 1000])
def test_a_file_never_ends_after_a_part(
    stream: SimulatedStream, owner: Node, monkeypatch: pytest.MonkeyPatch, read_at_once: int
) -> None:
    """With every size of a read. Otherwise a process that ends there would continue without the part."""
    owner.commit(*large("one", "two", "three"))
    owner.commit(*large("four", "five"))
    parts = {record.head for record in stream.records if record.kind == Kind.PART}
    monkeypatch.setattr(log, "RECORDS_PER_READ", read_at_once)
    other = Node(stream, "b")
    assert other.take()
    assert parts and not parts & set(other.copy.heads)
    assert other.copy.entries == fold(stream.records).entries


@pytest.mark.usefixtures("small_records")
def test_parts_count_if_their_final_record_arrives_during_a_take(
    stream: SimulatedStream, owner: Node
) -> None:
    """A take that read a part, and was refused because the final record followed it, applies the whole commit."""
    stream.script.extend([Outcome.HONEST] + [Outcome.LATE] * 60)
    with pytest.raises(EbbtideError):
        owner.commit("one")
    stream.script.clear()
    other = Node(stream, "b")
    stream.before_append = stream.deliver
    assert other.take()
    assert other.copy.entries == fold(stream.records).entries == ("base", "one")


@pytest.mark.usefixtures("small_records")
@pytest.mark.parametrize("was_deleted", [False, True])
def test_parts_of_a_creation_that_failed_are_dropped(stream: SimulatedStream, was_deleted: bool) -> None:
    """An agent that another node creates after them has its own content only, and can be taken."""
    first = Node(stream, "a")
    if was_deleted:
        assert not first.take()
        first.commit("old")
        first.log.append_gone()
        first.copy.remove()
    assert not first.take()
    stream.script.extend([Outcome.HONEST] + [Outcome.LOST] * 60)
    with pytest.raises(EbbtideError):
        first.commit(*large("one", "two", "three"))
    stream.script.clear()
    assert stream.records[-1].kind == Kind.PART
    second = Node(stream, "b")
    assert not second.take()
    second.commit("new")
    assert Node(stream, "c").take()


def test_a_deleted_agent_does_not_exist(stream: SimulatedStream, owner: Node) -> None:
    """A take after `gone` deletes the file of the node, and says that there is no agent."""
    other = Node(stream, "b")
    assert other.take()
    other.log.append_gone()
    assert not owner.take()
    assert owner.copy.head == ChainHead() and owner.copy.entries == ()


def test_an_agent_may_be_created_after_it_was_deleted(stream: SimulatedStream, owner: Node) -> None:
    """The first commit follows `gone`, and nothing of the earlier agent is left, on any node."""
    other = Node(stream, "b")
    assert other.take()
    owner.take()
    owner.log.append_gone()
    owner.copy.remove()
    assert not owner.take()
    owner.commit("new")
    assert other.take() and Node(stream, "c").take()
    assert other.copy.entries == fold(stream.records).entries == ("new",)


@pytest.mark.parametrize("most", [1, 1000])
def test_commits_whose_key_was_destroyed_are_skipped(
    stream: SimulatedStream, owner: Node, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Records of a deleted agent may still be read. Without a deletion after them, the missing key is an error."""
    monkeypatch.setattr(log, "RECORDS_PER_READ", most)
    owner.take()
    owner.commit("secret")
    owner.commit("more")
    late, other = Node(stream, "b"), Node(stream, "c")
    late.copy.locked = other.copy.locked = frozenset({"secret"})
    with pytest.raises(EbbtideError) as refused:
        late.take()
    assert reason_of(refused) == "DATA_KEY_MISSING" and not {"secret", "more"} & {*late.copy.entries}
    monkeypatch.setattr(owner.log, "erase_before", lambda start: None)
    owner.log.append_gone()
    owner.copy.remove()
    assert not late.take()
    owner.take()
    owner.commit("new")
    assert other.take() and late.take()
    assert other.copy.entries == late.copy.entries == ("new",)


def test_a_rebase_replaces_what_was_before(stream: SimulatedStream, owner: Node) -> None:
    """The content of a restored store replaces every earlier commit; later ones follow it."""
    other = Node(stream, "b")
    other.take()
    owner.take()
    head = owner.log.rewrite(content("restored")).head
    owner.copy.apply([content("restored")], head)
    owner.commit("one")
    assert other.take()
    assert other.copy.entries == fold(stream.records).entries == ("restored", "one")


# --- damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["body", "hash", "missing"])
def test_a_damaged_log_is_detected(stream: SimulatedStream, owner: Node, damage: str) -> None:
    """A record that does not have the hash of all before it is LOG_BEHIND: it is not applied."""
    owner.commit("one")
    owner.commit("two")
    record = stream.records[2]
    if damage == "missing":
        del stream.records[2]
    elif damage == "body":
        stream.records[2] = record._replace(body=commit("other"))
    else:
        stream.records[2] = record._replace(hash=bytes(32))
    other = Node(stream, "b")
    with pytest.raises(EbbtideError) as error:
        other.take()
    assert reason_of(error) == "LOG_BEHIND"
    assert "one" not in other.copy.entries and "other" not in other.copy.entries


def test_a_log_that_lost_records_is_detected(stream: SimulatedStream, owner: Node) -> None:
    """A file beyond its log is LOG_BEHIND, after the log was read again at each server, for longer than an election."""
    owner.commit("one")
    del stream.records[-1]
    before_s = owner.clock.now_s
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND"
    assert 3 * (STALE_READ_S - 1) < owner.clock.now_s - before_s <= 4 * STALE_READ_S
    assert stream.elections == 2 and owner.damaged == []
    assert owner.copy.entries == ("base", "one") and owner.copy.asides == ()


def lose(stream: SimulatedStream, record: Record, *servers: str) -> None:
    """Let the disks of some servers lose a record."""
    for server in servers:
        stream.missing[server].add(record.sequence)


@pytest.fixture
def base(stream: SimulatedStream, owner: Node) -> Node:
    """A node with a file that ends before three more commits of the owner."""
    node = Node(stream, "b")
    assert node.take() and owner.take()
    for name in ("one", "two", "three"):
        owner.commit(name)
    return node


@pytest.mark.parametrize("place", [0, 2, -3, -2, -1])
@pytest.mark.parametrize("has_file", [True, False])
def test_one_damaged_leader_does_not_lose_a_record(
    stream: SimulatedStream, owner: Node, base: Node, place: int, has_file: bool
) -> None:
    """The leader has lost one record of the agent: another server leads, and the take has every commit."""
    lose(stream, stream.records[place], "n1")
    node = base if has_file else Node(stream, "c")
    assert node.take()
    assert node.copy.entries == ("base", "one", "two", "three") == fold(stream.records).entries
    assert node.copy.asides == ()
    if not (has_file and place == 0):
        assert (stream.leading, stream.elections, node.damaged) == ("n2", 1, ["n1"])
    node.commit("four")


@pytest.mark.parametrize("has_file", [True, False])
def test_a_damaged_leader_without_the_whole_agent_is_replaced(
    stream: SimulatedStream, owner: Node, base: Node, has_file: bool
) -> None:
    """A leader that has nothing of an agent cannot make a node believe that the agent does not exist."""
    for record in stream.records:
        lose(stream, record, "n1")
    node = base if has_file else Node(stream, "c")
    assert node.take()
    assert node.copy.entries == ("base", "one", "two", "three")
    assert stream.leading == "n2"


def test_two_damaged_servers_are_replaced(stream: SimulatedStream, owner: Node) -> None:
    """Each server leads once, until one has all records."""
    owner.commit("one")
    owner.commit("two")
    lose(stream, stream.records[-1], "n1")
    lose(stream, stream.records[-2], "n2")
    node = Node(stream, "b")
    assert node.take()
    assert (stream.leading, stream.elections, node.damaged) == ("n3", 2, ["n1", "n2"])


@pytest.mark.parametrize("place", [-1, -2])
def test_a_record_that_no_server_has_is_missing(stream: SimulatedStream, owner: Node, place: int) -> None:
    """The file that has it is kept, and no server is blamed."""
    owner.commit("one")
    owner.commit("two")
    stream.records[place] = stream.records[place]._replace(body=b"other")
    lose(stream, stream.records[place], *stream.missing)
    node = owner if place == -1 else Node(stream, "b")
    with pytest.raises(EbbtideError) as error:
        node.take()
    assert reason_of(error) == "LOG_BEHIND"
    assert stream.elections == 2 and node.damaged == []
    assert owner.copy.entries == ("base", "one", "two") and owner.copy.asides == ()


@pytest.mark.parametrize("place", [0, 2, -2, -1])
def test_a_damaged_server_that_does_not_lead_is_no_reason_to_change(
    stream: SimulatedStream, owner: Node, base: Node, place: int
) -> None:
    """A read of many records that breaks the chain is repeated at the leader, which stays."""
    lose(stream, stream.records[place], "n3")
    stream.answering = "n3" if place != -1 else ""
    node = Node(stream, "c")
    assert node.take()
    assert node.copy.entries == ("base", "one", "two", "three")
    assert stream.elections == 0
    assert set(node.damaged) <= {""}


def test_a_file_stays_while_a_damaged_leader_lacks_the_first_records(
    stream: SimulatedStream, owner: Node
) -> None:
    """A log whose first records are missing was not rewritten: the only file that has them is not deleted."""
    owner.commit("one")
    owner.commit("two")
    before = owner.copy.entries
    for record in stream.records[:-1]:
        lose(stream, record, *stream.missing)
    owner.copy.head = stream.records[-2].head
    with pytest.raises(EbbtideError):
        Node(stream, "b").take()
    assert not has_lost(stream, SUBJECT, owner.copy.head)
    owner.copy.crashes = True  # it ends before it changes the file
    with contextlib.suppress(EbbtideError, Crash):
        owner.take()
    assert before in (owner.copy.entries, *owner.copy.asides)


@pytest.mark.usefixtures("small_records")
def test_a_rebase_that_was_not_completed_hides_no_missing_record(
    stream: SimulatedStream, owner: Node
) -> None:
    """The records after its parts continue the chain of those before them."""
    owner.commit("one")
    lost = stream.records[-1]
    stream.script.extend([Outcome.HONEST] + [Outcome.LOST] * 60)
    with pytest.raises(EbbtideError):
        owner.log.rewrite(content(*large("one", "two", "three")))
    stream.script.clear()
    assert stream.records[-1].kind == Kind.REBASE_PART
    assert owner.take()
    owner.commit("two")
    assert owner.copy.entries == ("base", "one", "two") == fold(stream.records).entries
    assert Node(stream, "b").take()
    lose(stream, lost, *stream.missing)
    with pytest.raises(EbbtideError) as error:
        Node(stream, "c").take()
    assert reason_of(error) == "LOG_BEHIND"


@pytest.mark.usefixtures("small_records")
def test_a_rebase_may_follow_one_that_was_not_completed(stream: SimulatedStream, owner: Node) -> None:
    """`repair` after a repair that failed: the first part begins again."""
    stream.script.extend([Outcome.HONEST] + [Outcome.LOST] * 60)
    with pytest.raises(EbbtideError):
        owner.log.rewrite(content(*large("one", "two", "three")))
    stream.script.clear()
    owner.open_log()
    owner.log.head = stream.records[-1].head
    rewritten = owner.log.rewrite(content(*large("four", "five")))
    node = Node(stream, "b")
    assert node.take()
    assert (node.copy.entries, node.copy.start) == (large("four", "five"), rewritten.start)


def test_a_stale_read_is_no_lost_record(stream: SimulatedStream, owner: Node) -> None:
    """Reads that lag behind the file for less than an election are repeated; the file stays."""
    owner.commit("one")
    stream.hidden, stream.stale_reads = 1, 20
    assert owner.take()
    assert owner.copy.entries == ("base", "one") and owner.copy.asides == ()


def test_a_file_that_is_no_prefix_is_put_aside(stream: SimulatedStream, owner: Node) -> None:
    """The log has other records where the file ends: the file is kept, renamed, and made again from the log."""
    other = Node(stream, "b")
    assert other.take()
    stream_of_old = list(stream.records)
    other.commit("lost")
    stream.records[:] = stream_of_old
    third = Node(stream, "c")
    assert third.take()
    third.commit("kept")
    assert other.take()
    assert other.copy.asides == (("base", "lost"),)
    assert other.copy.entries == ("base", "kept")


# --- repair ---------------------------------------------------------------------------------------------


@pytest.fixture
def nodes(stream: SimulatedStream, owner: Node) -> tuple[Node, Node]:
    """The owner, and another node with a file that ends before two more commits of the owner."""
    other = Node(stream, "b")
    assert other.take() and owner.take()
    owner.commit("one")
    owner.commit("two")
    owner.others, other.others = [other], [owner]
    return owner, other


EVERYTHING = ("base", "one", "two")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_log_that_lost_its_end_is_repaired(
    stream: SimulatedStream, nodes: tuple[Node, Node], count: int
) -> None:
    """A file that has all of the log, and what it lost, replaces it. Both nodes continue with every commit."""
    owner, other = nodes
    del stream.records[-count:]
    repaired: list[tuple[str, int, int]] = []
    ends = (owner.copy.head.number, stream.records[-1].sequence)
    owner.open_log()
    owner.log.observer.repaired = lambda *one: repaired.append(one)  # type: ignore[method-assign]
    assert owner.log.take(owner.copy)
    assert repaired == [("ann", *ends)]
    owner.commit("three")
    assert owner.copy.entries == fold(stream.records).entries == (*EVERYTHING, "three")
    assert (owner.copy.asides, owner.damaged) == ((), [])
    assert other.take() and Node(stream, "c").take()
    assert other.copy.entries == (*EVERYTHING, "three")


def test_a_log_is_not_repaired_without_an_answer_of_every_node(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """Its file may have later commits."""
    owner, other = nodes
    assert not is_beyond(stream, SUBJECT, owner.copy.head)
    del stream.records[-1]
    assert is_beyond(stream, SUBJECT, owner.copy.head) and not is_beyond(stream, SUBJECT, other.copy.head)
    owner.others = None
    count = stream.append_count
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND" and stream.append_count == count
    assert owner.copy.entries == EVERYTHING


def test_a_log_is_repaired_from_the_newest_file_only(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """A former owner, whose file is beyond the log too, leaves it to the last one."""
    owner, other = nodes
    assert other.take()
    other.commit("three")
    del stream.records[-3:]
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND" and owner.copy.entries == EVERYTHING
    assert other.take() and other.copy.entries == (*EVERYTHING, "three")
    assert owner.take() and owner.copy.entries == (*EVERYTHING, "three")


def test_a_log_that_went_on_without_its_end_is_not_repaired(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """Another node has acknowledged a commit after the loss. Its records may even equal those that were lost."""
    owner, other = nodes
    assert owner.take()
    for name in ("three", "four", "five"):
        owner.commit(name)
    lost = stream.records[-4:]
    del stream.records[-4:]
    assert other.take()
    assert stream.records[-1].head == lost[0].head, "the records of two takes are equal"
    other.commit("other")
    owner.others = [Node(stream, "c")]  # also if the other node has lost its file
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND"
    assert fold(stream.records).entries == (*EVERYTHING, "other")
    assert owner.copy.entries == (*EVERYTHING, "three", "four", "five")


def test_a_log_that_another_node_took_without_a_commit_is_repaired(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """A node that started first has taken the agent. It has acknowledged nothing, and cannot after the repair."""
    owner, other = nodes
    del stream.records[-2:]
    assert other.take()
    assert owner.take() and owner.copy.entries == EVERYTHING
    with pytest.raises(EbbtideError) as error:
        other.commit("late")
    assert reason_of(error) == "AGENT_MOVING"
    assert other.take() and other.copy.entries == EVERYTHING


def test_a_repair_is_refused_if_another_record_follows(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """Another node takes the agent, and commits, after the repair has read the log."""
    owner, other = nodes
    del stream.records[-1]

    def commit_elsewhere() -> None:
        assert other.take()
        other.commit("other")

    stream.before_append = commit_elsewhere
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "AGENT_MOVING"
    assert fold(stream.records).entries == ("base", "one", "other")
    assert owner.copy.entries == EVERYTHING


def test_a_log_that_lost_a_record_in_the_middle_is_not_repaired(
    stream: SimulatedStream, nodes: tuple[Node, Node]
) -> None:
    """Its hashes do not show that the file has what follows."""
    owner, _ = nodes
    del stream.records[-1]
    del stream.records[-2]
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND" and owner.copy.entries == EVERYTHING


@pytest.mark.usefixtures("small_records")
def test_a_repair_that_was_interrupted_is_repeated(stream: SimulatedStream, nodes: tuple[Node, Node]) -> None:
    """Its records may be beyond the file, which stays."""
    owner, _ = nodes
    del stream.records[-2:]
    stream.script.extend([Outcome.HONEST] + [Outcome.LOST] * 60)
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "NOT_ENOUGH_LOG_SERVERS"
    stream.script.clear()
    assert stream.records[-1].kind == Kind.REBASE_PART
    assert owner.take() and Node(stream, "c").take()
    assert owner.copy.entries == EVERYTHING
    assert owner.copy.asides == ()


def test_a_crash_after_a_repair_loses_nothing(stream: SimulatedStream, nodes: tuple[Node, Node]) -> None:
    """The log has the content, and the file is made from it."""
    owner, _ = nodes
    del stream.records[-2:]
    owner.copy.crashes = True
    with pytest.raises(Crash):
        owner.take()
    assert owner.take() and owner.copy.entries == EVERYTHING == fold(stream.records).entries


@pytest.mark.parametrize("later", [0, 3])
def test_a_file_that_a_repair_did_not_know_is_kept(
    stream: SimulatedStream, nodes: tuple[Node, Node], later: int
) -> None:
    """It is put aside when its node takes the agent, before and after the log is as long as the file again."""
    owner, _ = nodes
    unknown = Node(stream, "c")
    assert unknown.take()
    unknown.commit("three")
    del stream.records[-3:]
    assert owner.take()
    for number in range(later):
        owner.commit(f"later {number}")
    assert not has_lost(stream, SUBJECT, unknown.copy.head)
    assert unknown.take()
    assert unknown.copy.asides == ((*EVERYTHING, "three"),)
    assert unknown.copy.entries == fold(stream.records).entries


def test_a_log_is_repaired_in_the_first_session_and_after_a_rebase(stream: SimulatedStream) -> None:
    """The creation of an agent and a rebase begin sessions, as takes do."""
    node = Node(stream, "a")
    node.others = []
    assert not node.take()
    for name in EVERYTHING:
        node.commit(name)
    del stream.records[-1]
    assert node.take() and node.copy.entries == EVERYTHING
    rewritten = node.log.rewrite(node.copy.content())
    node.copy.apply([], rewritten.head, rewritten.start, [node.log.mark])
    while not stream.erase_before(SUBJECT, rewritten.start):
        pass
    node.commit("three")
    node.commit("four")
    del stream.records[-1]
    assert [record.kind for record in stream.records] == [Kind.REBASE, Kind.DELTA]
    assert node.take() and node.copy.entries == fold(stream.records).entries == (*EVERYTHING, "three", "four")


def test_a_log_without_a_record_is_not_repaired(stream: SimulatedStream, nodes: tuple[Node, Node]) -> None:
    """It may be the log of another cluster, which never had this agent."""
    owner, _ = nodes
    stream.records.clear()
    with pytest.raises(EbbtideError) as error:
        owner.take()
    assert reason_of(error) == "LOG_BEHIND" and not stream.records


# --- takes ---------------------------------------------------------------------------------------------


def test_a_stale_read_does_not_hide_an_agent(stream: SimulatedStream, owner: Node) -> None:
    """A node without a file does not answer that an agent with acknowledged commits does not exist."""
    other = Node(stream, "b")
    stream.hidden, stream.stale_reads = len(stream.records), 2
    assert other.take()


def test_a_take_that_reads_stale_for_ever_ends(stream: SimulatedStream, owner: Node) -> None:
    """Reads of many records from a server that lags cannot let a take repeat its append without a pause."""
    other = Node(stream, "b")
    assert other.take()
    owner.take()
    owner.commit("one")
    stream.hidden, stream.lags, before = 2, True, stream.append_count
    with pytest.raises(EbbtideError) as error:
        other.take()
    assert reason_of(error) == "NOT_ENOUGH_LOG_SERVERS"
    assert stream.append_count < before + 100


def test_a_take_that_lost_the_slot_appends_no_second_time(stream: SimulatedStream, owner: Node) -> None:
    """A node whose lease lapsed during a take does not take the agent from the node that owns it now."""
    other, late = Node(stream, "b"), Node(stream, "c")

    def moved() -> None:
        late.owns = False
        assert other.take()

    stream.before_append = moved
    with pytest.raises(NotOwned):
        late.take()
    other.commit("one")


def test_a_stale_read_does_not_put_a_file_aside(stream: SimulatedStream, owner: Node) -> None:
    """Only a record with another hash, or none at all after repeated reads, shows that a file is no prefix."""
    owner.commit("one")
    stream.hidden, stream.stale_reads = 1, 1
    assert owner.take()
    assert owner.copy.asides == ()
