"""The command line with a real daemon, and with its data directory after a stop."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.files.messages import read_message
from tests.support.forks import PATIENCE_S, run_command
from tests.support.process import Daemon

Done = subprocess.CompletedProcess[str]


def run(
    *arguments: str, url: str = "", text: str = "", timeout_s: float = PATIENCE_S, **settings: str
) -> Done:
    """Run one command in a process of its own, with only these variables of Ebbtide."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EBBTIDE_")} | settings
    if url:
        environment["EBBTIDE_URL"] = url
    return run_command(*arguments, env=environment, text=text, timeout_s=timeout_s)


def answer(done: Done) -> Any:
    """Return the JSON that a command printed, without any other output."""
    assert done.returncode == ExitCode.OK, done.stderr
    return json.loads(done.stdout)


def test_remembered_text_is_recalled(daemon: Daemon) -> None:
    """A transcript on standard input is remembered and recalled, as text and as JSON."""
    told = run("remember", "-", "--wait", "--json", url=daemon.url, text="Ann: I moved to Lisbon in May.\n")
    assert [batch["batch_id"] for batch in answer(told)["batches"]] == ["b1"]
    assert answer(told)["flushed"]["digested"]
    done = run("recall", "lisbon", url=daemon.url)
    assert (done.returncode, done.stdout) == (0, "[Memory] Ann: I moved to Lisbon in May.\n")
    assert answer(run("recall", "lisbon", "--json", url=daemon.url))["pending_batches"] == 0
    nothing = run("recall", "Porto", url=daemon.url)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr.startswith('No memory matches "Porto".')


def test_counts_with_and_without_noise(daemon: Daemon) -> None:
    """`stats` prints exact counts; with --epsilon, counts without links, and what is left to spend."""
    run("remember", "-", "--wait", url=daemon.url, text="Ann: I moved to Lisbon in May.\n")
    exact = run("stats", "default", url=daemon.url).stdout.split()
    assert exact[::2] == ["messages", "memories", "pinned", "entities", "links"]
    assert exact[1:6:2] == ["1", "1", "0"]
    noisy = run("stats", "default", "--epsilon", "0.5", url=daemon.url)
    assert noisy.stdout.split()[::2] == ["messages", "memories", "pinned", "entities"]
    assert "0.5 of the privacy budget of 10 is spent." in noisy.stderr
    assert answer(run("stats", "default", "--json", url=daemon.url))["privacy_spent"] == 0.5
    refused = run("stats", "default", "--epsilon", "50", url=daemon.url)
    assert refused.returncode == ExitCode.REFUSED and "PRIVACY_BUDGET_SPENT" in refused.stderr


def test_a_forecast_names_what_will_be_forgotten(daemon: Daemon) -> None:
    """`forecast` lists memories with their future, the first to be forgotten first; --json is the response."""
    # Soon forgotten, so that a busy machine computes it in time.
    assert daemon.client.put("/v1/agents/default", json={"decay_rate": 0.5}).is_success
    for said in ("I moved to Lisbon in May.", "我养了一只猫，叫旺财。"):
        run("remember", "-", "--wait", url=daemon.url, text=f"Ann: {said}\n")
    response = answer(run("forecast", "default", "--passes", "400", "--json", url=daemon.url))
    ends = dict(zip(*response["forgotten"].values(), strict=True))
    shown = run("forecast", "default", "--passes", "400", url=daemon.url)
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [f"n{number}" for number in ends]
    assert all(f"forgotten after {after} " in line for line, after in zip(lines, ends.values(), strict=True))
    assert "I moved to Lisbon in May." in shown.stdout and "叫旺财" in shown.stdout
    assert "2 shortened, 2 forgotten." in shown.stderr
    assert run("forecast", "nobody", url=daemon.url).returncode == ExitCode.NOT_FOUND


