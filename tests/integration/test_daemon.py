"""The daemon as a whole, in a process of its own: the steps of the README, and the guarantees."""

from __future__ import annotations

import http.client
import json
import re
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ebbtide.ids import AgentId
from ebbtide.rest import view_files
from ebbtide.store.directory.data_directory import directory_name
from tests.support.process import Daemon, running_daemon

FLOOD = (
    "The old lighthouse keeper at Cabo Espichel taught Ann to mend fishing nets before the winter flood came."
)
CHINESE = ("我五月搬到了里斯本。", "猫叫小白，它怕打雷。")
ENGLISH = ("I moved to Lisbon in May.", "My sister Clara plays the cello.")


def memories(text: str) -> list[str]:
    """Return the blocks of a recall."""
    return text.split("\n---\n") if text else []


def all_of(daemon: Daemon, path: str, listing: str) -> list[dict[str, Any]]:
    """Return a complete listing, in small pages."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        response = daemon.get(path, params={"page_size": 7, "page_token": token})
        assert response.status_code == 200, response.text
        found += response.json()[listing]
        token = response.json()["next_page_token"]
        if not token:
            return found


# --- the story -------------------------------------------------------------------------------------------


def test_remember_and_recall_in_two_languages(daemon: Daemon) -> None:
    """Messages in either language are recalled by their words, as JSON and as plain text."""
    daemon.remember("ann", *ENGLISH)
    daemon.remember("安", *CHINESE)
    assert daemon.flush("ann")["digested"]
    assert daemon.flush("安")["digested"]
    assert daemon.recall("ann", "lisbon") == "[Memory] I moved to Lisbon in May."
    assert daemon.recall("安", "里斯本") == "[记忆] 我五月搬到了里斯本。"
    assert daemon.recall("ann", "里斯本") == ""
    assert set(memories(daemon.recall("安"))) == {f"[记忆] {text}" for text in CHINESE}
    daemon.remember("both", ENGLISH[0])
    daemon.remember("both", CHINESE[1])
    both = memories(daemon.recall("both"))
    assert set(both) == {f"[Memory] {ENGLISH[0]}", f"[记忆] {CHINESE[1]}"}

    response = daemon.post("安/recall", {"keywords": ["小白"]}, headers={"Accept": "text/plain"})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.content.decode() == "[记忆] 猫叫小白，它怕打雷。"
    assert (response.headers["x-pending-batches"], response.headers["x-parked-batches"]) == ("0", "0")
    assert daemon.post("ann/recall", {}, headers={"Accept": "*/*"}).json()["pending_batches"] == 0


def test_inspection_shows_the_origin_of_a_memory(daemon: Daemon) -> None:
    """Nodes, focus, links and batches can be inspected, and refer to each other."""
    body = {
        "messages": [
            {
                "role": "user",
                "speaker": "Ann",
                "content": ENGLISH[0],
                "id": "m-1",
                "timestamp": 1_700_000_000_000,
            },
            {"role": "assistant", "content": ENGLISH[1], "id": "m-2"},
        ],
        "conversation_id": "talk-7",
    }
    response = daemon.post("ann/remember", body)
    assert response.status_code == 202
    daemon.remember("ann", "The weather is fine.")
    daemon.flush("ann")
    batch = daemon.client.get(response.headers["location"]).json()
    assert (batch["state"], batch["conversation_id"], batch["message_count"]) == ("digested", "talk-7", 2)
    nodes = {node["id"]: node for node in all_of(daemon, "ann/nodes", "nodes")}
    first = nodes[batch["node_ids"][0]]
    assert (first["label"], first["content"]) == ("Ann: ", ENGLISH[0])
    [source] = first["sources"]
    assert (source["message_id"], source["speaker"], source["batch_id"]) == ("m-1", "Ann", batch["batch_id"])
    assert ENGLISH[0].encode()[source["offset"] :][: source["length"]].decode() in first["content"]
    assert first["created_at"] == 1_700_000_000_000
    detail = daemon.get("ann/nodes/n1").json()
    linked = {*nodes, *(entity["id"] for entity in first["entities"])} - {"n1"}
    assert {link["target"] for link in detail["links_out"]} == linked
    links = all_of(daemon, "ann/links", "links")
    assert {link["target"] for link in links if link["source"] == "n1"} == linked
    focus = daemon.get("ann/focus").json()
    assert [node["id"] for node in focus["nodes"]] == list(reversed(nodes))
    entities = all_of(daemon, "ann/entities", "entities")
    assert {entity["id"] for entity in focus["entities"]} <= {entity["id"] for entity in entities}
    counts = {"nodes": len(nodes), "entities": len(entities), "links": len(links), "messages": 3}
    assert len(nodes) == 3 and len(entities) >= 3
    assert daemon.get("ann").json()["counts"] == counts
    for path, reason in (("nodes/n9", "NODE_NOT_FOUND"), ("batches/b9", "BATCH_NOT_FOUND")):
        missing = daemon.get(f"ann/{path}")
        assert (missing.status_code, missing.json()["error"]["reason"]) == (404, reason)
    assert daemon.post("nobody/flush").json()["error"]["reason"] == "AGENT_NOT_FOUND"


def test_memory_shrinks_and_is_forgotten_with_a_trace(tmp_path: Path) -> None:
    """An unused memory shrinks step by step, is forgotten at last, and leaves a gap that a recall reports.

    Closing the agent, restarts and recalls do not change this.
    """
    with running_daemon(tmp_path / "data") as daemon:
        assert daemon.client.put("/v1/agents/ann", json={"decay_rate": 0.9}).status_code == 201
        daemon.remember("ann", FLOOD)
        daemon.flush("ann")
        lengths = [len(FLOOD)]
        gone_at = None
        for batch in range(2, 76):
            daemon.remember(
                "ann", f"Day {batch}: the ferry to Cacilhas left on time and number{batch} was sold out."
            )
            daemon.flush("ann")
            if batch == 20:
                daemon.post("ann/close")
            if batch == 25:
                assert daemon.stop() == 0
                daemon.start()
            response = daemon.get("ann/nodes/n1")
            if response.status_code == 404:
                assert response.json()["error"]["reason"] == "NODE_FORGOTTEN"
                if gone_at is None:
                    gone_at = batch
                    assert_gap_is_told(daemon, "n1", "lighthouse")
                continue
            assert gone_at is None, "what is forgotten does not come back"
            node = response.json()
            lengths.append(len(node["content"]))
            assert node["original_length"] == len(FLOOD)
            if node["importance"] >= 1:
                assert node["content"] == FLOOD
        print(f"lengths {lengths}, gone at batch {gone_at}")
        assert lengths == sorted(lengths, reverse=True), "it never grows"
        assert lengths[10] == len(FLOOD)
        assert len(set(lengths)) >= 3, "it goes by and by"
        assert gone_at is not None
        assert 30 <= gone_at <= 70
        daemon.remember("fresh", "The kettle is blue.")
        daemon.flush("fresh")
        assert daemon.recall("fresh", "lighthouse", depth=8) == "", "what was never known leaves no gap"


def assert_gap_is_told(daemon: Daemon, gone: str, word: str) -> None:
    """Assert that inspection and recall report the knowledge that Ann once had."""
    living = [node["id"] for node in all_of(daemon, "ann/nodes", "nodes")]
    dangling = [daemon.get(f"ann/nodes/{node_id}").json()["dangling"] for node_id in living]
    assert any(link["target"] == gone for links in dangling for link in links)
    assert any(link["dangling"] and link["target"] == gone for link in all_of(daemon, "ann/links", "links"))
    told = memories(daemon.recall("ann", word, depth=8))
    assert 1 <= len(told) <= 3
    for block in told:
        assert re.fullmatch(
            r"\[Memory\] (Something came (before|after) it, but I can't recall what"
            r"|It was linked to something now forgotten|I once knew something about .+, but I can't recall it)",
            block,
        )


CUES: list[dict[str, Any]] = [
    {},
    {"depth": 0},
    {"depth": 1},
    {"depth": 8},
    {"depth": 8, "max_results": 3},
    {"depth": 8, "max_results": 0},
    {"keywords": ["ferry"]},
    {"keywords": ["渡轮", "7"], "depth": 5},
    {"keywords": ["nothing like it"], "depth": 8},
    {"relations": ["next"], "depth": 4},
    {"relations": ["previous", "下文"], "depth": 8},
    {"relations": ["no such"], "depth": 8},
]


def test_recalls_are_the_same_bytes_after_close_restart_and_kill(tmp_path: Path) -> None:
    """Each cue returns the same bytes after closing the agent, a restart and a kill."""
    with running_daemon(tmp_path / "data") as daemon:
        daemon.client.put(
            "/v1/agents/ann", json={"decay_rate": 0.8, "focus_limit": 3, "long_term_factor": 0.1}
        )
        for turn in range(25):
            daemon.remember(
                "ann",
                f"第{turn}天，去卡西利亚斯的渡轮准时出发。",
                f"Ferry {turn} smelled of oranges and old rope, and nobody minded.",
                f"On evening {turn} we counted the lights across the water together.",
            )
        daemon.flush("ann")
        cues = [*CUES, *({"keywords": [str(n)], "depth": n % 9} for n in range(25))]

        def everything() -> list[bytes]:
            recalls = [daemon.post("ann/recall", cue).content for cue in cues]
            looks = [daemon.get(f"ann/{p}?page_size=1000").content for p in ("nodes", "links")]
            return [*recalls, *looks, daemon.get("ann/focus").content]

        before = everything()
        assert len(set(before)) > 10
        assert everything() == before, "looking changes nothing"
        assert daemon.post("ann/close").json() == {"agent_id": "ann", "closed": True}
        assert daemon.post("ann/close").json() == {"agent_id": "ann", "closed": False}
        assert everything() == before
        assert daemon.stop() == 0
        daemon.start()
        assert everything() == before
        daemon.kill()
        daemon.start()
        assert everything() == before
        daemon.flush("ann")
        assert everything() == before, "nothing was owed"


def test_parameters_are_set_compared_and_changed(tmp_path: Path) -> None:
    """PUT creates or compares, PATCH changes, null resets to the default; a restart keeps the values."""
    with running_daemon(tmp_path / "data") as daemon:
        client = daemon.client
        made = client.put("/v1/agents/ann", json={"decay_rate": 0.9, "locale": "en"})
        assert (made.status_code, made.json()["parameters"]["decay_rate"]) == (201, 0.9)
        assert client.put("/v1/agents/ann", json={"decay_rate": 0.9}).status_code == 200
        assert client.put("/v1/agents/ann").status_code == 200
        differs = client.put("/v1/agents/ann", json={"decay_rate": 0.8})
        assert (differs.status_code, differs.json()["error"]["reason"]) == (409, "PARAMETERS_DIFFER")
        assert client.get("/v1/agents/ann").json()["parameters"]["decay_rate"] == 0.9
        for bad in ({"decay_rate": 0}, {"decay_rate": "0.5"}, {"focus_limit": 65}, {"locale": "fr"}):
            refused = client.patch("/v1/agents/ann", json=bad)
            assert refused.status_code == 400
            assert next(iter(bad)) in refused.json()["error"]["message"]
        assert client.put("/v1/agents/ben", json={"decay": 1}).json()["error"]["reason"] == "UNKNOWN_FIELD"
        assert client.get("/v1/agents/ben").status_code == 404, "a refused PUT makes nobody"
        assert client.patch("/v1/agents/ben", json={"locale": "en"}).status_code == 404
        assert (
            client.patch("/v1/agents/ann", json={"decay_rate": 0.7}).json()["parameters"]["decay_rate"] == 0.7
        )
        assert daemon.stop() == 0
        daemon.start()
        client = daemon.client
        parameters = client.get("/v1/agents/ann").json()["parameters"]
        assert (parameters["decay_rate"], parameters["locale"]) == (0.7, "en")
        back = client.patch("/v1/agents/ann", json={"decay_rate": None})
        assert back.json()["parameters"]["decay_rate"] == 0.97


def test_erased_agent_leaves_no_files(tmp_path: Path) -> None:
    """DELETE leaves no response, file or byte of the agent; a new agent may use the id."""
    secret = "xylophonist"
    with running_daemon(tmp_path / "data") as daemon:
        for agent in ("ann", "Ann"):
            daemon.remember(agent, f"The {secret} of {agent} came by.", idempotency_key="k")
        daemon.flush("ann")
        response = daemon.client.delete("/v1/agents/ann")
        told = response.json()
        assert (response.status_code, told["agent_id"], told["erased"]) == (200, "ann", True)
        assert not (tmp_path / "data/agents/ann").exists()
        assert not (tmp_path / "data/work/ann").exists()
        assert daemon.post("ann/recall").json()["text"] == ""
        for verb in ("flush", "close", "compress"):
            assert daemon.post(f"ann/{verb}").json()["error"]["reason"] == "AGENT_NOT_FOUND"
        for path in ("", "/nodes", "/links", "/focus", "/batches", "/batches/b1", "/nodes/n1"):
            assert daemon.client.get(f"/v1/agents/ann{path}").status_code == 404
        assert daemon.client.delete("/v1/agents/ann").status_code == 404
        assert [a["agent_id"] for a in daemon.client.get("/v1/agents").json()["agents"]] == ["Ann"]
        assert secret in daemon.recall("Ann", secret), "the other one is untouched"
        assert daemon.remember("ann", "Somebody else.", idempotency_key="k") == "b1"
        assert daemon.recall("ann", secret, depth=8) == ""
        assert daemon.client.delete("/v1/agents/Ann").status_code == 200
        assert daemon.stop() == 0
        for path in (tmp_path / "data").rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes()


# --- ids that mean harm --------------------------------------------------------------------------------------


REFUSED_IDS = [
    "..%2Fann", "%2e%2e%2fann", "..%5Cann", "a%2Fb", "%2e%2e", "..", "%2e", "ann%00", "%00", "ann%0A", "ann%0d%0a",
    "ann.", "%2eann", "ann%20", "%20ann", "%C2%A0ann", "ann%E3%80%80", "a" * 129, quote("字" * 129),
    quote(unicodedata.normalize("NFD", "é")), quote("\u212b"), "%E2%80%A8ann", "%7F", "%C2%85", "%ED%A0%80", "%FF",
    "ann%C0%AE", "%20", "ann%09",
]  # fmt: skip
"""Ids as they appear in a path."""

ODD_IDS = [
    "Ann", "ANN", "aNN", "a\u200bnn", "аnn", "ann-", "ann_", "_ann", "-ann", "CON", "con", "nul", "aux.txt", "~ann",
    directory_name(AgentId("Ann")), directory_name(AgentId("Ann")).upper(), "🙂", "👩‍👩‍👧", "é", "ß", "ſ", "K",
    "a" * 128, "a" * 65, "字" * 128, "a b", "a?b", "a#b", "a%b", "a%2Fb", "%2e%2e", "a;b", "a:b", "a*b", "a|b", "$HOME",
    "lock", "data.mdb", "meta.json", "agents", "…", "a..b", "‮gpj", "İ", "a'b\"c", "<b>", "{agent_id}", "0", "--help",
]  # fmt: skip
"""Unusual valid ids, each of a different agent."""


def test_hostile_ids_reach_no_other_files(daemon: Daemon) -> None:
    """Ids that could be read as a path are refused with a reason; no file is outside the directory."""
    daemon.remember("ann", "The kettle is blue.")
    daemon.flush("ann")
    root = daemon.data_dir
    before = sorted(path.name for path in (root / "agents").iterdir())
    outside = sorted(path.name for path in root.parent.iterdir())
    host = daemon.url.removeprefix("http://")
    body = json.dumps({"messages": [{"role": "user", "content": "Intruder."}]})
    for raw_id in REFUSED_IDS:
        for method, verb in (("POST", "/remember"), ("PUT", ""), ("DELETE", ""), ("GET", "/nodes")):
            connection = http.client.HTTPConnection(host, timeout=10)
            sent = {"Content-Type": "application/json"}
            connection.request(
                method, f"/v1/agents/{raw_id}{verb}", body if verb == "/remember" else None, sent
            )
            response = connection.getresponse()
            told = json.loads(response.read())["error"]
            connection.close()
            assert (response.status, told["reason"]) == (400, "INVALID_AGENT_ID"), (raw_id, verb, told)
            assert told["message"].isprintable()
    for path in ("/v1/agents//remember", "/v1/agents/", "/v1/agents/../ann/remember", "/v1/agents/./ann/remember",
                 "//v1/agents/ann/remember", "/v1/agents/a/b/remember", "/v1/agents/ann/../ben/remember"):  # fmt: skip
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status in (400, 404, 405), path
        response.read()
        connection.close()
    assert sorted(path.name for path in (root / "agents").iterdir()) == before
    assert sorted(path.name for path in root.parent.iterdir()) == outside
    assert daemon.get("ann").json()["counts"]["messages"] == 1


def test_unusual_ids_are_separate_agents(daemon: Daemon) -> None:
    """Look-alikes, device names, case variants and double escapes never share a memory or a directory."""
    ids = ["ann", *ODD_IDS]
    assert len(set(ids)) == len(ids)
    for number, agent in enumerate(ids):
        path = f"/v1/agents/{quote(agent, safe='')}"
        response = daemon.client.post(
            f"{path}/remember", json={"messages": [{"role": "user", "content": f"Number {number} was here."}]}
        )
        assert response.status_code == 202, (agent, response.text)
        assert daemon.client.post(f"{path}/flush", json={}).json()["digested"]
    for number, agent in enumerate(ids):
        text = daemon.client.post(f"/v1/agents/{quote(agent, safe='')}/recall", json={"depth": 8}).json()[
            "text"
        ]
        assert text == f"[Memory] Number {number} was here.", agent
    listed = all_listed(daemon)
    assert sorted(listed) == sorted(ids)
    names = [path.name for path in (daemon.data_dir / "agents").iterdir()]
    assert len({name.casefold() for name in names}) == len(ids), "also where case does not count"
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}|~[a-z2-7]{52}", name) for name in names)
    # A killed daemon would leave many stores that a child process must read before they are checked.
    assert daemon.stop() == 0


def all_listed(daemon: Daemon) -> list[str]:
    """Return the ids of all agents."""
    found: list[str] = []
    token = ""
    while True:
        page = daemon.client.get("/v1/agents", params={"page_size": 7, "page_token": token}).json()
        found += [agent["agent_id"] for agent in page["agents"]]
        token = page["next_page_token"]
        if not token:
            return found


# --- the log -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "console"])
def test_log_holds_no_content_and_no_forged_line(tmp_path: Path, form: str) -> None:
    """No message, query or invalid input is logged at any level, and no input forges a log line."""
    marker, forged = "xqzmarker", '{"event": "forged", "level": "error"}'
    settings = {"LOG__LEVEL": "debug"}
    with running_daemon(tmp_path / "data", settings) as daemon:
        if form == "console":
            daemon.kill()
            daemon.flags = ("--log-format", "console")
            daemon.start()
        client = daemon.client
        said = f"The {marker} is blue.\n{forged}"
        message = {"role": "user", "content": said, "speaker": marker, "id": marker}
        client.post(
            "/v1/agents/ann/remember",
            json={"messages": [message], "metadata": {marker: marker}, "idempotency_key": marker,
                  "conversation_id": marker},
        ).raise_for_status()  # fmt: skip
        daemon.flush("ann")
        assert marker in daemon.recall("ann", marker)
        bad_requests: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "ann/recall", {"json": {"keywords": [marker] * 65}}),
            ("POST", "ann/recall", {"json": {"keywords": [marker * 30]}}),
            ("POST", "ann/recall", {"json": {marker: 1}}),
            ("POST", "ann/recall", {"json": {"depth": marker}}),
            ("POST", "ann/recall", {"json": {"relations": [marker], "keywords": marker}}),
            ("POST", "ann/recall", {"content": f'{{"{marker}'}),
            ("POST", "ann/recall", {"content": marker, "headers": {"Content-Type": marker}}),
            ("POST", "ann/recall", {"json": {}, "headers": {"Host": f"{marker}.example"}}),
            ("POST", "ann/recall", {"json": {}, "headers": {"Origin": f"http://{marker}.example"}}),
            ("POST", "ann/remember", {"json": {"messages": [{"role": marker, "content": said}]}}),
            ("POST", "ann/remember", {"json": {"messages": [message], "idempotency_key": marker}}),
            ("POST", f"ann/{marker}", {"json": {}}),
            ("GET", f"ann/nodes/{marker}", {}),
            ("GET", f"ann/batches/{marker}", {}),
            ("GET", f"ann/nodes?page_token={marker}", {}),
            ("GET", f"ann/nodes?{marker}={marker}", {}),
            ("GET", f"ann/batches?state={marker}", {}),
            ("PATCH", "ann", {"json": {"locale": marker}}),
            ("PUT", "ann", {"json": {marker: marker}}),
            ("GET", f"{marker}%0A", {}),
            ("POST", f"{marker}%2F%0A{quote(forged)}/recall", {"json": {}}),
        ]
        for method, path, options in bad_requests:
            options["headers"] = {"Content-Type": "application/json", **options.get("headers", {})}
            assert client.request(method, f"/v1/agents/{path}", **options).is_client_error, (method, path)
        client.post(
            f"/v1/agents/ann%20{quote(forged)}/remember", json={"messages": [message]}
        ).raise_for_status()
        for name in ("X-Request-Id", "User-Agent", "Accept", "Idempotency-Key", "X-Forwarded-For", "Referer"):
            client.get("/v1/agents/ann", headers={name: f"{marker} {forged}"})
        host = daemon.url.removeprefix("http://")
        for raw in (
            f"{marker}\r\n\r\n",
            f"GET /{marker} HTTP/9.9\r\n\r\n",
            f"GET / HTTP/1.1\r\n{marker}\r\n\r\n",
        ):
            connection = http.client.HTTPConnection(host, timeout=5)
            connection.connect()
            connection.sock.sendall(raw.encode())
            connection.sock.recv(1000)
            connection.close()
        daemon.post("ann/compress", {"passes": 30})
        daemon.flush("ann")
        daemon.client.delete("/v1/agents/ann")
        assert daemon.stop() == 0
        log = daemon.log
    assert marker not in log
    lines = [line for line in log.splitlines() if "request" in line]
    assert len(lines) > len(bad_requests)
    assert not any(line.startswith('{"event": "forged"') for line in log.splitlines())
    if form == "json":
        for line in log.splitlines():
            if line.startswith("{"):
                event = json.loads(line)
                assert event["event"] != "forged"
                assert event["level"] in ("debug", "info", "warning")
    assert "Traceback" not in log
    assert " level='error'" not in log


def test_settings_start_and_stop_are_logged(tmp_path: Path) -> None:
    """The log contains the settings of a daemon, its addresses and its normal stop, and once that there is no view."""
    is_built = view_files.is_built(view_files.FILES)
    with running_daemon(tmp_path / "data") as daemon:
        assert daemon.stop() == 0
        events = [json.loads(line) for line in daemon.log.splitlines() if line.startswith("{")]
        assert [event["event"] for event in events] == [
            "settings in force",
            *(() if is_built else ("no web view in this installation",)),
            "listening",
            "stopping",
            "stopped",
        ]
        assert events[0]["store"]["data_dir"] == str(tmp_path / "data")
        assert events[-3]["url"] == daemon.url


def test_background_work_is_not_logged_under_a_request(tmp_path: Path) -> None:
    """A log line has the id of its request; digests and slices have none."""
    with running_daemon(tmp_path / "data", {"LOG__LEVEL": "debug"}) as daemon:
        body = {"messages": [{"role": "user", "content": "The kettle is blue."}]}
        daemon.post("ann/remember", body, headers={"X-Request-Id": "first-1"})
        daemon.flush("ann")
        daemon.post("ann/remember", body, headers={"X-Request-Id": "second-2"})
        daemon.flush("ann")
        assert daemon.stop() == 0
        events = [json.loads(line) for line in daemon.log.splitlines() if line.startswith("{")]
        digested = [event for event in events if event["event"] == "batch digested"]
        assert [event["batch_id"] for event in digested] == ["b1", "b2"]
        assert digested[1].get("request_id") != "first-1"
