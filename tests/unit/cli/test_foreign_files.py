"""Exports of other products become messages; odd parts are noted with their places, and never end an import."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import Placed
from ebbtide.cli.files.foreign import elements as reading
from ebbtide.cli.files.foreign.chats import Chat, Notes
from ebbtide.cli.files.foreign.elements import elements
from ebbtide.cli.files.foreign.formats import detected, read_chats
from ebbtide.cli.files.foreign.ledger import PART, Ledger
from ebbtide.cli.files.foreign.plan import BATCH_BYTES, BATCH_SIZE, Plan, Selection, marks_of, requests_of
from ebbtide.cli.files.foreign.sources import Source, paths_of, source_of

EXPORTS = Path(__file__).parents[2] / "golden" / "exports"


def read(
    content: bytes | str | list[Any], form: str = "auto", name: str = "conversations.json"
) -> tuple[list[Chat], Notes]:
    """Return the conversations of a file, and the notes."""
    if isinstance(content, list):
        content = json.dumps(content)
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    source, notes = Source(name, BytesIO(raw)), Notes()
    form = detected(source) if form == "auto" else form
    return list(read_chats(source, form, notes)), notes


def said(chat: Chat) -> list[tuple[str, str]]:
    """Return roles and contents."""
    return [(one.message["role"], one.message["content"]) for one in chat.messages]


def noted(notes: Notes) -> dict[str, str]:
    """Return the notes by place."""
    return {one.place: one.why for one in notes.skipped}


# --- ChatGPT ---------------------------------------------------------------------------------------------------


def test_conversations_of_chatgpt() -> None:
    """The shown branch is imported with ids, times and titles; the rest is counted or noted with its place."""
    [qingdao, lisbon, empty], notes = read((EXPORTS / "chatgpt.json").read_bytes())
    assert (qingdao.conversation_id, qingdao.title) == ("c-qingdao", "青岛的夏天")
    assert said(qingdao) == [("user", "我五月搬到了青岛，住在海边。"), ("assistant", "听起来很好！")]
    assert [one.message["timestamp"] for one in qingdao.messages] == [1717200001500, 1717200001500]
    assert said(lisbon) == [
        ("user", "I move to Lisbon in May with my cat Miso."),
        ("assistant", "Cats may travel by train."),
        ("user", "This is her basket.\nShe is three years old."),
    ]
    assert [one.message["id"] for one in lisbon.messages] == ["u1-edited", "a1", "u2"]
    assert empty.messages == []
    assert dict(notes.left_out) == {
        "messages of the system": 1,
        "messages on branches that were edited away": 2,
        "messages to tools": 1,
        "messages of tools": 1,
        "pictures, recordings and files": 1,
        "reasoning": 1,
    }
    assert noted(notes) == {
        "conversations[1].mapping.a3": "the content type 'canvas_of_2027' is unknown",
        "conversations[3]": "not a conversation: it has no mapping of messages",
    }


def chatgpt(**changes: Any) -> dict[str, Any]:
    """Return a conversation of two messages with changes at dotted places."""
    nodes = {
        name: {
            "parent": parent,
            "message": {
                "id": name,
                "author": {"role": "user"},
                "create_time": 1_700_000_000 + number,
                "content": {"content_type": "text", "parts": [f"text {name}"]},
            },
        }
        for number, (name, parent) in enumerate([("a", None), ("b", "a")])
    }
    chat: dict[str, Any] = {"conversation_id": "c", "current_node": "b", "mapping": nodes}
    for place, value in changes.items():
        holder: Any = chat
        *path, last = place.split("__")
        for name in path:
            holder = holder[name]
        holder[last] = value
    return chat


B_TIME, A_PART = "mapping.b.create_time", "mapping.a.content.parts[0]"

ODD: dict[str, tuple[dict[str, Any], list[str], str | None]] = {
    "nothing": ({}, ["text a", "text b"], None),
    "a circle of parents": ({"mapping__a__parent": "b"}, ["text a", "text b"], "mapping.b"),
    "its own parent": ({"mapping__a__parent": "a"}, ["text a", "text b"], "mapping.a"),
    "an unknown parent": ({"mapping__b__parent": "x"}, ["text b"], "mapping.x"),
    "a parent that is a list": ({"mapping__a__parent": ["b"]}, ["text a", "text b"], "mapping.['b']"),
    "no current node": ({"current_node": None}, ["text a", "text b"], "current_node"),
    "a current node that is a list": ({"current_node": ["b"]}, ["text a", "text b"], "current_node"),
    "NaN as a time": ({"mapping__b__message__create_time": float("nan")}, ["text a", "text b"], B_TIME),
    "a time beyond the calendar": ({"mapping__b__message__create_time": 1e300}, ["text a", "text b"], B_TIME),
    "a truth value as a time": ({"create_time": True}, ["text a", "text b"], "create_time"),
    "a node that is no object": ({"mapping__a": 7}, ["text b"], "mapping.a"),
    "a message that is a list": ({"mapping__a__message": []}, ["text b"], "mapping.a"),
    "no author": ({"mapping__a__message__author": None}, ["text b"], "mapping.a"),
    "an unknown role": ({"mapping__a__message__author__role": "critic"}, ["text b"], "mapping.a"),
    "a role that is a list": ({"mapping__a__message__author__role": ["user"]}, ["text b"], "mapping.a"),
    "a type that is a list": ({"mapping__a__message__content__content_type": ["text"]}, ["text b"], "mapping.a"),
    "parts that are a number": ({"mapping__a__message__content__parts": 5}, ["text b"], "mapping.a"),
    "a part that is a number": ({"mapping__a__message__content__parts": [5, "ok"]}, ["ok", "text b"], A_PART),
    "a lone surrogate": ({"mapping__a__message__content__parts": ["\ud83d"]}, ["text b"], "mapping.a"),
    "ten megabytes": ({"mapping__a__message__content__parts": ["x" * 10_000_000]}, ["text b"], "mapping.a"),
    "an id that is an object": ({"mapping__a__message__id": {}}, ["text a", "text b"], None),
    "metadata that are a list": ({"mapping__a__message__metadata": []}, ["text a", "text b"], None),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_conversation_of_chatgpt(name: str) -> None:
    """An odd part is noted with its place, and everything else of the conversation is imported."""
    changes, texts, place = ODD[name]
    [chat], notes = read([chatgpt(**changes)])
    assert [text for _, text in said(chat)] == texts
    assert list(noted(notes)) == ([f"conversations[0].{place}"] if place else [])


def test_marks_of_sources_are_left_out() -> None:
    """The marks of sources in answers of ChatGPT, old and new, are no words of it."""
    text = "Tea【12†source】 is green【3:1†a.pdf】\ue200cite\ue202turn0\ue201, 【茶】 too."
    [chat], _ = read([chatgpt(mapping__a__message__content__parts=[text])])
    assert said(chat)[0][1] == "Tea is green, 【茶】 too."


def test_a_conversation_without_an_id_is_noted() -> None:
    """A conversation cannot be imported without an id, since a repeated import could not recognise it."""
    chats, notes = read([chatgpt(conversation_id=None)])
    assert (chats, list(noted(notes))) == ([], ["conversations[0]"])


# --- Claude and Letta ------------------------------------------------------------------------------------------


def test_conversations_of_claude() -> None:
    """The text of both sides is imported, of old exports too; thinking, tools and attachments are counted."""
    [cat, tea, nothing], notes = read((EXPORTS / "claude.json").read_bytes())
    assert (cat.conversation_id, cat.title, cat.messages[0].message["id"]) == ("9a1c", "Cat on a train", "m1")
    assert said(cat) == [
        ("user", "My cat Miso travels to Porto with me."),
        ("assistant", "A basket is enough."),
    ]
    assert [one.message["timestamp"] for one in cat.messages] == [1717236001000, 1717236009500]
    assert said(tea) == [("user", "林月喜欢喝乌龙茶。"), ("assistant", "好的，我记住了。")]
    assert [one.message["timestamp"] for one in tea.messages] == [1672905600000, 1672905605000]
    assert (tea.title, nothing.messages) == ("", [])
    assert dict(notes.left_out) == {
        "attachments": 2,
        "thinking": 1,
        "uses of tools": 1,
        "results of tools": 1,
        "messages without text": 1,
    }
    assert noted(notes) == {
        "conversations[0].chat_messages[1].content[4]": "the type 'hologram' is unknown",
        "conversations[0].chat_messages[3]": "the sender 'oracle' is unknown",
        "conversations[1].chat_messages[0].created_at": (
            "time left out: timestamp: 'then' is neither ms since the epoch nor an ISO 8601 time"
        ),
    }


def test_a_message_of_claude_with_tools_only_has_no_text() -> None:
    """The words that the export puts in place of tools are no words of the conversation."""
    tools = {"sender": "assistant", "text": "This block is not supported.", "content": [{"type": "tool_use"}]}
    [chat], notes = read([{"uuid": "c", "chat_messages": [tools]}])
    assert chat.messages == [] and notes.left_out == {"uses of tools": 1, "messages without text": 1}


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {"sender": ["human"]},
        {"sender": "human", "text": "\ud800"},
        {"sender": "human", "text": "x" * 100_001},
    ],
    ids=["nothing", "a sender that is a list", "a lone surrogate", "a long text"],
)
def test_an_odd_message_of_claude(odd: Any) -> None:
    """An odd message is noted with its place, and the others are imported."""
    sound = {"sender": "human", "text": "hello", "created_at": 5, "content": {}, "attachments": 3}
    [chat], notes = read([{"uuid": "c", "chat_messages": [odd, sound]}])
    assert said(chat) == [("user", "hello")] and chat.messages[0].message["timestamp"] == 5
    assert list(noted(notes)) == ["conversations[0].chat_messages[0]"]


def test_agents_of_letta() -> None:
    """Blocks become facts, `send_message` has the words of the assistant, and events of Letta are left out."""
    [agent], notes = read((EXPORTS / "letta.af").read_bytes(), name="companion.af")
    assert (agent.conversation_id, agent.title) == ("Companion", "Companion")
    assert said(agent) == [
        ("user", "human: Ann lives in Lisbon."),
        ("assistant", "persona：我是安的朋友。"),
        ("user", "I play the cello."),
        ("assistant", "How long have you played?"),
        ("user", "从七岁开始。"),
        ("assistant", "真好！"),
    ]
    assert agent.messages[2].message == {
        "role": "user",
        "content": "I play the cello.",
        "timestamp": 1748768402000,
    }
    assert dict(notes.left_out) == {
        "empty blocks": 1,
        "messages of the system": 2,
        "messages without text": 2,
        "thoughts": 1,
        "calls of tools": 1,
        "messages of tools": 1,
        "parts of the type reasoning": 1,
        "tools": 1,
    }
    assert noted(notes) == {
        "agents[0].block_ids[3]": "no such block",
        "agents[0].messages[7].tool_calls[0]": "send_message without a message",
    }


def test_older_agent_files_are_refused() -> None:
    """An agent file in an older layout is refused with a message that says so, and how to get a current one."""
    old = json.dumps({"agent_type": "memgpt_agent", "core_memory": [], "messages": []})
    for name in ("old.af", "old.json"):
        with pytest.raises(Failure, match=r"older layout .* export it again"):
            read(old, name=name)


# --- mem0 ------------------------------------------------------------------------------------------------------


def test_memories_of_the_third_api_of_mem0() -> None:
    """`session_id` names the conversation, categories and attributes become metadata, and a page is noted."""
    memory = {
        "id": "1",
        "memory": "Ann likes oolong.",
        "session_id": "s1",
        "user_id": "ann",
        "categories": ["food", "茶"],
        "structured_attributes": {"day": 24, "is_weekend": False},
        "created_at": "2026-05-01T10:00:00Z",
    }
    [chat], notes = read(json.dumps({"count": 200, "next": "page=2", "previous": None, "results": [memory]}))
    metadata = chat.messages[0].message["metadata"]
    assert chat.conversation_id == "s1"
    assert metadata["categories"] == '["food", "茶"]'
    assert json.loads(metadata["structured_attributes"]) == {"day": 24, "is_weekend": False}
    assert list(noted(notes)) == ["next"]


def test_memories_of_several_users_of_mem0_have_their_users_as_speakers() -> None:
    """Two users of one file stay two persons; an actor is the speaker before the user."""
    ann = {"id": "1", "memory": "I like oolong.", "user_id": "ann"}
    bob = {"id": "2", "memory": "I like mate.", "user_id": "bob"}
    other = {"id": "3", "memory": "I like cocoa.", "user_id": "bob", "actor_id": "Eve"}
    chats, _ = read(json.dumps({"memories": [ann, bob, other]}))
    speakers = [one.message["speaker"] for chat in chats for one in chat.messages]
    assert sorted(speakers) == ["Eve", "ann", "bob"]
    [chat], _ = read(json.dumps({"memories": [ann]}))
    assert "speaker" not in chat.messages[0].message


def test_an_entity_with_nothing_to_say_is_noted() -> None:
    """A relation without an end is noted, and its entity, of which nothing else is said, is no conversation."""
    chats, notes = read('{"type": "relation", "from": "Ann"}', "mcp-memory")
    assert (chats, list(noted(notes))) == ([], ["line 1"])


# --- LangChain -------------------------------------------------------------------------------------------------


def test_messages_of_langchain() -> None:
    """`messages_to_dict` becomes one conversation with roles, names, calls and output of tools."""
    [chat], notes = read((EXPORTS / "langchain.json").read_bytes(), name="history.json")
    assert chat.conversation_id == "history"
    assert said(chat) == [
        ("system", "You are a travel agent."),
        ("user", "I move to Lisbon in May with my cat Miso."),
        ("assistant", ""),
        ("tool", "10:05"),
        ("assistant", "十点零五分有一班火车。"),
    ]
    assert chat.messages[1].message["speaker"] == "Ann"
    [call] = chat.messages[2].message["tool_calls"]
    assert call["function"] == {"name": "trains", "arguments": {"to": "Lisbon"}}
    assert list(noted(notes)) == ["history[5]"]


# --- elements of a list ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_elements_do_not_depend_on_where_the_file_is_cut(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """A file that is read in pieces of any size has the elements that the parser of the standard library finds."""
    monkeypatch.setattr(reading, "PIECE_BYTES", piece)
    dice = random.Random(piece)
    choices: list[Any] = [
        1,
        -12.5e10,
        '林\\"[,]',
        True,
        None,
        [],
        {},
        {"a": [1, {"b": "\U0001f30a"}]},
        "",
        1234567890123456,
    ]
    for indent, ascii_only in ((None, True), (2, False)):
        items = [dice.choice(choices) for _ in range(30)]
        raw = json.dumps(items, indent=indent, ensure_ascii=ascii_only).encode()
        assert list(elements(BytesIO(b"\xef\xbb\xbf" + raw + b" \n"), "f")) == items
    assert list(elements(BytesIO(b" [ ] "), "f")) == []


BROKEN: dict[str, bytes] = {
    "truncated in a text": b'[{"a": 1}, {"b": "x',
    "truncated after an element": b'[{"a": 1}',
    "truncated after a comma": b'[{"a": 1},',
    "no list": b'{"a": 1}',
    "nothing": b"",
    "no comma": b"[1 2]",
    "a comma too many": b"[1,]",
    "a second list": b"[1][2]",
    "brackets": b"[" * 100_000,
    "objects in objects": b"[" + b'{"a":' * 100_000,
    "a number of 10000 digits": b"[" + b"9" * 10_000 + b"]",
    "UTF-16": '[{"a": 1}]'.encode("utf-16"),
    "a byte that is not UTF-8": b'[1, "\xff"]',
    "a cut character": b'[1, "\xe6',
    "NUL bytes": bytes(100),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_list_is_refused(name: str) -> None:
    """A list that is no JSON is refused with one sentence that names the file and the element."""
    with pytest.raises(Failure, match=r"^f\.json, element \d: .*\. Nothing was sent\.$"):
        list(elements(BytesIO(BROKEN[name]), "f.json"))


def test_an_endless_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element beyond the limit is refused before the rest of the file is read."""
    monkeypatch.setattr(reading, "MAX_ELEMENT_CHARS", 1000)
    monkeypatch.setattr(reading, "PIECE_BYTES", 100)
    file = BytesIO(b'["' + b"x" * 1_000_000 + b'"]')
    with pytest.raises(Failure, match="million characters"):
        list(elements(file, "f.json"))
    assert file.tell() < 10_000


