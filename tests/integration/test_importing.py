"""`ebbtide import` of exports of other products, with a real daemon: repeated, grown, interrupted, forgotten."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.cli.exit_codes import ExitCode
from tests.integration.test_cli import answer, run
from tests.support.forks import Forked
from tests.support.process import Daemon
from tests.support.waiting import wait_until

EXPORTS = Path(__file__).parents[1] / "golden" / "exports"


def imported(daemon: Daemon, *arguments: str) -> Any:
    """Import into `ann`, and return the report."""
    # On a busy machine, thousands of conversations take minutes.
    return answer(run("import", *arguments, "--agent", "ann", "--json", url=daemon.url, timeout_s=600))


def messages(daemon: Daemon) -> list[dict[str, Any]]:
    """Return the messages of `ann`."""
    export = [json.loads(line) for line in run("export", "ann", url=daemon.url).stdout.splitlines()]
    return [line for line in export if line["type"] == "message"]


def test_conversations_of_chatgpt_are_remembered(daemon: Daemon, tmp_path: Path) -> None:
    """An archive is imported once, oldest conversation first, is recalled, and is forgotten by conversation."""
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(EXPORTS / "chatgpt.json", "conversations.json")
    tried = run("import", str(archive), "--dry-run", url="http://127.0.0.1:9")
    assert tried.stdout.splitlines()[0] == "chatgpt: 5 messages of 2 conversations would be stored."
    assert "conversations[3]: not a conversation" in tried.stderr
    done = imported(daemon, str(archive))
    assert (done["conversations"], done["messages"], len(done["batch_ids"])) == (2, 5, 2)
    assert done["left_out"]["messages on branches that were edited away"] == 2
    said = messages(daemon)
    assert [one["conversation_id"] for one in said] == ["c-lisbon"] * 3 + ["c-qingdao"] * 2
    assert said[0]["timestamp"] == 1715000010000
    assert said[3]["metadata"] == {"imported_from": "chatgpt", "title": "青岛的夏天"}
    assert "Lisbon" in daemon.recall("ann", query="Where does the user move in May?")
    assert "青岛" in daemon.recall("ann", query="用户五月搬到了哪里？")
    again = imported(daemon, str(archive))
    assert (again["messages"], again["already_stored"], again["batch_ids"]) == (0, 5, [])
    gone = run("forget", "--agent", "ann", "--conversation", "c-qingdao", "--yes", url=daemon.url)
    assert gone.returncode == 0, gone.stderr
    assert imported(daemon, str(archive))["messages"] == 0
    assert {one.get("conversation_id") for one in messages(daemon)} == {"c-lisbon", None}, "None: erased"


def test_a_conversation_that_grew_is_continued(daemon: Daemon, tmp_path: Path) -> None:
    """A later export adds the new messages of a conversation, under the policy that redacts personal data too."""
    assert httpx.put(f"{daemon.url}/v1/agents/ann", json={"pii": "redact"}).status_code == 201
    path = tmp_path / "conversations.json"
    for count, fresh in ((30, 30), (50, 20), (50, 0)):
        path.write_text(json.dumps(chats(1, count)))
        assert imported(daemon, str(path))["messages"] == fresh
    assert [one["id"] for one in messages(daemon)] == [f"c0m{number}" for number in range(50)]


def test_messages_of_langchain_are_remembered(daemon: Daemon, tmp_path: Path) -> None:
    """A file of `messages_to_dict` is imported, and `remember` takes it too but for messages that are no such."""
    done = imported(daemon, str(EXPORTS / "langchain.json"))
    assert (done["format"], done["messages"], done["skipped_count"]) == ("langchain", 5, 1)
    said = messages(daemon)
    assert [one["role"] for one in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert said[2]["content"] == 'trains({"to": "Lisbon"})'
    assert "Miso" in daemon.recall("ann", query="What is the name of the cat?")
    path = tmp_path / "history.json"
    path.write_text(json.dumps(json.loads((EXPORTS / "langchain.json").read_text())[:-1]))
    told = answer(run("remember", str(path), "--agent", "ben", "--json", url=daemon.url))
    assert [one["messages"] for one in told["batches"]] == [5]


def test_claude_and_letta_are_remembered(daemon: Daemon) -> None:
    """Conversations of Claude and an agent of Letta are imported once and recalled, in English and Chinese."""
    for name, count, questions in (
        ("claude.json", 4, {"Which pet travels by train?": "Miso", "林月喜欢喝什么？": "乌龙茶"}),
        ("letta.af", 6, {"Which instrument does the user play?": "cello"}),
    ):
        done = imported(daemon, str(EXPORTS / name))
        assert (done["messages"], done["already_stored"]) == (count, 0)
        for question, word in questions.items():
            assert word in daemon.recall("ann", query=question)
        assert imported(daemon, str(EXPORTS / name))["already_stored"] == count


def chats(count: int, length: int) -> list[dict[str, Any]]:
    """Return an export of ChatGPT with so many conversations of so many messages."""
    found = []
    for number in range(count):
        begin_s = 1_700_000_000 + 1000 * number
        nodes = {
            f"c{number}m{index}": {
                "parent": f"c{number}m{index - 1}" if index else None,
                "message": {
                    "id": f"c{number}m{index}",
                    "author": {"role": "assistant" if index % 2 else "user"},
                    "create_time": begin_s + index,
                    "content": {"content_type": "text", "parts": [f"Note {index} of talk {number}."]},
                },
            }
            for index in range(length)
        }
        node = f"c{number}m{length - 1}"
        found.append({"conversation_id": f"c{number}", "current_node": node, "mapping": nodes})
    return found[::-1]


@pytest.mark.parametrize(
    ("count", "kills"),
    [(60, 2), pytest.param(5000, 4, marks=[pytest.mark.full, pytest.mark.timeout(1800)])],
)
def test_a_killed_import_is_continued(daemon: Daemon, tmp_path: Path, count: int, kills: int) -> None:
    """After kills in the middle, the same command stores what is missing: nothing twice, nothing lost, in order."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chats(count, 2)))
    arguments = ("import", str(path), "--agent", "ann", "--json")
    left = []
    for number in range(1, kills + 1):
        environment = {**os.environ, "EBBTIDE_URL": daemon.url}
        process = Forked("ebbtide", arguments, env=environment, stdout=tmp_path / "output")
        bound = count * 2 * number // (kills + 1)
        wait_until(lambda bound=bound: count_of(daemon) >= bound, 900)  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        left.append(count * 2 - count_of(daemon))
    assert left[0] > 0, "the import was killed before its end"
    done = imported(daemon, str(path))
    assert done["messages"] + done["already_stored"] >= count * 2
    said = messages(daemon)
    assert [one["id"] for one in said] == [
        f"c{number}m{index}" for number in range(count) for index in (0, 1)
    ]
    again = imported(daemon, str(path))
    assert (again["messages"], again["already_stored"]) == (0, count * 2)


