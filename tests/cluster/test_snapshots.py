"""Contents of agents in S3: what the log refers to, what is deleted when, and what happens while S3 fails."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from ebbtide.cluster import log, snapshot_setting
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import Kind, NoAnswer
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import Eraser
from ebbtide.cluster.s3 import S3Objects
from ebbtide.cluster.snapshot_setting import admit_setting, used_snapshots
from ebbtide.cluster.snapshots import Snapshots, reference_in
from ebbtide.errors import EbbtideError, Precondition, Unavailable
from ebbtide.settings import S3Address, Settings, s3_address
from ebbtide.store.journal import Delta
from ebbtide.store.lmdb.lmdb_store import without_keys
from ebbtide.telemetry import configure_log
from tests.cluster.simulated import (
    SUBJECT,
    Crash,
    Node,
    NotOwned,
    SimulatedObjects,
    SimulatedStream,
    content,
)
from tests.support.log_servers import free_ports
from tests.support.waiting import wait_until

LARGE = hashlib.sha256(b"large").hexdigest()
"""The name of an entry that does not become small by compression."""
S3 = "s3://bucket/some/prefix?endpoint=https://s3.example.com&region=eu-central-1"


@pytest.fixture(autouse=True)
def _small_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a content with LARGE be larger than one record, and a reference not."""
    monkeypatch.setattr(log, "MAX_BODY_BYTES", 64)


class World:
    """Nodes of one agent, with one log and one S3."""

    def __init__(self) -> None:
        self.stream, self.objects = SimulatedStream(), SimulatedObjects()

    def node(self, name: str) -> Node:
        node = Node(self.stream, name)
        node.snapshots = Snapshots(self.objects)
        node.open_log()
        return node

    def owner(self, *names: str) -> Node:
        """Return a node that owns the agent with these entries."""
        node = self.node("a")
        for name in names:
            node.commit(name)
        assert node.take()
        return node

    @property
    def objects_of_agent(self) -> list[str]:
        return sorted(self.objects.content)


def rebase(node: Node) -> int:
    """Replace the log by the content of the node's file, as a compaction does. Return the first record of it."""
    rewritten = node.log.rewrite(node.log.placed(node.copy.content()))
    node.copy.apply([], rewritten.head, rewritten.start)
    node.log.erase_before(rewritten.start)
    return rewritten.start


def reason(error: pytest.ExceptionInfo[EbbtideError]) -> str:
    return error.value.reason


# --- references ----------------------------------------------------------------------------------------


def test_a_large_content_is_an_object_and_a_small_one_a_record() -> None:
    """The log has one record with a reference, and a node without a file takes the same state from it."""
    world = World()
    node = world.owner("a")
    rebase(node)
    assert world.objects_of_agent == []
    node.commit(LARGE)
    start = rebase(node)
    [record] = [one for one in world.stream.records if one.sequence == start]
    [key] = world.objects_of_agent
    reference = reference_in(record.body[4:])
    assert reference is not None and key == f"test/ann/{reference.name}"
    assert world.objects.content[key] == node.copy.content() and record.kind == Kind.REBASE
    node.commit("c")
    other = world.node("b")
    assert other.take() and other.copy.entries == ("a", LARGE, "c")
    assert other.copy.start == start


def test_an_earlier_version_does_not_misread_a_reference() -> None:
    """It reads the body as an entry, whose form it does not know: FORMAT_TOO_NEW."""
    body = Snapshots(SimulatedObjects()).put(SUBJECT, 7, b"content")
    with pytest.raises(Precondition) as refused:
        Delta.decoded(body, without_keys)
    assert refused.value.reason == "FORMAT_TOO_NEW"


def test_a_reference_is_covered_by_the_hash_of_its_record() -> None:
    """A reference to another object is a damaged record."""
    world = World()
    node = world.owner("a", LARGE)
    start = rebase(node)
    forged = Snapshots(world.objects).put(SUBJECT, start - 1, content("x", LARGE))
    place = next(i for i, one in enumerate(world.stream.records) if one.sequence == start)
    record = world.stream.records[place]
    world.stream.records[place] = record._replace(body=record.body[:4] + forged)
    with pytest.raises(EbbtideError) as damaged:
        world.node("b").take()
    assert reason(damaged) == "LOG_BEHIND"