# --- files -----------------------------------------------------------------------------------------------------


def archive(path: Path, **files: bytes) -> Path:
    """Write an archive with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return path


def names_of(path: Path) -> list[tuple[str, bytes]]:
    """Return the names and contents of what a file contains."""
    with source_of(path) as sources:
        return [(source.name, source.file.read(-1)) for source in sources]


def test_parts_of_an_export_are_found(tmp_path: Path) -> None:
    """A folder, a pattern and an archive give the files with conversations, in order, and no other files."""
    for name in (
        "conversations-001.json",
        "conversations-000.json",
        "shared_conversations.json",
        "user.json",
    ):
        (tmp_path / name).write_text("[]")
    parts = [tmp_path / "conversations-000.json", tmp_path / "conversations-001.json"]
    assert paths_of([tmp_path]) == parts
    assert paths_of([tmp_path / "conversations-*.json"]) == parts
    assert paths_of([parts[0], tmp_path]) == parts
    packed = archive(
        tmp_path / "export.zip",
        **{"conversations-001_json": b"[2]", "x__conversations_json": b"[1]", "users_json": b"[3]"},
    )
    assert names_of(packed) == [("conversations-001.json", b"[2]"), ("conversations.json", b"[1]")]
    for wrong in (tmp_path / "none-*.json", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(Failure, match=str(wrong).replace("*", r"\*")):
            paths_of([wrong])


def damaged(path: Path) -> Path:
    """Write an archive with a file that cannot be unpacked."""
    dice = random.Random(1)
    raw = bytearray(archive(path, conversations_json=dice.randbytes(5000)).read_bytes())
    raw[2000:2100] = bytes(100)
    path.write_bytes(raw)
    return path


def locked(path: Path) -> Path:
    """Write an archive that says that its file is encrypted."""
    raw = bytearray(archive(path, conversations_json=b"[]").read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    return path


def outside(path: Path) -> Path:
    """Write an archive whose only file has a path outside of it, and another name."""
    return archive(path, **{"..__..__etc__passwd": b"x"})


@pytest.mark.parametrize("make", [damaged, locked, outside])
def test_a_hostile_archive_is_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """An archive that is damaged, locked or without conversations is refused with its path."""
    path = make(tmp_path / "export.zip")
    with pytest.raises(Failure, match=str(path)):
        read(b"".join(content for _, content in names_of(path)))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["export.zip"]


def test_the_size_of_an_archive_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations that would unpack to more than the limit are refused before they are unpacked."""
    monkeypatch.setattr("ebbtide.cli.files.foreign.sources.MAX_UNPACKED_BYTES", 1 << 20)
    path = archive(tmp_path / "export.zip", conversations_json=b"[" + b" " * (1 << 20) + b"]")
    with pytest.raises(Failure, match="more than"):
        names_of(path)


