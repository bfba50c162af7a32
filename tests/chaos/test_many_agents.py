"""Thousands of agents on disk and few open: start, resumption, listing, eviction."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.ids import AgentId
from ebbtide.language.port import Processed
from ebbtide.store.directory.data_directory import directory_name
from tests.support.fading import HARBOUR, KETTLE, fading
from tests.support.in_process import service_in, settle, tell
from tests.support.process import Daemon, check_data_directory, running_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.stubborn_daemon import MODULE, hang_file
from tests.support.tier import amount
from tests.support.waiting import Stopwatch, eventually, wait_until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read from /proc"),
]

MANY = amount("EBBTIDE_MANY_AGENTS", 2500, 10_000)


@contextlib.contextmanager
def crowd(data_dir: Path, template: str, count: int) -> Iterator[set[str]]:
    """Add this many idle agents to a directory for the length of a block. Yield their ids.

    Their directories contain what a start and a listing read, but no store, so opening one would be noticed.
    """
    meta = json.loads((data_dir / "agents" / template / "meta.json").read_text())
    ids = {f"idle-{number:05}" if number % 3 else f"闲人 {number}" for number in range(count)}
    directories = []
    for agent_id in ids:
        directory = data_dir / "agents" / directory_name(AgentId(agent_id))
        directory.mkdir()
        (directory / "meta.json").write_text(json.dumps({**meta, "agent_id": agent_id}))
        directories.append(directory)
    try:
        yield ids
    finally:
        for directory in directories:
            shutil.rmtree(directory)


def opened_stores(daemon: Daemon) -> set[str]:
    """Return the directories of the stores that the process has open at one moment, according to the kernel.

    Descriptors are read one after the other, so a single reading can list a store that was closed meanwhile and its
    successor. A store in two consecutive readings was open between them.
    """
    return _read_opened_stores(daemon) & _read_opened_stores(daemon)


def _read_opened_stores(daemon: Daemon) -> set[str]:
    found = set()
    for descriptor in Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            path = Path(os.readlink(descriptor))
            if path.name == "data.mdb":
                found.add(path.parent.name)
    return found


@contextlib.contextmanager
def started_by_hand(data_dir: Path) -> Iterator[Daemon]:
    """Yield a daemon that is not started, then kill it and check its stores."""
    daemon = Daemon(data_dir)
    try:
        yield daemon
    finally:
        daemon.close()
    check_data_directory(data_dir)


def cpu_s(daemon: Daemon) -> float:
    """Return the CPU time of the daemon, which a busy machine does not change."""
    # The fields after the name; the name is in brackets and may contain any character.
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost_of_start_s(daemon: Daemon) -> float:
    """Start the daemon. Return the CPU time until it answers."""
    daemon.start()
    assert daemon.client.get("/healthz").status_code == 200
    return cpu_s(daemon)


def scheduler(daemon: Daemon) -> dict[str, Any]:
    told: dict[str, Any] = daemon.client.get("/v1/scheduler").json()
    return told


async def prepare(data_dir: Path) -> None:
    """Create agents with unfinished work: one with waiting batches, one within a pass, and one idle."""
    model = ScriptedModel()

    async def never_shorten() -> Processed:
        text, target = model.log[-1][1]
        if target is not None:
            await asyncio.sleep(3600)
        return await ScriptedModel().process(text)

    async with service_in(data_dir, model) as service:
        await tell(service, "done", "The kettle is blue.")
        await settle(service, "done")
        model.always["process"] = never_shorten
        await fading(service, "owing", KETTLE, HARBOUR)
        await eventually(lambda: model.log[-1] == ("process", (KETTLE, len(KETTLE) // 2)))
        # The model runs one request at a time, so these wait.
        await tell(service, "Behind!", "The cup is red.")
        await tell(service, "Behind!", "The spoon is green.")


@pytest.mark.full
def test_start_with_ten_thousand_agents_opens_only_those_with_work(tmp_path: Path) -> None:
    """A start costs no more with idle agents on disk, opens those with work, and continues it without a request."""
    data_dir = tmp_path / "data"
    asyncio.run(prepare(data_dir))
    marked = {path.name for path in (data_dir / "work").iterdir()}
    assert marked == {"owing", directory_name(AgentId("Behind!"))}
    empty_s = []
    for number in range(3):
        with started_by_hand(tmp_path / f"empty{number}") as daemon:
            empty_s.append(cost_of_start_s(daemon))
            assert daemon.stop() == 0
    # Markers without work, without an agent, without sense: harmless.
    for name in ("done", "never-was", "~nonsense", "UPPER", ".hidden"):
        (data_dir / "work" / name).touch()
    with started_by_hand(data_dir) as daemon, crowd(data_dir, "done", MANY - 3) as idle:
        full_s = cost_of_start_s(daemon)
        print(f"a start costs {full_s:.2f} s with {MANY} agents, {min(empty_s):.2f} s with none")
        assert full_s < min(empty_s) + 1.0
        # No request but for the health of the process so far, and none to an agent until all is done.
        wait_until(lambda: not any((data_dir / "work").iterdir()), 20)
        assert opened_stores(daemon) <= marked | {"done"}
        told = scheduler(daemon)
        assert 2 <= told["open_agents"] <= 3
        assert told["failed_slices"] == 0
        behind = daemon.get("Behind!/batches").json()["batches"]
        assert [(b["state"], len(b["node_ids"])) for b in behind] == [("digested", 1), ("digested", 1)]
        assert behind[0]["node_ids"] != behind[1]["node_ids"]
        owing = daemon.get("owing").json()
        assert (owing["owed_passes"], owing["finished_passes"]) == (0, 2)
        rewritten = daemon.get("owing/nodes").json()["nodes"][:2]
        assert [[r["pass_number"] for r in node["rewrites"]] for node in rewritten] == [[2], [2]]

        before_s = cpu_s(daemon)
        listed: list[str] = []
        token = ""
        sizes = random.Random(1)
        while True:
            params = {"page_size": sizes.choice((1000, 999, 700)), "page_token": token}
            page = daemon.client.get("/v1/agents", params=params).json()
            listed += [agent["agent_id"] for agent in page["agents"]]
            token = page["next_page_token"]
            if not token:
                break
        listing_s = cpu_s(daemon) - before_s
        print(f"listing them costs {listing_s:.2f} s")
        assert len(listed) == MANY
        assert set(listed) == idle | {"done", "owing", "Behind!"}
        assert listing_s < 5
        assert opened_stores(daemon) <= marked | {"done"}, "listing opens nobody"
        assert daemon.stop() == 0
        assert '"level": "error"' not in daemon.log


def test_agent_that_cannot_be_resumed_does_not_stop_others(tmp_path: Path) -> None:
    """A marked agent without a store or with damaged metadata is skipped; all others resume."""
    data_dir = tmp_path / "data"
    hang_file(data_dir).touch()
    with running_daemon(data_dir, module=MODULE) as daemon:
        for agent in ("a-damaged", "b-whole", "y-lost", "z-whole"):
            daemon.remember(agent, "This will hang for long.")
        daemon.kill()
    kept = (data_dir / "agents/y-lost").rename(tmp_path / "kept")
    damaged = data_dir / "agents/a-damaged/meta.json"
    meta = damaged.read_text()
    damaged.write_text(meta[:20])
    with running_daemon(data_dir) as daemon:
        wait_until(lambda: not {"b-whole", "z-whole"} & set(os.listdir(data_dir / "work")))
        for agent in ("b-whole", "z-whole"):
            assert [b["state"] for b in daemon.get(f"{agent}/batches").json()["batches"]] == ["digested"]
        assert daemon.client.get("/v1/agents").status_code == 200
        assert daemon.stop() == 0
        # With its metadata repaired, it resumes like the others: its marker was kept.
        damaged.write_text(meta)
        kept.rename(data_dir / "agents/y-lost")
        daemon.start()
        wait_until(lambda: "a-damaged" not in os.listdir(data_dir / "work"))
        response = daemon.post("a-damaged/flush", {"timeout_ms": 0})
        assert response.json()["digested"]


def test_three_at_a_time_serve_twelve_in_rotation(tmp_path: Path) -> None:
    """With room for three open agents, twelve are served in turn by every operation; the least recently used closes."""
    settings = {"FLEET__MAX_OPEN_AGENTS": 3}
    agents = [f"agent{number}" for number in range(12)]
    with running_daemon(tmp_path / "data", settings) as daemon:
        most = 0
        is_over = threading.Event()

        def watch() -> None:
            nonlocal most
            while not is_over.is_set():
                most = max(most, len(opened_stores(daemon)))
                time.sleep(0.002)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for turn in range(2):
                for agent in agents:
                    daemon.remember(agent, f"The kettle of {agent} in turn {turn} is blue.")
                    daemon.flush(agent)
                    assert f"kettle of {agent} in turn {turn}" in daemon.recall(agent, "kettle")
                    assert daemon.get(agent).json()["counts"]["nodes"] == turn + 1
                    for path in ("focus", "nodes", "nodes/n1", "links", "batches", "batches/b1"):
                        assert daemon.get(f"{agent}/{path}").status_code == 200
                    assert daemon.client.patch(f"/v1/agents/{agent}", json={"focus_limit": 4}).is_success
                    assert daemon.post(f"{agent}/compress").status_code == 200
                    assert scheduler(daemon)["open_agents"] <= 3
            # The least recently used one was closed: use one of three, open another, see which remain.
            for agent in agents[:3]:
                daemon.flush(agent)
            wait_until(lambda: not any((tmp_path / "data/work").iterdir()))
            daemon.get(agents[0])
            daemon.get(agents[3])
            listed = daemon.client.get("/v1/agents").json()["agents"]
            assert {a["agent_id"] for a in listed if a["open"]} == {agents[0], agents[2], agents[3]}
            # All at once: every agent is served in the end.
            failures: list[str] = []

            def talk(agent: str) -> None:
                with httpx.Client(base_url=daemon.url, timeout=60) as client:
                    for turn in range(4):
                        body = {"messages": [{"role": "user", "content": f"Cup {turn} is red."}]}
                        deadline_s = time.monotonic() + 30
                        while True:
                            response = client.post(f"/v1/agents/{agent}/remember", json=body)
                            if response.status_code == 202:
                                break
                            told = response.json()["error"]["reason"]
                            if told != "TOO_MANY_AGENTS" or time.monotonic() > deadline_s:
                                failures.append(response.text)
                                return
                            time.sleep(0.05)

            threads = [threading.Thread(target=talk, args=(agent,)) for agent in agents]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failures == []
            for agent in agents:
                daemon.flush(agent)
                contents = [node["content"] for node in daemon.get(f"{agent}/nodes").json()["nodes"]]
                assert contents[2:] == [f"Cup {turn} is red." for turn in range(4)]
        finally:
            is_over.set()
            watcher.join()
        assert most == 3, "as many as allowed, never more, also while one closes and another opens"


def test_too_many_agents_are_refused_with_retry_after(tmp_path: Path) -> None:
    """When all open agents are busy another is refused with Retry-After, and is served once one is idle."""
    data_dir = tmp_path / "data"
    hang_file(data_dir).touch()
    with running_daemon(data_dir, {"FLEET__MAX_OPEN_AGENTS": 3}, module=MODULE) as daemon:
        daemon.remember("patient", "The kettle is blue.")
        daemon.flush("patient")
        for agent in ("one", "two", "three"):
            daemon.remember(agent, "This will hang for long.")
        watch = Stopwatch()
        for response in (
            daemon.post("patient/recall"),
            daemon.post("new/remember", {"messages": [{"role": "user", "content": "The cup is red."}]}),
        ):
            assert response.status_code == 429
            error = response.json()["error"]
            assert (error["reason"], error["status"]) == ("TOO_MANY_AGENTS", "RESOURCE_EXHAUSTED")
            assert int(response.headers["retry-after"]) >= 1
        assert watch.s < 20
        assert len(opened_stores(daemon)) == 3
        # Open agents continue to remember and recall.
        daemon.remember("one", "The spoon is green.")
        assert daemon.post("two/recall", {"patience_ms": 0}).status_code == 200
        listed = [a["agent_id"] for a in daemon.client.get("/v1/agents").json()["agents"]]
        assert sorted(listed) == ["one", "patient", "three", "two"], "what was refused left no agent behind"
        hang_file(data_dir).unlink()
        for agent in ("one", "two", "three"):
            assert daemon.flush(agent)["digested"]
        daemon.remember("new", "The cup is red.")
        assert daemon.recall("new", "cup") == "[Memory] The cup is red."
        assert daemon.recall("patient", "kettle") == "[Memory] The kettle is blue."
        # A request waits a moment for room before it is refused.
        hang_file(data_dir).touch()
        for agent in ("one", "two", "three"):
            daemon.remember(agent, "This will hang again.")
        timer = threading.Timer(0.7, hang_file(data_dir).unlink)
        timer.start()
        assert daemon.post("patient/recall").status_code == 200
        timer.join()


def test_more_marked_agents_than_room_are_all_resumed(tmp_path: Path) -> None:
    """A start with more unfinished agents than may be open resumes all of them in turn."""
    data_dir = tmp_path / "data"
    hang_file(data_dir).touch()
    with running_daemon(data_dir, module=MODULE) as daemon:
        for number in range(10):
            daemon.remember(f"agent{number}", "This will hang for long.")
        daemon.kill()
    with running_daemon(data_dir, {"FLEET__MAX_OPEN_AGENTS": 2}) as daemon:
        wait_until(lambda: not any((data_dir / "work").iterdir()), 30)
        for number in range(10):
            answer = daemon.flush(f"agent{number}", timeout_ms=0)
            assert (answer["digested"], answer["passes_done"]) == (True, True)


def test_replays_do_not_use_up_the_room(tmp_path: Path) -> None:
    """Replayed idempotency keys over more agents than may be open block no other agent."""
    with running_daemon(tmp_path / "data", {"FLEET__MAX_OPEN_AGENTS": 3}) as daemon:
        for _ in range(2):
            for number in range(8):
                batch = daemon.remember(f"agent{number}", "The kettle is blue.", idempotency_key="once")
                assert batch == "b1"
                assert daemon.post(f"agent{number}/batches/b9/retry").status_code == 404
                assert daemon.post(f"agent{number}/compress", {"passes": 10**6}).status_code == 400