def test_clear_asks_and_removes_everything(daemon: Daemon) -> None:
    """Without a terminal `clear` needs --yes; with it the agent is empty, and its parameters stay."""
    run("remember", "-", "--wait", url=daemon.url, text="Ann: I moved to Lisbon in May.\n")
    refused = run("clear", "default", url=daemon.url)
    assert refused.returncode == ExitCode.USAGE and "pass --yes" in refused.stderr
    done = run("clear", "default", "--yes", url=daemon.url)
    assert (done.returncode, done.stderr) == (0, "Cleared default: 1 memory and 1 message removed.\n")
    assert run("stats", "default", url=daemon.url).stdout.split()[1:4:2] == ["0", "0"]
    assert run("clear", "nobody", "--yes", url=daemon.url).returncode == ExitCode.NOT_FOUND


def test_listings_by_metadata(daemon: Daemon) -> None:
    """`messages` and `nodes` list what has the given metadata, as text and as JSON; a name needs a value."""
    lines = [
        json.dumps({"role": "user", "content": "Bruno paints boats.", "metadata": {"floor": 1}}),
        json.dumps({"role": "user", "content": "Clara plays the cello.", "metadata": {"topic": "music"}}),
    ]
    run("remember", "-", "--wait", url=daemon.url, text="\n".join(lines))
    for command in ("messages", "nodes"):
        assert len(run(command, "default", url=daemon.url).stdout.splitlines()) == 2
        for option, word in (("floor=1", "Bruno"), ("topic=music", "Clara")):
            (line,) = run(command, "default", "--metadata", option, url=daemon.url).stdout.splitlines()
            assert word in line
        found = run(command, "default", "--metadata", "floor=2", "--json", url=daemon.url)
        assert json.loads(found.stdout) == {command: []}
        assert run(command, "default", "--metadata", "floor", url=daemon.url).returncode == ExitCode.USAGE


def test_a_memory_is_created_from_a_text(daemon: Daemon) -> None:
    """`create` prints the memory; links and metadata are options, and a link needs a name."""
    run("create", "default", "Bruno paints boats.", "--speaker", "Ann", url=daemon.url)
    options = ("--keyword", "regatta", "--link", "n1=told by:0.5", "--metadata", "floor=1", "--json")
    made = json.loads(run("create", "default", "It starts at noon.", *options, url=daemon.url).stdout)
    assert (made["keywords"], made["sources"][0]["metadata"]) == (["regatta"], {"floor": 1})
    assert ("n1", "told by", 0.5) in {
        (one["target"], one["relation"], one["strength"]) for one in made["links_out"]
    }
    listed = run("nodes", "default", url=daemon.url).stdout.splitlines()
    assert listed[0] == "n1     Ann: Bruno paints boats."
    run("create", "default", "Boil the pasta.", "--kind", "recipe", url=daemon.url)
    (recipe,) = run("nodes", "default", "--kind", "recipe", url=daemon.url).stdout.splitlines()
    assert recipe.endswith("Boil the pasta.")
    names = run("nodes", "default", "--kind", "entity", url=daemon.url).stdout
    assert "regatta" in names and "Boil the pasta." not in names
    assert run("create", "default", "x", "--link", "n1", url=daemon.url).returncode == ExitCode.USAGE
    refused = run("create", "default", "x", "--link", "n99=about", url=daemon.url)
    assert refused.returncode == ExitCode.NOT_FOUND and "NODE_NOT_FOUND" in refused.stderr


def test_why_a_statement_is_true(daemon: Daemon) -> None:
    """`why` prints each path, with the strength of its links, and says so if there is none."""
    for topic, value in (("broke", "my wrist"), ("gave up", "climbing")):
        run("statements", "add", "I", topic, value, url=daemon.url)
    wrist, climbing = (one["id"] for one in answer(run("statements", "list", "--json", url=daemon.url)))
    assert "No cause is known." in run("why", climbing, url=daemon.url).stderr
    run("statements", "link", wrist, climbing, "causes", "--strength", "0.8", url=daemon.url)
    lines = run("why", climbing, url=daemon.url).stdout.splitlines()
    assert lines == [
        f"{climbing:<6} [0.80] user gave up climbing",
        f"  {wrist:<6} [causes 0.80] user broke my wrist",
    ]
    assert (
        answer(run("why", climbing, "--depth", "1", "--json", url=daemon.url))["paths"][0]["strength"] == 0.8
    )