# --- plan and ledger -------------------------------------------------------------------------------------------


def chat(name: str, *texts: str, begin: int | None = 0, **fields: Any) -> Chat:
    """Return a conversation with a message of each text."""
    messages = [
        {"role": "user", "content": text} | ({} if begin is None else {"timestamp": begin + number})
        for number, text in enumerate(texts)
    ]
    return Chat(
        name,
        [Placed({**one, **fields}, f"{name}[{n}]") for n, one in enumerate(messages)],
        {"title": name},
        name,
    )


def planned(selection: Selection, *chats: Chat) -> tuple[list[str], Plan]:
    """Return the ids of the conversations that are imported, in order."""
    with Plan(selection, Notes()) as plan:
        for one in chats:
            plan.add(one)
        plan.finish()
        return [one.conversation_id for one in plan.chats()], plan


def test_conversations_are_selected_and_sorted() -> None:
    """The oldest conversation is the first; ids, titles, a time and a number select."""
    chats = [chat("New Year", "a", begin=300), chat("May", "a", begin=100), chat("June", "a", "b", begin=200)]
    assert planned(Selection(), *chats)[0] == ["May", "June", "New Year"]
    assert planned(Selection(names=["new", "May"]), *chats)[0] == ["May", "New Year"]
    assert planned(Selection(since_ms=201), *chats)[0] == ["June", "New Year"]
    names, plan = planned(Selection(limit=1), *chats)
    assert (names, plan.not_selected, plan.span, plan.messages) == (["New Year"], 2, (300, 300), 1)