def test_an_object_is_read_back_before_it_gets_a_reference() -> None:
    """Otherwise the records could be erased although S3 has something else."""
    world = World()
    node, before = world.owner("a", LARGE), list(world.stream.records)

    class Truncating(SimulatedObjects):
        def put(self, key: str, content: bytes) -> None:
            super().put(key, content[:-1])

    node.snapshots = Snapshots(Truncating())
    node.open_log()
    with pytest.raises(Unavailable) as refused:
        node.log.placed(node.copy.content())
    assert reason(refused) == "SNAPSHOTS_UNAVAILABLE" and world.stream.records == before


# --- deleting ------------------------------------------------------------------------------------------


def test_only_the_object_of_the_latest_rebase_is_kept() -> None:
    """A rebase deletes the ones before; a small one, and a deletion of the agent, delete all."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    [first] = world.objects_of_agent
    node.commit("c")
    rebase(node)
    [second] = world.objects_of_agent
    assert first != second
    node.copy.entries = ("a",)
    rebase(node)
    assert world.objects_of_agent == []
    node.commit(LARGE, "c")
    rebase(node)
    assert len(world.objects_of_agent) == 1
    world.objects.content["test/bob/00000000000000000001-ab"] = b"of another agent"
    node.log.append_gone()
    assert world.objects_of_agent == ["test/bob/00000000000000000001-ab"]


def test_an_object_of_a_killed_rebase_is_deleted_by_the_next_one() -> None:
    """The kill came after the object was stored and before the record was appended."""
    world = World()
    node = world.owner("a", LARGE)

    def crash() -> None:
        raise Crash

    world.stream.before_append = crash
    with pytest.raises(Crash):
        rebase(node)
    [left] = world.objects_of_agent
    other = world.node("b")
    assert other.take() and other.copy.entries == ("a", LARGE)
    rebase(other)
    assert len(world.objects_of_agent) == 1 and left not in world.objects_of_agent
    third = world.node("c")
    assert third.take() and third.copy.entries == ("a", LARGE)


def test_a_deposed_node_deletes_nothing_of_the_next_owner() -> None:
    """Its erasing runs late, while the next owner has stored an object and not yet appended the reference."""
    world = World()
    node = world.owner("a", LARGE)
    start = rebase(node)
    other = world.node("b")
    assert other.take()
    entry = other.log.placed(content("c", LARGE))
    node.log.erase_before(start)
    assert len(world.objects_of_agent) == 2
    rewritten = other.log.rewrite(entry)
    node.log.erase_before(start)
    other.copy.apply([content("c", LARGE)], rewritten.head, rewritten.start)
    other.log.erase_before(rewritten.start)
    assert len(world.objects_of_agent) == 1
    node.log.erase_before(start)  # the record of its rebase is erased
    third = world.node("c")
    assert third.take() and third.copy.entries == ("c", LARGE)


def test_an_object_that_waits_for_its_record_is_not_deleted() -> None:
    """It was stored directly after a rebase, while the erasing for that rebase still runs."""
    world = World()
    node = world.owner("a", LARGE)
    start = rebase(node)
    entry = node.log.placed(content("b", LARGE))
    node.log.erase_before(start)
    rewritten = node.log.rewrite(entry)
    node.copy.apply([content("b", LARGE)], rewritten.head, rewritten.start)
    other = world.node("b")
    assert other.take() and other.copy.entries == ("b", LARGE)


def test_an_object_that_arrives_late_is_deleted_after_the_next_take() -> None:
    """Its request timed out, and S3 completed it after the next rebase had deleted all others."""
    world = World()
    node = world.owner("a", LARGE)
    last = node.log.head.number
    rebase(node)
    late = Snapshots(world.objects)
    late.put(SUBJECT, last, content("deleted", LARGE))
    assert len(world.objects_of_agent) == 2
    node.open_log()
    node.log.erase_later = lambda subject, start: log.erase_before(
        world.stream, node.snapshots, subject, start
    )
    assert node.log.take(node.copy)
    assert len(world.objects_of_agent) == 1
    assert world.node("b").take()


def test_a_repair_deletes_objects_of_records_that_were_lost() -> None:
    """After all log servers have lost the last records, numbers begin again below those of their objects."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    older = list(world.stream.records)
    for number in range(9):
        node.commit(f"lost{number}")
    node.log.placed(content("deleted", LARGE))
    rebase(node)
    kept, lost = node.copy.content(), world.objects_of_agent
    world.stream.records = older
    rewritten, _ = world.node("b").log.repaired_by(kept, older[-1].head)
    assert f"{rewritten.start:020}" < lost[0].rpartition("/")[2]
    [key] = world.objects_of_agent
    assert world.objects.content[key] == kept
    third = world.node("c")
    assert third.take() and LARGE in third.copy.entries