def test_a_statement_with_links_and_metadata(daemon: Daemon) -> None:
    """`statements add` stores links and fields, and `statements list` finds the statement by them."""
    wrist = answer(run("statements", "add", "I", "broke", "my wrist", "--json", url=daemon.url))["id"]
    options = ("--link", f"{wrist}=caused_by:0.5", "--metadata", "form=intake", "--json")
    added = answer(run("statements", "add", "I", "gave up", "climbing", *options, url=daemon.url))["id"]
    (line,) = run("statements", "list", "--metadata", "form=intake", url=daemon.url).stdout.splitlines()
    assert line.startswith(added) and "climbing" in line
    assert run("statements", "list", "--metadata", "form=other", url=daemon.url).stdout == ""
    assert f"{wrist:<6} [caused_by 0.50]" in run("why", added, url=daemon.url).stdout


def test_records_are_put_listed_and_deleted(daemon: Daemon) -> None:
    """`records` stores exact values, refuses another version, and names what does not exist."""
    run("records", "put", "users/ann", "theme", '{"dark": true}', url=daemon.url)
    run("records", "put", "users/ann", "size", '{"n": 2}', "--ttl-minutes", "5", url=daemon.url)
    assert answer(run("records", "get", "users/ann", "theme", url=daemon.url)) == {"dark": True}
    lines = run("records", "list", "users", "--filter", '{"dark": true}', url=daemon.url).stdout.splitlines()
    assert lines == ['users/ann  theme  {"dark": true}']
    assert run("records", "namespaces", url=daemon.url).stdout == "users/ann\n"
    put = ("records", "put", "users/ann", "theme", "{}")
    assert "VERSION_DIFFERS" in run(*put, "--if-version", "0", url=daemon.url).stderr
    assert run("records", "put", "users/ann", "theme", "[]", url=daemon.url).returncode == ExitCode.USAGE
    assert run("records", "delete", "users", url=daemon.url).returncode == ExitCode.USAGE
    assert answer(run("records", "delete", "users", "--all", "--json", url=daemon.url)) == {"deleted": 2}
    missing = run("records", "get", "users/ann", "theme", url=daemon.url)
    assert missing.returncode == ExitCode.NOT_FOUND


def test_an_attachment_goes_in_and_comes_out(daemon: Daemon, tmp_path: Path) -> None:
    """A conversation in JSON may have attachments; `messages` lists them, `attachment` writes one."""
    content = bytes(range(256)) * 4
    attached = {"mime": "image/png", "bytes": base64.b64encode(content).decode(), "caption": "A lighthouse."}
    line = json.dumps({"role": "user", "content": "Look!", "attachments": [attached]})
    run("remember", "-", "--wait", url=daemon.url, text=line + "\n")
    listed = run("messages", "default", url=daemon.url).stdout.splitlines()
    assert listed[1:] == ["A lighthouse.", "       attachment 0: image/png, 1,024 bytes"]
    out = tmp_path / "one.png"
    done = run("attachment", "default", "m1", "--out", str(out), url=daemon.url)
    assert (done.returncode, done.stdout, out.read_bytes()) == (0, "", content)
    missing = run("attachment", "default", "m1", "1", url=daemon.url)
    assert missing.returncode == ExitCode.NOT_FOUND and "ATTACHMENT_NOT_FOUND" in missing.stderr
    unwritable = run("attachment", "default", "m1", "-o", str(tmp_path / "no" / "one"), url=daemon.url)
    assert unwritable.returncode == ExitCode.REFUSED and "cannot be written" in unwritable.stderr


