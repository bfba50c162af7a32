"""Malicious files of other memory systems and of conversations are imported, or refused with one sentence."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.app import main
from ebbtide.cli.commands.remember import check
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import cut, read_conversation
from ebbtide.cli.files.foreign.chats import Notes
from ebbtide.cli.files.foreign.formats import EMPTY, READERS, detected, read_chats
from ebbtide.cli.files.foreign.plan import Plan, Selection, requests_of
from ebbtide.cli.files.foreign.sources import Source
from tests.support.tier import amount

pytestmark = pytest.mark.chaos

ROUNDS = amount("EBBTIDE_FILE_ROUNDS", 150, 500)
LONGEST_SENTENCE = 600

MEM0 = [
    {
        "id": "m1",
        "memory": "Ann moved to Lisbon in May.",
        "role": "user",
        "user_id": "ann",
        "created_at": "2024-05-01T10:00:00Z",
        "metadata": {"topic": "travel", "n": 1.5},
        "categories": ["home"],
    },
    {"id": "m2", "memory": "她的猫叫 Miso。", "user_id": "ann", "updated_at": "2024-05-02T10:00:00+02:00"},
]
MCP: list[dict[str, Any]] = [
    {
        "type": "entity",
        "name": "Ann",
        "entityType": "person",
        "observations": ["moved to Lisbon", "has a cat"],
    },
    {"type": "relation", "from": "Ann", "to": "Miso", "relationType": "owner_of"},
]
CHAT = {
    "messages": [
        {
            "role": "user",
            "content": "I moved to Lisbon.",
            "timestamp": 1_700_000_000_000,
            "id": "a",
            "name": "Ann",
        },
        {"role": "assistant", "content": [{"type": "text", "text": "By train?"}, {"type": "image"}]},
        {"role": "tool", "content": "no part of it", "tool_call_id": "x"},
    ],
    "conversation_id": "c1",
    "metadata": {"a": 1},
}
CHATGPT: list[Any] = [
    {
        "conversation_id": "c1",
        "title": "Lisbon",
        "create_time": 1_700_000_000.5,
        "current_node": "n2",
        "mapping": {
            "n0": {"id": "n0", "parent": None, "children": ["n1"], "message": None},
            "n1": {
                "id": "n1",
                "parent": "n0",
                "message": {
                    "id": "m1",
                    "author": {"role": "user"},
                    "create_time": 1_700_000_001,
                    "content": {"content_type": "text", "parts": ["I moved to Lisbon."]},
                    "recipient": "all",
                    "metadata": {},
                },
            },
            "n2": {
                "id": "n2",
                "parent": "n1",
                "message": {
                    "id": "m2",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "multimodal_text", "parts": [{}, "坐火车？"]},
                },
            },
        },
    }
]
CLAUDE: list[Any] = [
    {
        "uuid": "c1",
        "name": "Lisbon",
        "created_at": "2024-05-01T10:00:00Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "created_at": "2024-05-01T10:00:01.5Z",
                "text": "I moved to Lisbon.",
                "content": [{"type": "text", "text": "I moved to Lisbon."}],
                "attachments": [{"file_name": "a.txt"}],
            },
            {"uuid": "m2", "sender": "assistant", "text": "坐火车？", "content": [{"type": "thinking"}, {}]},
        ],
    }
]
LETTA: dict[str, Any] = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Ann",
            "block_ids": ["block-0"],
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "I moved."}],
                    "created_at": "2024-05-01T10:00:00Z",
                },
                {
                    "role": "assistant",
                    "content": "hm",
                    "tool_calls": [
                        {"function": {"name": "send_message", "arguments": '{"message": "坐火车？"}'}}
                    ],
                },
            ],
        }
    ],
    "blocks": [{"id": "block-0", "label": "human", "value": "Ann lives in Lisbon."}],
}
LANGCHAIN: list[Any] = [
    {"type": "human", "data": {"content": "I moved to Lisbon.", "type": "human", "id": "m1"}},
    {
        "type": "ai",
        "data": {
            "content": [{"type": "text", "text": "坐火车？"}],
            "tool_calls": [{"name": "trains", "args": {"to": "Lisbon"}, "id": "t1"}],
        },
    },
    {"type": "tool", "data": {"content": "at ten", "tool_call_id": "t1"}},
]
SOUND: dict[str, tuple[str, Any]] = {
    "mem0": ("a.json", MEM0),
    "mem0 with results": ("a.json", {"results": MEM0, "relations": []}),
    "MCP": ("a.json", {"entities": [MCP[0]], "relations": [MCP[1]]}),
    "chat": ("a.json", CHAT),
    "ChatGPT": ("a.json", CHATGPT),
    "LangChain": ("a.json", LANGCHAIN),
    "Claude": ("a.json", CLAUDE),
    "Letta": ("a.af", LETTA),
    "batches": ("a.json", {"batches": [CHAT["messages"], CHAT]}),
}


def deep(depth: int, kind: str = "[") -> str:
    """JSON within JSON."""
    return "[" * depth + "]" * depth if kind == "[" else '{"a":' * depth + "0" + "}" * depth


STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    10**400,
    -(10**30),
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\0",
    "\x1b[31mred\x07",
    "\u202e\u2028\ufeff",
    "\ud800",
    "x" * 5000,
    "1700000000000",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2024-13-45",
    "2024-W53-7",
    "T" * 3000,
    [],
    {},
    [[]],
    [None],
    {"a": {"b": [1]}},
    {"": ""},
    {"\ud800": "\udfff"},
    ["user"],
    {"role": "user"},
    json.loads(deep(200)),
]


def mutated(value: Any, dice: random.Random) -> Any:
    """Return a value with one to three of its parts changed, removed, duplicated, or moved."""
    value = copy.deepcopy(value)
    for _ in range(dice.randint(1, 3)):
        places = list(parts(value))
        if not places:
            return dice.choice(STRANGE)
        holder, key = dice.choice(places)
        act = dice.randrange(5)
        if act < 3:
            holder[key] = copy.deepcopy(dice.choice(STRANGE))
        elif act == 3:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[str(dice.choice(STRANGE))[:50]] = holder.pop(key)
    return value


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every position in a value: its container and its key."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else []
    for key in keys:
        yield value, key
        yield from parts(value[key])


def written(value: Any, dice: random.Random) -> bytes:
    """Return a value as a file: JSON, JSON lines, sometimes with changed bytes."""
    lines = value if isinstance(value, list) and dice.random() < 0.5 else None
    text = (
        "\n".join(map(json.dumps, lines))
        if lines is not None
        else json.dumps(value, indent=dice.choice([None, 1]))
    )
    content = bytearray(text.encode("utf-8", "surrogatepass"))
    if dice.random() < 0.4:
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(content) + 1)
            content[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(4))
    return bytes(content)


def taken(content: bytes, name: str, form: str) -> str:
    """Import a file. Return `taken`, or the sentence of the refusal."""
    try:
        return _taken(content, name, form)
    except Failure as raised:
        failure = raised
    assert failure.code == ExitCode.BAD_INPUT
    assert name in failure.message
    assert_is_sentence(failure.message)
    return failure.message


def _taken(content: bytes, name: str, form: str) -> str:
    if form == "conversation":
        check(cut(read_conversation(content, name).batches, 40, None), name)
        return "taken"
    source = Source(name, BytesIO(content))
    form = detected(source) if form == "auto" else form
    if form in ("ebbtide", EMPTY):
        return "an export" if form else "empty"
    with planned(source, form) as plan:
        for skipped in plan.notes.skipped:
            assert_is_sentence(f"{skipped.place}: {skipped.why}")
        for chat in plan.chats():
            requests = [request for request, _ in requests_of(chat, range(len(chat.messages)))]
            check(requests, name)
    return "taken"


@contextmanager
def planned(source: Source, form: str) -> Iterator[Plan]:
    """Read everything in a file."""
    with Plan(Selection(), Notes()) as plan:
        for chat in read_chats(source, form, plan.notes):
            plan.add(chat)
        plan.finish()
        yield plan


def assert_is_sentence(text: str) -> None:
    """Assert that a message is short and contains no control character of a terminal."""
    assert len(text) < LONGEST_SENTENCE, text[:200]
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in text), repr(text)
    text.encode()


@pytest.mark.parametrize("form", ["auto", *READERS, "conversation"])
def test_a_mutated_file_is_imported_or_refused_with_a_sentence(form: str) -> None:
    """Any mutation of a valid file is imported or refused, without a traceback, a long text or a control character."""
    dice = random.Random(f"files {form}")
    outcomes = set()
    for _ in range(ROUNDS):
        name, value = dice.choice([*SOUND.values(), ("a.jsonl", MCP)])
        content = written(mutated(value, dice), dice)
        outcomes.add(taken(content, name, form))
    assert "taken" in outcomes and len(outcomes) > 10


HOSTILE: dict[str, Callable[[], bytes]] = {
    "brackets": lambda: b"[" * 1_000_000,
    "nested as deep as a parser goes": lambda: (
        f'[{{"memory": "a", "metadata": {{"x": {deep(960)}}}}}]'.encode()
    ),
    "nested roles": lambda: f'[{{"memory": "a", "role": {deep(970)}, "user_id": {deep(970)}}}]'.encode(),
    "nested objects": lambda: f'{{"messages": [{{"role": "user", "content": {deep(950, "{")}}}]}}'.encode(),
    "deep metadata": lambda: (
        f'[{{"role": "user", "content": "a", "metadata": {{"x": {deep(955)}}}}}]'.encode()
    ),
    "deep metadata of a batch": lambda: (
        f'{{"messages": [{{"role": "user", "content": "a"}}], "metadata": {deep(955, "{")}}}'.encode()
    ),
    "a line of megabytes": lambda: b'{"type": "entity", "name": "' + b"x" * (8 << 20) + b'"}',
    "a field of megabytes": lambda: b'[{"role": "user", "content": "a", "' + b"y" * (8 << 20) + b'": 1}]',
    "a number of 100000 digits": lambda: b'[{"memory": "a", "created_at": ' + b"9" * 100_000 + b"}]",
    "nothing": lambda: b"",
    "white space": lambda: b" \n" * 1000,
    "NUL bytes": lambda: bytes(10_000),
    "UTF-16": lambda: json.dumps(MEM0).encode("utf-16"),
    "UTF-32": lambda: json.dumps(MEM0).encode("utf-32"),
    "a byte order mark and nothing": lambda: b"\xef\xbb\xbf",
    "two byte order marks": lambda: b"\xef\xbb\xbf\xef\xbb\xbf[]",
    "lone surrogates everywhere": lambda: b'[{"memory": "\\ud800", "user_id": "\\ud800", "id": "\\udfff"}]',
    "a surrogate as a conversation": lambda: b'[{"memory": "a", "user_id": "\\ud800"}]',
    "times of every kind": lambda: (
        b'[{"memory":"a","created_at":[1]},{"memory":"b","created_at":"2024-01-01"}]'
    ),
    "a circle of relations": lambda: b"\n".join(
        json.dumps(
            {"type": "relation", "from": f"e{n}", "to": f"e{(n + 1) % 500}", "relationType": "next"}
        ).encode()
        for n in range(500)
    ),
    "one id a thousand times": lambda: json.dumps([{"id": "1", "memory": "same"}] * 1000).encode(),
    "a role that is a list": lambda: b'{"messages": [{"role": ["user"], "content": "a"}]}',
    "a part of a type that is a list": lambda: b'[{"role": "user", "content": [{"type": ["text"]}]}]',
    "control characters": lambda: b'{"messages": [{"role": "user", "content": "a", "\\u001b[2J\\u0007": 1}]}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_cost_little(name: str) -> None:
    """Each hostile file in every form is imported or refused with one sentence, within a second or two of CPU time."""
    content = HOSTILE[name]()
    begin_s = time.process_time()
    for form in ("auto", *READERS, "conversation"):
        taken(content, "file.json", form)
        taken(content, "file", form)
    assert time.process_time() - begin_s < 10


@pytest.mark.parametrize(
    "line", ["more of the same", "Ann: hello", " " * 50, "a: b: c: d", ":" * 80, "x" * 80], ids=repr
)
def test_plain_text_of_any_length_is_read_in_time(line: str) -> None:
    """Parsing time grows linearly: a message of a hundred thousand lines is parsed in time."""
    content = b"Ann: hello\n" + f"{line}\n".encode() * 100_000
    begin_s = time.process_time()
    read_conversation(content, "notes.txt")
    assert time.process_time() - begin_s < 3


def places(folder: Path) -> dict[str, Path]:
    """Create the things that may be in the place of a file."""
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "to the pipe").symlink_to(folder / "pipe")
    long = folder / ("x" * 300)
    return {
        "a pipe": folder / "pipe",
        "a link to a pipe": folder / "to the pipe",
        "a device": Path("/dev/zero"),
        "a folder": folder,
        "a link to itself": folder / "loop",
        "nothing": folder / "none",
        "a name that is too long": long,
        "a file as a folder": Path(__file__) / "x",
    }


@pytest.mark.parametrize("command", ["import", "remember", "restore"])
def test_a_path_that_is_no_regular_file_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A pipe without a writer, an endless device, a folder and a link to itself give one sentence and code 10."""
    for name, place in places(tmp_path).items():
        with pytest.raises(SystemExit) as ended:
            main([command, str(place), "--url", "http://127.0.0.1:9"])
        told = capsys.readouterr().err
        assert ended.value.code == ExitCode.BAD_INPUT, (name, told)
        assert told.startswith("error: ") and told.count("\n") == 1 and str(place) in told, name


@pytest.mark.parametrize("command", ["import", "remember"])
def test_a_file_of_gigabytes_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """One line of two gigabytes is refused for its size, in little memory."""
    huge = tmp_path / "huge.json"
    huge.write_bytes(b'[{"memory": "a"}')
    os.truncate(huge, 2 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SystemExit) as ended:
        main([command, str(huge), "--agent", "ann", "--url", "http://127.0.0.1:9"])
    assert ended.value.code == ExitCode.BAD_INPUT and "128 MiB" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_million_entities_are_read_within_bounds() -> None:
    """A file with the maximum of entities is read in memory proportional to the file and bounded."""
    line = json.dumps({"type": "entity", "name": "e%07d", "entityType": "x", "observations": []})
    content = "\n".join(line % number for number in range(1_000_000)).encode()
    assert sum(1 for _ in read_chats(Source("a.jsonl", BytesIO(content)), "mcp-memory", Notes())) == 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 6 << 20