def test_a_node_that_does_not_own_the_agent_stores_nothing() -> None:
    """The owner is confirmed before the object is stored."""
    world = World()
    node = world.owner("a", LARGE)
    node.owns = False
    with pytest.raises(NotOwned):
        node.log.placed(node.copy.content())
    assert world.objects_of_agent == []


def test_a_failed_deletion_is_reported_and_repeated() -> None:
    """The records before stay too, so that the next take finds that something is left."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    node.commit("c")
    for call in ("delete", "keys"):
        world.objects.failing = frozenset({call})
        with pytest.raises(Unavailable) as refused:
            rebase(node)
        assert reason(refused) == "SNAPSHOTS_UNAVAILABLE"
    start = node.copy.start
    assert len(world.objects_of_agent) == 3 and world.stream.records[0].sequence < start
    due: list[tuple[str, int]] = []
    node.open_log()
    node.log.erase_later = lambda *one: due.append(one)
    assert node.log.take(node.copy) and due == [(SUBJECT, start)]
    assert node.snapshots is not None
    eraser = Eraser(world.stream, node.snapshots)
    try:
        world.objects.failing = frozenset()
        eraser.add(*due[0])
        wait_until(lambda: world.stream.records[0].sequence == start, 10)
    finally:
        eraser.close()
    assert len(world.objects_of_agent) == 1


def test_the_eraser_repeats_after_a_failure_of_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither ends nor forgets the agent."""
    monkeypatch.setattr("ebbtide.cluster.ownership.RETRY_S", 0.01)
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    left = "test/ann/00000000000000000001-ab"
    world.objects.content[left] = b"left"
    world.objects.failing = frozenset({"keys"})
    tried = threading.Event()
    keys = world.objects.keys

    def notice(folder: str) -> object:
        try:
            return keys(folder)
        finally:
            tried.set()

    monkeypatch.setattr(world.objects, "keys", notice)
    eraser = Eraser(world.stream, node.snapshots)
    try:
        eraser.add(SUBJECT, node.copy.start)
        assert tried.wait(10) and left in world.objects.content
        world.objects.failing = frozenset()
        wait_until(lambda: left not in world.objects.content, 10)
    finally:
        eraser.close()


def test_nothing_is_deleted_while_the_rebase_cannot_be_read() -> None:
    """Otherwise its own object would be deleted with the others."""
    world = World()
    node = world.owner("a", LARGE)
    start = rebase(node)
    before = world.objects_of_agent
    world.stream.hidden, world.stream.stale_reads = 2, 1000
    with pytest.raises(NoAnswer):
        log.erase_before(world.stream, node.snapshots, SUBJECT, start)
    assert world.objects_of_agent == before


# --- failures ------------------------------------------------------------------------------------------


