"""The origin of memories: labels, sources in UTF-8 bytes, first contents.

Batches of random messages pass through a workspace on disk. They are segmented at random by a model that sometimes
rephrases, or by the built-in model. The citations of each node are then compared with the messages. The quality of the
segmentation is not tested here.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from ebbtide.fleet.ingest.inbox import DigestTask, MemoryDraft
from ebbtide.fleet.ingest.segments import ByteOffsets, digestible_messages, memory_of, utterances
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.segmentation import segment as cut_by_builtin
from ebbtide.language.port import Processed, Segment, Utterance
from ebbtide.records import Node
from tests.property import histories
from tests.property.homes import Home
from tests.support.oracle import has_han

ROLES = {"zh": {"user": "用户：", "assistant": "助手：", "system": "系统："}}
ROLES["en"] = {role: f"{role}: " for role in ROLES["zh"]}


@dataclass(frozen=True)
class Said:
    """A message of the test."""

    role: str
    speaker: str
    text: str


said = st.builds(
    Said,
    role=st.sampled_from(["user", "user", "assistant", "system"]),
    speaker=st.sampled_from(["", "", "Ann", "小明", " ", " Bob \n Lee ", "a: b", "😀"]),
    text=st.one_of(histories.contents, histories.texts.filter(bool), st.just("同一句话。同一句话。")),
)
batches = st.lists(st.lists(said, min_size=1, max_size=5), min_size=1, max_size=3)
settings = st.fixed_dictionaries(
    {
        "speaker_prefix": st.sampled_from(["auto", "always", "never"]),
        "digest_system": st.booleans(),
        "locale": st.sampled_from(["auto", "zh", "en"]),
    }
)


def told_labels(messages: list[Said], chosen: dict) -> list[str]:
    """Return labels by section 4, `speaker_prefix`: the speaker, or the role if the batch mixes roles."""
    labels = []
    for message in messages:
        speaker = " ".join(message.speaker.split())
        locale = chosen["locale"]
        if locale == "auto":
            locale = "zh" if has_han(message.text) else "en"
        is_mixed = len({m.role for m in messages}) > 1
        if chosen["speaker_prefix"] == "never":
            labels.append("")
        elif speaker:
            labels.append(f"{speaker}: ")
        elif is_mixed or chosen["speaker_prefix"] == "always":
            labels.append(ROLES[locale][message.role])
        else:
            labels.append("")
    return labels


def cut_at_random(heard: list[Utterance], dice: Random) -> list[tuple[Segment, str | None]]:
    """Return random segments, with or without positions, or rephrased, and the content if it differs."""
    found: list[tuple[Segment, str | None]] = []
    for index, utterance in enumerate(heard):
        text = utterance.text
        ends = sorted(dice.sample(range(len(text) + 1), min(2, len(text) + 1)))
        start, end = (ends[0], ends[-1])
        mood = dice.choice(["exact", "exact", "lost", "wrong", "rephrased", "both", "content"])
        piece, messages = text[start:end], (index,)
        if mood == "rephrased":
            piece = f"<{dice.random()}>"
        elif mood == "both" and index:
            messages = (index, index - 1)
        elif not piece:
            continue
        where = {"exact": start, "wrong": start + 1}.get(mood)
        changed = dice.choice(["", utterance.prefix]) + "in other words" if mood == "content" else None
        found.append((Segment(piece, messages, where), changed))
    return found


def drafts_of(task: DigestTask, home: Home, dice: Random | None) -> list[tuple[Segment, MemoryDraft]]:
    """Return the memories of a batch; without a generator the built-in model segments it."""
    parameters = home.workspace.parameters
    indices = digestible_messages(task, parameters)
    heard = utterances(task, indices, parameters)
    records = [task.records[i] for i in indices]
    cut = cut_at_random(heard, dice) if dice else [(s, None) for s in cut_by_builtin(heard, 40)]
    found = []
    for segment, changed in cut:
        processed = process(segment.text, None)
        if changed is not None:
            processed = Processed(changed, "", ())
        found.append((segment, memory_of(segment, processed, heard, records, ByteOffsets(heard))))
    return found


def cited(home: Home, node: Node) -> list[str]:
    """Return the text of every slice that a node cites, read from the messages."""

    def read(txn) -> list[str]:
        texts = []
        for source in node.sources:
            whole = txn.messages.text(txn.messages.get(source.message)).encode()
            assert 0 <= source.offset <= source.offset + source.length <= len(whole)
            texts.append(whole[source.offset : source.offset + source.length].decode())
        return texts

    return home.store.read(read)


def first_content(home: Home, node: Node) -> str | None:
    return home.store.read(lambda txn: txn.nodes.first_content(node))


def digest_all(
    home: Home, conversation: list[list[Said]], chosen: dict, dice: Random | None
) -> dict[int, str]:
    """Digest every batch and check the citations of each node. Return the content of each node at its creation."""
    contents: dict[int, str] = {}
    for messages in conversation:
        home.accept(
            [m.text for m in messages],
            roles=[m.role for m in messages],
            speakers=[m.speaker for m in messages],
        )
        task = home.task()
        heard = [m for m in messages if m.role != "system" or chosen["digest_system"]]
        labels = told_labels(heard, chosen)
        made = drafts_of(task, home, dice)
        home.digest(task, [draft for _, draft in made], {})
        numbers = [r.number for r, m in zip(task.records, messages, strict=True) if m in heard]
        fresh = [node for node in home.nodes().values() if node.batch == task.batch.number]
        for node, (segment, _) in zip(sorted(fresh, key=lambda n: n.id), made, strict=True):
            assert_cites(home, node, segment, heard, labels, numbers)
            contents[node.id] = node.content
    return contents


def assert_cites(
    home: Home, node: Node, segment: Segment, heard: list[Said], labels: list[str], numbers: list[int]
) -> None:
    """Assert that a node cites the exact slice if it is in one message, else the whole of every named message."""
    texts = cited(home, node)
    assert first_content(home, node) == node.content
    own = {labels[i] for i in segment.messages}
    label = own.pop() if len(own) == 1 else ""
    assert node.label == label
    stands = len(segment.messages) == 1 and segment.text in heard[segment.messages[0]].text
    if stands:
        assert texts == [segment.text]
        assert [source.message for source in node.sources] == [numbers[segment.messages[0]]]
        whole, start = heard[segment.messages[0]].text, segment.start
        if start is not None and whole.startswith(segment.text, start):
            assert node.sources[0].offset == len(whole[:start].encode()), "of two places the one meant"
    else:
        assert texts == [heard[i].text for i in sorted(set(segment.messages))]
    if stands and node.content == segment.text:
        event("word for word")
        assert node.first_key == b"", "nothing is stored twice"
        assert texts[0] in node.content
    else:
        assert node.first_key != b""


@histories.examples(250)
@given(conversation=batches, chosen=settings, seed=st.integers(0, 10**6))
def test_nodes_cite_what_was_said(conversation: list[list[Said]], chosen: dict, seed: int) -> None:
    """However a model segments or rephrases, every node cites correct slices and keeps its first content."""
    home = Home({**chosen, "decay_rate": 0.5, "focus_limit": 1, "delete_threshold": 1})
    try:
        contents = digest_all(home, conversation, chosen, Random(seed))
        while home.counters()[1]:
            home.compress(histories.shorten, reopen_at=[1])
        for node in home.nodes().values():
            assert first_content(home, node) == contents[node.id]
        assert home.faults() == []
    finally:
        home.close()


@histories.examples(120)
@given(conversation=batches, chosen=settings)
def test_the_built_in_model_cites_word_for_word(conversation: list[list[Said]], chosen: dict) -> None:
    """A node of the built-in model is a slice of one message, and stores no further text."""
    home = Home(chosen)
    try:
        digest_all(home, conversation, chosen, None)
        for node in home.nodes().values():
            assert len(node.sources) == 1 and node.first_key == b""
            assert node.content == cited(home, node)[0]
        assert home.faults() == []
    finally:
        home.close()