def test_pins_and_focus_by_hand(daemon: Daemon) -> None:
    """Pin, unpin, focus, unfocus and entities change and print what the daemon has, as text and as JSON."""
    run("remember", "-", "--wait", url=daemon.url, text="Ann: I moved to Lisbon in May.\n")
    found = {
        one["name"]: one for one in answer(run("entities", "default", "--json", url=daemon.url))["entities"]
    }
    lisbon = found["Lisbon"]["id"]
    assert "Lisbon" in run("entities", "default", url=daemon.url).stdout
    pinned = run("pin", "default", "n1", url=daemon.url)
    assert pinned.stdout == "n1     pinned by hand: Ann: I moved to Lisbon in May.\n"
    [node] = answer(run("unpin", "default", "n1", "--json", url=daemon.url))["nodes"]
    assert node["pinned"] == "none"
    left = answer(run("unfocus", "default", lisbon, "n1", "--json", url=daemon.url))
    assert left["nodes"] == [] and lisbon not in [one["id"] for one in left["entities"]]
    assert f"{lisbon:<6} Lisbon (1 memory)" in run("focus", "default", lisbon, url=daemon.url).stdout
    assert answer(run("focus", "default", "--json", url=daemon.url))["entities"][0]["id"] == lisbon
    assert f"  {lisbon:<6} Lisbon (1 memory)" in run("inspect", "default", url=daemon.url).stdout
    refused = run("pin", "default", "n1", "n99", url=daemon.url)
    assert (refused.returncode, "[NODE_NOT_FOUND]" in refused.stderr) == (ExitCode.NOT_FOUND, True)
    assert refused.stdout == pinned.stdout, "what was changed before the error is shown"


def test_filtered_text_is_reported(daemon: Daemon) -> None:
    """`remember` reports redacted data and skipped messages, as text and as JSON."""
    settings = {"pii": "redact", "collapse_repeats": True}
    assert httpx.put(f"{daemon.url}/v1/agents/default", json=settings, timeout=30).status_code == 201
    said = "Ann: Write to ann@example.com, please.\nAnn: Write to ann@example.com, please.\n"
    told = run("remember", "-", url=daemon.url, text=said)
    assert "Personal data: 2 email." in told.stdout
    assert "1 message skipped as repeated." in told.stdout
    [batch] = answer(run("remember", "-", "--json", url=daemon.url, text=said))["batches"]
    assert (batch["pii"], batch["collapsed"], batch["dropped_recalled"]) == ({"email": 2}, 1, 0)
    assert run("recall", "write", url=daemon.url).stdout.startswith(
        "[Memory] Ann: Write to [email], please.\n"
    )


HEARD = """\
{"role": "user", "speaker": "Ann", "content": "The tram goes to Lisbon.", "timestamp": "2023-05-08T10:00:00Z"}
{"role": "user", "speaker": "Bob", "content": "The tram is late again.", "timestamp": "2023-05-09T10:00:00Z"}
"""


def without(*signals: str) -> tuple[str, ...]:
    """Return the options that switch off signals."""
    return tuple(word for signal in signals for word in ("--without", signal))