def test_a_log_stays_long_while_s3_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent is taken and works; the next take with S3 shortens the log."""
    monkeypatch.setattr(log, "LONG_LOG_RECORDS", 4)
    world = World()
    world.objects.failing = frozenset({"put"})
    node = world.node("a")
    for name in (*"abcde", LARGE):
        node.commit(name)
    configure_log("warning", "json")
    with capture_logs() as lines:
        assert node.take()
    assert [line["event"] for line in lines] == ["a long log was not shortened"]
    # Otherwise the agent would be closed again and again to be shortened.
    assert not node.log.is_long
    before = len(world.stream.records)
    node.commit("g")
    assert len(world.stream.records) == before + 1
    world.objects.failing = frozenset()
    assert node.take()
    assert world.stream.records[-1].kind == Kind.REBASE and len(world.objects_of_agent) == 1
    other = world.node("b")
    assert other.take() and other.copy.entries == (*"abcde", LARGE, "g")


def test_a_take_that_needs_s3_waits_for_it() -> None:
    """It raises SNAPSHOTS_UNAVAILABLE and changes nothing. A node whose file has the rebase needs no object."""
    world = World()
    node = world.owner("a", LARGE)
    other = world.node("b")
    assert other.take()
    assert node.take()
    rebase(node)
    node.commit("c")
    world.objects.failing = frozenset({"get", "put", "keys", "delete"})
    records = len(world.stream.records)
    with pytest.raises(Unavailable) as refused:
        other.take()
    assert reason(refused) == "SNAPSHOTS_UNAVAILABLE" and refused.value.retry_after_s
    with pytest.raises(Unavailable):
        world.node("c").take()
    assert len(world.stream.records) == records
    node.commit("d")
    assert node.take() and node.copy.entries == ("a", LARGE, "c", "d")
    world.objects.failing = frozenset()
    assert other.take() and other.copy.entries == ("a", LARGE, "c", "d")


@pytest.mark.parametrize("damage", ["missing", "other", "longer"])
def test_a_lost_object_is_a_damaged_log(damage: str) -> None:
    """LOG_BEHIND at each node without the content, no state is taken, and no leader of the log is replaced."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    node.commit("c")
    [key] = world.objects_of_agent
    intact = world.objects.content.pop(key)
    if damage != "missing":
        world.objects.content[key] = content("x", LARGE) if damage == "other" else intact + b"x"
    other = world.node("b")
    for _ in range(2):
        with pytest.raises(EbbtideError) as lost:
            other.take()
        assert reason(lost) == "LOG_BEHIND" and key in lost.value.message
    with pytest.raises(EbbtideError) as lost:
        world.node("c").log.fold(other.copy)
    assert reason(lost) == "LOG_BEHIND"
    assert other.copy.entries == () and world.stream.elections == 0
    # The owner continues, and a rebase from its file repairs the log.
    assert node.take()
    rebase(node)
    assert other.take() and other.copy.entries == ("a", LARGE, "c")


def test_a_file_is_kept_while_the_object_that_replaces_it_is_lost() -> None:
    """It has acknowledged commits, and an operator may need it."""
    world = World()
    node = world.owner("a", LARGE)
    other = world.node("b")
    assert other.take() and node.take()
    node.log.rewrite(node.log.placed(node.copy.content()))
    world.objects.content.clear()
    with pytest.raises(EbbtideError) as lost:
        other.take()
    assert reason(lost) == "LOG_BEHIND" and other.copy.entries == ("a", LARGE)


@pytest.mark.parametrize("lags", [False, True])
def test_an_object_that_a_later_rebase_made_obsolete_is_not_needed(lags: bool) -> None:
    """The node reads the earlier rebase although its object is deleted already, also from a server that lags."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    [first] = world.objects_of_agent
    node.commit("c")
    rewritten = node.log.rewrite(node.log.placed(node.copy.content()))
    node.copy.apply([], rewritten.head, rewritten.start)
    del world.objects.content[first]
    if lags:
        world.stream.lags, world.stream.hidden = True, 1
    other = world.node("b")
    assert other.take() and other.copy.entries == ("a", LARGE, "c")


def test_a_node_without_s3_takes_no_reference() -> None:
    """It keeps its file and says which setting is wrong."""
    world = World()
    node = world.owner("a", LARGE)
    rebase(node)
    other = Node(world.stream, "b")
    with pytest.raises(Unavailable, match=r"cluster\.snapshots") as refused:
        other.take()
    assert reason(refused) == "SNAPSHOTS_UNAVAILABLE"


# --- the setting ---------------------------------------------------------------------------------------


def test_the_setting_names_a_bucket_without_credentials() -> None:
    """A wrong value is refused with what is allowed."""
    assert s3_address(S3) == S3Address("bucket", "some/prefix", "https://s3.example.com", "eu-central-1")
    assert s3_address("s3://bucket") == S3Address("bucket", "", "", "")
    for value in (
        "s3://",
        "bucket",
        "https://bucket",
        "s3://key:secret@bucket",
        "s3://bucket?endpoint=https://key:secret@s3.example.com",
        "s3://bucket?endpoint=s3.example.com",
        "s3://bucket?acl=public",
        "s3://bucket?region=a&region=b",
    ):
        with pytest.raises(ValidationError, match=r"snapshots\n"):
            Settings(cluster={"snapshots": value})


class Shared:
    """The documents of a cluster, as its servers have them."""

    def __init__(self) -> None:
        self.value: bytes | None = None

    def read(self, _: str) -> tuple[bytes, int] | None:
        return None if self.value is None else (self.value, 1)

    def write(self, _: str, data: bytes, expected: int) -> int:
        assert expected == (0 if self.value is None else 1)
        self.value = data
        return 1


def test_all_nodes_have_the_same_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one is refused while other nodes run; the only node may move to S3, and none moves back."""
    servers, names = Shared(), Names("test", 1, 1)
    running = [{"name": "a", "state": "running"}, {"name": "b", "state": "running"}]
    monkeypatch.setattr(snapshot_setting, "read_nodes", lambda *_: running)

    def admit(value: str) -> None:
        settings = Settings(cluster={"snapshots": value}).cluster
        admit_setting(cast(Servers, servers), names, settings, "a")

    admit("nats")
    admit("nats")
    with pytest.raises(Precondition, match=r"\(b\) have cluster.snapshots = nats") as refused:
        admit(S3)
    assert refused.value.reason == "CLUSTER_UNUSABLE"
    running[1]["state"] = "stopped"
    admit(S3)
    assert servers.value == S3.encode()
    with pytest.raises(Precondition, match="only another cluster") as refused:
        admit("nats")
    assert refused.value.reason == "CLUSTER_UNUSABLE"
    settings = Settings().cluster
    assert used_snapshots(cast(Servers, servers), names, settings) is not None
    servers.value = b"nats"
    assert used_snapshots(cast(Servers, servers), names, settings) is None