def count_of(daemon: Daemon) -> int:
    """Return the number of messages that `ann` has, waiting ones included."""
    found = daemon.get("ann")
    if found.status_code == 404:
        return 0
    return int(found.json()["counts"]["messages"])


def test_selections_are_for_other_products_only(daemon: Daemon, tmp_path: Path) -> None:
    """Wrong combinations of options and files are refused with one sentence, and nothing is stored."""
    lines = '{"format": "ebbtide-export"}\n'
    (tmp_path / "own.jsonl").write_text(lines)
    refusals: dict[tuple[str, ...], ExitCode] = {
        ("own.jsonl", "--limit", "1"): ExitCode.USAGE,
        ("own.jsonl", "--dry-run"): ExitCode.USAGE,
        (str(EXPORTS / "chatgpt.json"), str(EXPORTS / "langchain.json")): ExitCode.BAD_INPUT,
        (str(EXPORTS / "chatgpt.json"), "--replace"): ExitCode.USAGE,
        (str(EXPORTS / "chatgpt.json"), "--data-dir", "d"): ExitCode.USAGE,
        (str(EXPORTS / "chatgpt.json"), "--format", "claud"): ExitCode.USAGE,
        (str(EXPORTS / "chatgpt.json"), "--limit", "0"): ExitCode.USAGE,
        (str(EXPORTS / "chatgpt.json"), "--since", "yesterday"): ExitCode.USAGE,
    }
    for arguments, code in refusals.items():
        given = [str(tmp_path / one) if one == "own.jsonl" else one for one in arguments]
        done: subprocess.CompletedProcess[str] = run("import", *given, "--agent", "ann", url=daemon.url)
        assert done.returncode == code, (arguments, done.stderr)
    assert answer(run("agents", "--json", url=daemon.url)) == {"agents": []}