def test_a_question_is_narrowed_by_options(daemon: Daemon) -> None:
    """Each option sets its field of the request: filters apply, and a day is included completely."""
    for name, message in zip(("s1", "s2"), HEARD.splitlines(), strict=True):
        batch = {"messages": [read_message(json.loads(message))], "conversation_id": name}
        assert daemon.post("default/remember", batch).status_code == 202
    daemon.flush("default", vectors=True)
    ann = "[Memory] [2023-05-08] Ann: The tram goes to Lisbon.\n"
    bob = "[Memory] [2023-05-09] Bob: The tram is late again.\n"
    for expected, options in (
        (ann, ("--speaker", "Ann")),
        (bob, ("--source", "s2")),
        (ann, ("--until", "2023-05-08")),
        (ann, ("--until", "2023-05-09T10:00")),
        (bob, ("--since", "2023-05-09")),
        (ann, ("--since", "2023-05-08T12:00+02:00", "--until", "2023-05-08T12:00:01+02:00")),
        (ann.replace("[2023-05-08] ", ""), ("--speaker", "Ann", "--no-dates")),
        (ann, ("--token-budget", "10", "--tokenizer", "words", "--speaker", "Ann", "--kind", "episode")),
        ("", without("words", "neighbours", "semantic", "window")),
    ):
        done = run("recall", "-q", "Where is the tram?", *options, url=daemon.url)
        assert (done.returncode, done.stdout) == (0, expected), (options, done.stderr)
    both = ("--mode", "hybrid", "--start-node", "n1", "--archive", "never", "--max-results", "1", "--json")
    assert answer(run("recall", "-q", "tram", *both, url=daemon.url))["text"].count("[Memory]") == 1
    narrowed = run("recall", "-q", "tram", "--speaker", "Nobody", url=daemon.url)
    assert narrowed.stderr.startswith("default has no answer within these limits.")
    for unknown in (("recall",), ("recall", "-q", "tram"), ("search", "tram")):
        done = run(*unknown, "--agent", "nobody", url=daemon.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "There is no agent nobody.\n"), unknown
    assert run("recall", "-q", "tram", "--mode", "luck", url=daemon.url).returncode == ExitCode.REFUSED
    typed = run("recall", "-q", "tram", "--since", "May", url=daemon.url)
    assert typed.returncode == ExitCode.USAGE
    assert "neither a day" in typed.stderr


def test_refusals_are_sentences(daemon: Daemon) -> None:
    """A refusal names the field, a missing agent or memory is NOT_FOUND, and there is never a traceback."""
    daemon.remember("default", "The tram stopped.")
    refused = run("recall", "--depth", "9", url=daemon.url)
    assert refused.returncode == ExitCode.REFUSED
    assert refused.stderr == "error: --depth: 9 is not allowed; allowed: 0-8. [INVALID_DEPTH]\n"
    assert run("inspect", "nobody", url=daemon.url).returncode == ExitCode.NOT_FOUND
    assert run("inspect", "default", "n99", url=daemon.url).returncode == ExitCode.NOT_FOUND


def test_bad_files_are_not_sent(daemon: Daemon) -> None:
    """An error anywhere in a file prevents sending any of it."""
    lines = '{"role": "user", "content": "one"}\n{"role": "user"}\n'
    done = run("remember", "-", "--batch-size", "1", url=daemon.url, text=lines)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "line 2: content: required" in done.stderr
    assert answer(run("agents", "--json", url=daemon.url)) == {"agents": []}


def test_a_held_directory_names_its_holder(daemon: Daemon) -> None:
    """Offline commands and a second daemon report the process that has locked the directory."""
    for command in ("agents", "check", "serve"):
        done = run(
            command, "--data-dir", str(daemon.data_dir), *(["--rest-port", "0"] if command == "serve" else [])
        )
        assert done.returncode == ExitCode.LOCKED, command
        assert f"locked by process {daemon.process.pid}" in done.stderr
        assert "Traceback" not in done.stderr


def test_offline_output_equals_online_output(daemon: Daemon) -> None:
    """Agents, memories and entities are the same from the directory as from the daemon; reading writes nothing."""
    daemon.remember("ann", "I moved to Lisbon in May.", "The flat is small.")
    daemon.flush("ann", vectors=True)
    node = answer(run("inspect", "ann", "n1", "--json", url=daemon.url))
    agent = answer(run("inspect", "ann", "--json", url=daemon.url))
    entities = run("entities", "ann", url=daemon.url).stdout
    shown = run("inspect", "ann", url=daemon.url).stdout
    assert "Lisbon" in entities
    assert daemon.stop() == 0
    where = ["--data-dir", str(daemon.data_dir)]
    same = {"EBBTIDE_EMBEDDING__MODEL": "builtin"}
    before = (daemon.data_dir / "agents" / "ann" / "data.mdb").read_bytes()
    assert answer(run("inspect", "ann", "n1", "--json", *where)) == node
    assert answer(run("inspect", "ann", "--json", *where, **same)) == agent
    assert run("entities", "ann", *where).stdout == entities
    assert run("inspect", "ann", *where, **same).stdout == shown
    anew = run("inspect", "ann", "--json", *where, EBBTIDE_EMBEDDING__MODEL="ollama")
    assert answer(anew)["unembedded_messages"] == 2, "another model has embedded nothing yet"
    without_any = run("inspect", "ann", "--json", *where, EBBTIDE_EMBEDDING__MODEL="off")
    assert answer(without_any)["unembedded_messages"] == 0
    listed = answer(run("agents", "--json", *where))["agents"]
    assert [(a["agent_id"], a["open"], a["counts"]["nodes"]) for a in listed] == [("ann", False, 2)]
    assert (daemon.data_dir / "agents" / "ann" / "data.mdb").read_bytes() == before
    assert run("check", *where).returncode == ExitCode.OK