def test_messages_that_the_daemon_refuses_are_noted() -> None:
    """A message that no request may have is noted, and the others of its conversation are sent."""
    odd = chat("c", "a", "b", "c")
    odd.messages[1].message["timestamp"] = 10**18
    names, plan = planned(Selection(), odd, chat("x" * 201, "a"))
    assert names == ["c"]
    assert plan.messages == 2
    assert [one.place for one in plan.notes.skipped] == ["c[1]", "x" * 201]


def test_batches_have_bounds() -> None:
    """A batch has at most 40 messages and two megabytes, unless one message is larger; keys are of the content."""
    one = chat("c", *[str(number) for number in range(100)])
    sizes = [len(indexes) for _, indexes in requests_of(one, range(100))]
    assert sizes == [BATCH_SIZE, BATCH_SIZE, 20]
    long = chat("c", *["林" * 90_000] * 10)
    sizes = [len(indexes) for _, indexes in requests_of(long, range(10))]
    assert sizes == [3, 3, 3, 1]
    assert 3 * 90_000 * 6 < BATCH_BYTES < 4 * 90_000 * 6, "JSON has six bytes for each character"
    keys = [request.body["idempotency_key"] for request, _ in requests_of(one, range(100))]
    again = [request.body["idempotency_key"] for request, _ in requests_of(one, range(40, 100))]
    assert len(set(keys)) == 3 and keys[1:] == again


