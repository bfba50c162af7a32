"""The log of erased agents of a cluster: one chain, whichever node deletes an agent."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ebbtide.cluster.erased_log import PIECE_BYTES, ErasedLog
from ebbtide.cluster.log import NoAnswer, Refused, Timing
from ebbtide.cluster.names import Names
from ebbtide.errors import Precondition, Unavailable
from ebbtide.store.audit.erased_agents import ErasedAgents, LogVerification
from ebbtide.store.chain import KEY_BYTES, AuditEntry, line_of, proof_of

NAMES = Names("test", 4, 1)
KEY = b"k" * KEY_BYTES


class Documents:
    """Documents in memory. Chosen writes get no answer, before or after they are done."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.unanswered: list[bool] = []
        """For the next writes: whether each is done without an answer."""
        self.is_down = False
        self._lock = threading.Lock()

    def read(self, subject: str) -> tuple[bytes, int] | None:
        if self.is_down:
            raise NoAnswer
        content = self.contents.get(subject)
        return None if content is None else (content, 1)

    def write(self, subject: str, data: bytes, expected: int) -> int:
        assert expected == 0
        with self._lock:
            is_done = self.unanswered.pop(0) if self.unanswered else None
            if is_done is not False:
                if subject in self.contents:
                    raise Refused
                self.contents[subject] = data
            if is_done is not None or self.is_down:
                raise NoAnswer
        return 1

    def erase(self, subject: str) -> None:
        raise AssertionError("a record is never deleted")

    def subjects(self, prefix: str) -> list[str]:
        return sorted(self.contents)


def node(root: Path, documents: Documents) -> ErasedAgents:
    """Return the log of one node."""
    log = ErasedAgents(root)
    log.shared = ErasedLog(documents, NAMES, Timing(timeout_s=0.2, sleep=lambda _: None))
    return log


def erase(log: ErasedAgents, name: str, *texts: str, last_event: int = 0) -> int:
    """Record the deletion of an agent with some texts. Return the number of the record."""
    proofs = tuple(sorted(proof_of(KEY, text) for text in texts))
    entry = AuditEntry(5, "-", "agent_erased", {"last_event": last_event}, proofs)
    return log.append(entry, name, KEY).number


def names_of(log: ErasedAgents) -> list[str]:
    """Return the agents of an intact log, in order."""
    log.follow()
    following = LogVerification(log.state())
    found = []
    for record, _ in log.logged():
        following.follow(log.with_proofs(record))
        line = line_of(record)
        assert line is not None
        found.append(line.agent_id)
    assert following.end().broken_at is None, following.end().problem
    return found


def test_nodes_have_one_chain(tmp_path: Path) -> None:
    """Records of two nodes follow one another; each node has all of them, with their proofs."""
    documents = Documents()
    one, other = node(tmp_path / "one", documents), node(tmp_path / "other", documents)
    for root in ("one", "other"):
        (tmp_path / root).mkdir()
    assert [erase(one, "ann", "bees", last_event=7), erase(other, "bo"), erase(one, "cy", "cats")] == [
        1,
        2,
        3,
    ]
    assert names_of(one) == names_of(other) == ["ann", "bo", "cy"]
    assert other.held(1, ["bees", "cats"]) == [True, False] and other.held(3, ["cats"]) == [True]
    late = node(tmp_path / "late", documents)
    (tmp_path / "late").mkdir()
    assert late.last_event() == 7, "an agent of the same name continues the numbers of its events"
    assert names_of(late) == ["ann", "bo", "cy"]


def test_nodes_that_write_at_a_time(tmp_path: Path) -> None:
    """Threads of three nodes lose no record, and both files and the shared log have one order."""
    documents, logs = Documents(), []
    for place in range(3):
        (tmp_path / str(place)).mkdir()
        logs.append(node(tmp_path / str(place), documents))
    threads = [
        threading.Thread(target=erase, args=(log, f"a{place}{number}", "text"))
        for place, log in enumerate(logs)
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first, *others = [names_of(log) for log in logs]
    assert len(set(first)) == 24 and all(other == first for other in others)


def test_a_lost_answer_gives_one_record(tmp_path: Path) -> None:
    """A write that had no answer is sent again, whether it was done or not."""
    documents = Documents()
    log = node(tmp_path, documents)
    documents.unanswered = [True, False]
    assert erase(log, "ann") == 1
    assert erase(log, "bo") == 2
    assert names_of(log) == ["ann", "bo"]


def test_a_record_of_many_texts(tmp_path: Path) -> None:
    """Its keyed hashes are several documents, and arrive whole at another node."""
    documents = Documents()
    texts = [f"text {number}" for number in range(2 * PIECE_BYTES // 32 + 10)]
    for root in ("one", "other"):
        (tmp_path / root).mkdir()
    erase(node(tmp_path / "one", documents), "ann", *texts)
    other = node(tmp_path / "other", documents)
    assert names_of(other) == ["ann"]
    assert all(other.held(1, texts)) and len(documents.contents) == 3


def test_records_of_before_are_shared(tmp_path: Path) -> None:
    """A machine that joins first brings its records; one with other records is refused and changes nothing."""
    for root in ("one", "other"):
        (tmp_path / root).mkdir()
        for name in ("ann", "bo"):
            erase(ErasedAgents(tmp_path / root), f"{root} {name}", "bees")
    documents = Documents()
    one = node(tmp_path / "one", documents)
    assert names_of(one) == ["one ann", "one bo"]
    before = dict(documents.contents)
    with pytest.raises(Precondition) as refused:
        node(tmp_path / "other", documents).follow()
    assert refused.value.reason == "CLUSTER_UNUSABLE" and str(tmp_path / "other") in refused.value.message
    assert documents.contents == before and names_of(ErasedAgents(tmp_path / "other")) == [
        "other ann",
        "other bo",
    ]


def test_without_log_servers_nothing_is_recorded(tmp_path: Path) -> None:
    """A deletion is refused rather than recorded on one node only."""
    documents = Documents()
    log = node(tmp_path, documents)
    erase(log, "ann")
    documents.is_down = True
    with pytest.raises(Unavailable) as refused:
        erase(log, "bo")
    assert refused.value.reason == "NOT_ENOUGH_LOG_SERVERS"
    documents.is_down = False
    documents.contents.pop("test.state.erased.2", None)
    assert names_of(log) == ["ann"]