# --- the client of S3 ----------------------------------------------------------------------------------


@contextmanager
def s3_that(version: str = "", status: int = 200, body: bytes = b"") -> Iterator[S3Objects]:
    """Yield the client of a server that answers every request in one way."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            if version:
                self.send_header("x-amz-version-id", version)
            self.send_header("etag", '"an-etag"')
            self.send_header("last-modified", "Sat, 28 Nov 2026 10:00:00 GMT")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        try:
            yield S3Objects(S3Address("bucket", "", endpoint, "us-east-1"), 2.0)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-access-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-access-key")


@pytest.mark.usefixtures("_credentials")
def test_a_bucket_with_versions_is_refused() -> None:
    """Deleted texts would stay in old versions."""
    with (
        s3_that(version="3HL4kqtJlcpXrof3") as objects,
        pytest.raises(Precondition, match="versioning") as refused,
    ):
        objects.check()
    assert refused.value.reason == "CLUSTER_UNUSABLE"


@pytest.mark.usefixtures("_credentials")
def test_the_response_of_s3_is_in_no_error_and_no_log() -> None:
    """It may contain the access key, and a client only learns that S3 refused."""
    body = b"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>an-access-key</AWSAccessKeyId></Error>"
    configure_log("debug", "json")
    with s3_that(status=403, body=body) as objects, capture_logs() as lines:
        with pytest.raises(Precondition) as refused:
            objects.check()
        assert refused.value.reason == "CLUSTER_UNUSABLE" and "403" in refused.value.message
        with pytest.raises(Unavailable) as failed:
            objects.keys("test/ann")
        with pytest.raises(Unavailable, match="See the log"):
            objects.put("test/ann/x", b"")
    for text in (refused.value.message, failed.value.message, str(lines)):
        assert "access-key" not in text and "Signature" not in text
    assert len(lines) == 2 and "403" in str(lines[0])


@pytest.mark.usefixtures("_credentials")
def test_a_server_that_does_not_answer_is_not_waited_for_long() -> None:
    """Nothing listens: SNAPSHOTS_UNAVAILABLE, for each call."""
    objects = S3Objects(S3Address("bucket", "", f"http://127.0.0.1:{free_ports(1)[0]}", ""), 1.0)
    for call in (
        objects.check,
        lambda: objects.put("a", b"a"),
        lambda: objects.get("a", 1),
        lambda: objects.keys("a"),
        lambda: objects.delete(["a"]),
    ):
        with pytest.raises(Unavailable) as failed:
            call()
        assert reason(failed) == "SNAPSHOTS_UNAVAILABLE"