def test_marks_tell_messages_apart() -> None:
    """A message keeps its mark in a longer conversation; two equal messages have different marks."""
    short, long = chat("c", "yes", "yes", begin=None), chat("c", "yes", "yes", "no", begin=None)
    assert marks_of(long)[:2] == marks_of(short) and len(set(marks_of(long))) == 3
    named = chat("c", "a", id="1"), chat("c", "b", id="1")
    assert marks_of(named[0]) == marks_of(named[1]), "the words do not count where there is an id"


class Records:
    """Records in a dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def batch_records(self, _: str, ops: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Perform the operations as the daemon does."""
        assert 0 < len(ops) <= 100
        for op in ops:
            if op["op"] == "put":
                self.held[op["key"]] = json.loads(json.dumps(op["value"]))
        held = {key: {"value": value} for key, value in self.held.items()}
        return [{"record": held.get(op["key"])} for op in ops]


def test_the_ledger_keeps_marks_of_any_number() -> None:
    """Marks that were saved are read again, also when they are more than a record has."""
    records, marks = Records(), [f"m{number}" for number in range(2 * PART + 7)]
    for begin in range(0, len(marks), 500):
        ledger = Ledger(records, "ann", "chatgpt")
        ledger.load(["a", "b", "a"])
        assert ledger.marks("a") == set(marks[:begin]) and ledger.marks("b") == set()
        ledger.add("a", marks[begin : begin + 500])
        assert ledger.marks("a") == set(marks[: begin + 500])
        ledger.save()
    assert len(records.held) == 3