def test_damage_is_a_finding(daemon: Daemon, tmp_path: Path) -> None:
    """A store that cannot be read is one finding, exit code DAMAGED, and does not hide the other agents."""
    daemon.remember("ann", "I moved to Lisbon in May.")
    daemon.flush("ann")
    assert daemon.stop() == 0
    agents = daemon.data_dir / "agents"
    (agents / "ann").rename(tmp_path / "aside")
    broken = agents / "bob"
    broken.mkdir()
    (broken / "meta.json").write_text("{")
    (tmp_path / "aside").rename(agents / "ann")
    done = run("check", "--json", "--data-dir", str(daemon.data_dir))
    assert done.returncode == ExitCode.DAMAGED
    report = json.loads(done.stdout)
    assert report["checked"] == ["ann", "bob"]
    assert [finding["agent_id"] for finding in report["findings"]] == ["bob"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_daemon_cleanly(daemon: Daemon, number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C end `serve` with 0."""
    daemon.process.send_signal(number)
    assert daemon.process.wait(20) == 0


def test_a_port_in_use_has_its_own_exit_code(daemon: Daemon, tmp_path: Path) -> None:
    """A second daemon on the same port reports it, with the remedy."""
    port = daemon.url.rpartition(":")[2]
    done = run("serve", "--data-dir", str(tmp_path / "other"), "--rest-port", port)
    assert done.returncode == ExitCode.PORT_TAKEN
    assert f"Port {port} on 127.0.0.1 is in use" in done.stderr


def test_memories_are_searched_and_deleted(daemon: Daemon) -> None:
    """A search prints its results. A deletion asks for confirmation, deletes, and names ids that it did not find."""
    said = json.dumps([{"role": "user", "speaker": "Ann", "content": "I moved to Lisbon in May."}])
    run("remember", "-", "--agent", "ann", "--wait", url=daemon.url, text=said)
    found = run("search", "Where", "is", "Lisbon?", "--agent", "ann", url=daemon.url)
    assert found.returncode == 0 and "n1" in found.stdout and "I moved to Lisbon" in found.stdout
    unasked = run("delete", "ann", "n1", url=daemon.url)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (ExitCode.USAGE, True)
    told = answer(run("search", "Lisbon", "--agent", "ann", "--json", url=daemon.url))
    assert [memory["id"] for memory in told["memories"]] == ["n1"]
    done = run("delete", "ann", "n1", "--yes", url=daemon.url)
    assert done.returncode == 0 and "Deleted 1 memory" in done.stderr
    for name in ("n1", "m1"):
        again = run("delete", "ann", name, "--yes", url=daemon.url)
        assert again.returncode == ExitCode.NOT_FOUND and name in again.stderr
    assert answer(run("search", "Lisbon", "--agent", "ann", "--json", url=daemon.url))["memories"] == []


def test_forgetting_for_good_is_proved(daemon: Daemon, tmp_path: Path) -> None:
    """`forget` asks for confirmation and reports what remains. The log is verified online and offline."""
    said = "Clara keeps the blue key under the third flowerpot."
    daemon.remember("ann", said, "The harbour smells of tar.")
    daemon.remember("ann", said)
    daemon.flush("ann")
    nobody = run("forget", "ann", "--topic", "Clara", url=daemon.url)
    assert nobody.returncode == ExitCode.USAGE and "--yes" in nobody.stderr
    dry = answer(run("forget", "ann", "m1", "--dry-run", "--json", url=daemon.url))
    assert dry["counts"]["messages"] == 1 and "m3" in dry["also_found_in"]
    done = run("forget", "ann", "m1", "--yes", url=daemon.url)
    assert done.returncode == 0 and "Deleted:" in done.stderr and "m3" in done.stderr
    assert answer(run("forget", "ann", "--topic", "clara", "--yes", "--json", url=daemon.url))["compacted"]
    held, other = tmp_path / "held.txt", tmp_path / "other.txt"
    held.write_text(said + "\n", encoding="utf-8")
    other.write_text("Never said.", encoding="utf-8")
    data = ("--data-dir", str(daemon.data_dir))
    assert run("audit", "verify", "ann", "--text", str(held), url=daemon.url).returncode == 0
    assert (
        run("audit", "verify", "ann", "--text", str(other), url=daemon.url).returncode == ExitCode.NOT_FOUND
    )
    shown = answer(run("audit", "show", "ann", "--json", url=daemon.url))["records"]
    assert [one["action"] for one in shown] == ["created", "forgotten", "forgotten"]
    assert run("audit", "show", url=daemon.url).stdout == ""
    daemon.remember("bob", "Bob likes tea.")
    assert daemon.client.delete("/v1/agents/bob").status_code == 200
    tea = tmp_path / "tea.txt"
    tea.write_text("Bob likes tea.", encoding="utf-8")
    alive = run("audit", "verify", "--text", str(tea), "--json", url=daemon.url)
    told = answer(alive)
    assert told["erased_agents"]["texts"] == [{"erased": True, "record": 1}]
    assert not told["logs"]["ann"]["texts"][0]["erased"]
    erased = answer(run("audit", "show", "--json", url=daemon.url))["records"]
    assert "bob" in run("audit", "show", url=daemon.url).stdout
    assert run("audit", "verify", *data).returncode == ExitCode.LOCKED
    daemon.stop()
    assert answer(run("audit", "show", "ann", "--json", *data))["records"] == shown
    [bob] = answer(run("audit", "show", "--json", *data))["records"]
    assert erased == [bob] and bob["agent_id"] == "bob"
    assert (bob["action"], json.loads(bob["line"])["agent_id"]) == ("agent_erased", "bob")
    assert run("audit", "verify", *data, "--text", str(held)).returncode == 0
    files = [one for one in daemon.data_dir.rglob("*") if one.is_file()]
    assert not any(b"flowerpot" in one.read_bytes() for one in files)
    log = daemon.data_dir / "audit" / "erased.jsonl"
    log.write_bytes(log.read_bytes().replace(b"bob", b"eve"))
    broken = run("audit", "verify", *data)
    assert broken.returncode == ExitCode.DAMAGED and "record 1" in broken.stderr


def test_events_are_printed_one_per_line(daemon: Daemon) -> None:
    """`events` prints events as text and as JSON lines, from a number on, and reports an unknown agent."""
    daemon.remember("ann", "I moved to Lisbon in May.")
    daemon.post("ann/flush", {"passes": True})
    told = run("events", "ann", url=daemon.url)
    assert told.returncode == 0
    assert "NodeCreated" in told.stdout and "n1 b1 25 characters" in told.stdout
    lines = run("events", "ann", "--json", "--after", "1", url=daemon.url).stdout.splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == list(range(2, len(lines) + 2))
    assert run("events", "nobody", url=daemon.url).returncode == ExitCode.NOT_FOUND
    gone = run("events", "ann", "--after", "99", url=daemon.url)
    assert gone.returncode == ExitCode.NOT_FOUND and "EVENTS_GONE" in gone.stderr
