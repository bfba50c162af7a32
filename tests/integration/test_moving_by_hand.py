"""backup, restore, export and import on the command line: with a daemon, and on a data directory without one."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from ebbtide.cli.exit_codes import ExitCode
from tests.integration.test_cli import answer, run
from tests.support.process import Daemon, check_data_directory

CUES: tuple[dict[str, Any], ...] = (
    {"keywords": ["Lisbon"]},
    {"query": "谁住在青岛？"},
    {"query": "Where?"},
    {},
)

MEM0 = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Loves hiking in the Serra da Estrela",
            "hash": "d0fccc8fa47f7a149ee95750c37bb0ca",
            "metadata": {"category": "hobbies", "nested": {"a": [1]}},
            "created_at": "2024-07-26T10:29:36.630547-07:00",
            "updated_at": None,
            "user_id": "ann",
        },
        {"id": "2", "memory": "林月喜欢喝乌龙茶", "created_at": "2024-07-20T09:00:00Z", "user_id": "ann"},
        {"id": "3", "memory": "", "user_id": "ann"},
        "not a memory",
    ]
}
MCP = """\
{"type":"entity","name":"John_Smith","entityType":"person","observations":["Speaks fluent Spanish"]}
{"type":"entity","name":"林月","entityType":"人","observations":["五月搬到了青岛", 5]}
{"type":"relation","from":"John_Smith","to":"Anthropic","relationType":"works_at"}
{"type":"relation","from":"林月","to":"青岛","relationType":"住在"}
{"type":"song"}
not json
"""


def told(daemon: Daemon) -> None:
    """Create two agents with a few memories."""
    daemon.remember("ann", "I moved to Lisbon in May. My cat came along.", "林月住在青岛，喜欢海。")
    daemon.remember("林月", "我五月搬到了青岛。")
    for agent in ("ann", "林月"):
        daemon.flush(agent, vectors=True)


def recalls(daemon: Daemon, agent: str) -> list[bytes]:
    """Return the responses of an agent to the cues."""
    return [daemon.post(f"{agent}/recall", cue).content for cue in CUES]


def test_agents_are_backed_up_and_restored(daemon: Daemon, tmp_path: Path) -> None:
    """All agents of a busy daemon become files that tar reads; restored under another id they answer the same."""
    told(daemon)
    out = tmp_path / "backups"
    made = answer(run("backup", "--out", str(out), "--json", url=daemon.url))["backups"]
    assert {one["agent_id"] for one in made} == {"ann", "林月"}
    assert sorted(path.name for path in out.iterdir()) == sorted(Path(one["file"]).name for one in made)
    with tarfile.open(out / "ann.ebb") as tar:
        assert tar.getnames() == ["manifest.json", "data.mdb.zst", "SHA256SUMS"]
    refused = run("restore", str(out / "ann.ebb"), url=daemon.url)
    assert (refused.returncode, "[AGENT_EXISTS]" in refused.stderr) == (ExitCode.REFUSED, True)
    done = run("restore", str(out / "ann.ebb"), "--as", "bea", url=daemon.url)
    assert done.returncode == 0 and done.stdout.startswith("bea: "), done.stderr
    assert recalls(daemon, "bea") == recalls(daemon, "ann")
    daemon.remember("ann", "Something later.")
    assert run("restore", str(out / "ann.ebb"), "--replace", url=daemon.url).returncode == 0
    assert recalls(daemon, "ann") == recalls(daemon, "bea")
    assert run("backup", "nobody", "--out", str(out), url=daemon.url).returncode == ExitCode.NOT_FOUND
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_an_agent_moves_to_a_new_directory(daemon: Daemon, tmp_path: Path) -> None:
    """An agent is exported from a daemon and imported offline; backed up offline, and restored into the daemon."""
    told(daemon)
    before = recalls(daemon, "ann")
    lines = run("export", "ann", url=daemon.url)
    assert json.loads(lines.stdout.splitlines()[0])["agent_id"] == "ann"
    file, fresh = tmp_path / "ann.jsonl", tmp_path / "fresh"
    file.write_text(lines.stdout)
    done = run("import", str(file), "--data-dir", str(fresh), "--json")
    assert answer(done)["counts"]["messages"] == 2
    check_data_directory(fresh)
    again = run("export", "ann", "--data-dir", str(fresh))
    assert again.stdout.splitlines()[1:-1] == lines.stdout.splitlines()[1:-1]
    assert run("backup", "--data-dir", str(fresh), "--out", str(tmp_path)).returncode == 0
    assert run("restore", str(tmp_path / "ann.ebb"), "--as", "cid", url=daemon.url).returncode == 0
    assert recalls(daemon, "cid") == before
    held = run("backup", "--data-dir", str(daemon.data_dir), "--out", str(tmp_path))
    assert held.returncode == ExitCode.LOCKED
    assert run("import", str(tmp_path / "ann.ebb"), url=daemon.url).returncode == ExitCode.BAD_INPUT
    file.write_text(lines.stdout[:-30])
    broken = run("restore", str(file), "--replace", "--data-dir", str(fresh))
    assert (broken.returncode, "[" in broken.stderr) == (ExitCode.REFUSED, False)
    left = run("export", "ann", "--data-dir", str(fresh))
    assert left.stdout.splitlines()[1:-1] == again.stdout.splitlines()[1:-1]


def imported(daemon: Daemon, path: Path) -> Any:
    """Import a file twice: the second import changes nothing."""
    first = answer(run("import", str(path), "--agent", "ann", "--json", url=daemon.url))
    daemon.flush("ann")
    count = daemon.get("ann").json()["counts"]["messages"]
    second = answer(run("import", str(path), "--agent", "ann", "--json", url=daemon.url))
    assert (second["batch_ids"], second["already_stored"]) == ([], first["messages"])
    assert daemon.get("ann").json()["counts"]["messages"] == count == first["messages"]
    return first


def test_mem0_memories_are_remembered(daemon: Daemon, tmp_path: Path) -> None:
    """Memories are imported once, with time, id and metadata, oldest first. Invalid entries are listed."""
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(MEM0))
    done = imported(daemon, path)
    assert (done["format"], done["messages"]) == ("mem0", 2)
    assert [one["place"] for one in done["skipped"]] == ["memory 3", "memory 4"]
    export = [json.loads(line) for line in run("export", "ann", url=daemon.url).stdout.splitlines()]
    said = [line for line in export if line["type"] == "message"]
    assert [line["content"] for line in said] == ["林月喜欢喝乌龙茶", "Loves hiking in the Serra da Estrela"]
    assert said[1]["timestamp"] == 1722014976630
    assert said[1]["id"] == MEM0["results"][0]["id"]  # type: ignore[index]
    assert said[1]["metadata"]["category"] == "hobbies"
    assert said[1]["metadata"]["nested"] == '{"a": [1]}'
    assert said[1]["conversation_id"] == "ann"
    assert "乌龙茶" in daemon.recall("ann", query="林月喜欢喝什么？")


def test_a_memory_server_of_mcp_is_remembered(daemon: Daemon, tmp_path: Path) -> None:
    """Entities and relations, in English and Chinese, become sentences; invalid lines are listed by number."""
    path = tmp_path / "memory.jsonl"
    path.write_text(MCP)
    done = imported(daemon, path)
    assert (done["format"], len(done["batch_ids"]), done["messages"]) == ("mcp-memory", 2, 6)
    assert [one["place"] for one in done["skipped"]] == ["line 2, observation 2", "line 5", "line 6"]
    export = [json.loads(line) for line in run("export", "ann", url=daemon.url).stdout.splitlines()]
    assert [line["content"] for line in export if line["type"] == "message"] == [
        "John_Smith: person",
        "John_Smith: Speaks fluent Spanish",
        "John_Smith works at Anthropic",
        "林月：人",
        "林月：五月搬到了青岛",
        "林月住在青岛",
    ]
    assert "works at Anthropic" in daemon.recall("ann", "Anthropic")


def test_unreadable_files_are_not_sent(daemon: Daemon, tmp_path: Path) -> None:
    """An unknown format, invalid JSON in a line, and a missing agent are refused; nothing is stored."""
    path = tmp_path / "file"
    for content, options in (
        ("hello", ()),
        ('[{"memory": "a"},\n{', ("--format", "mem0")),
        ("", ()),
    ):
        path.write_text(content)
        done = run("import", str(path), "--agent", "ann", *options, url=daemon.url)
        assert done.returncode == ExitCode.BAD_INPUT, done.stderr
        assert "Traceback" not in done.stderr
    path.write_text(json.dumps(MEM0))
    assert run("import", str(path), url=daemon.url).returncode == ExitCode.USAGE
    assert answer(run("agents", "--json", url=daemon.url)) == {"agents": []}


def test_a_damaged_agent_does_not_stop_a_backup_of_all(daemon: Daemon, tmp_path: Path) -> None:
    """A backup of all agents saves the others, names the damaged one with the reason, and exits with an error."""
    daemon.remember("aaa", "I moved to Lisbon in May.")
    daemon.remember("bea", "I like the sea.")
    daemon.flush("aaa")
    assert daemon.stop() == 0
    damaged = daemon.data_dir / "agents" / "aaa" / "data.mdb"
    kept = damaged.read_bytes()
    damaged.write_bytes(b"\xa5" * len(kept))
    daemon.start()
    done = run("backup", "--out", str(tmp_path / "out"), "--json", url=daemon.url)
    assert done.returncode == ExitCode.DAMAGED
    told = json.loads(done.stdout)
    assert [one["agent_id"] for one in told["backups"]] == ["bea"]
    assert [(one["name"], one["reason"]) for one in told["failed"]] == [("aaa", "STORE_CORRUPTED")]
    assert "aaa: " in done.stderr and "[STORE_CORRUPTED]" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["bea.ebb"]
    daemon.stop()
    damaged.write_bytes(kept)
    daemon.start()
