"""From a model's segments to memories with exact sources.

A segment that stands word for word in one message cites that slice, by UTF-8 bytes, and its first content is
that slice: nothing is stored twice. Anything a model has rephrased cites the whole of the messages it named,
and keeps its first content as a text of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ebbtide.fleet.ingest.inbox import DigestTask, Draftable
from ebbtide.language.port import Processed, Segment, Utterance
from ebbtide.memory.digestion import NewMemory
from ebbtide.memory.wording import speaker_labels
from ebbtide.parameters import AgentParameters
from ebbtide.records import MessageRecord, Source

STRIDE = 1024
"""Characters after which the byte offset in a text is kept."""


class ByteOffsets:
    """Byte offsets of places in messages. A text is encoded once, not again for each of its segments."""

    def __init__(self, heard: Sequence[Utterance]) -> None:
        self._heard = heard
        self._known: dict[int, list[int]] = {}

    def at(self, message: int, place: int) -> int:
        """Return the offset in UTF-8 bytes of a place in a message, given in code points."""
        text = self._heard[message].text
        if text.isascii():
            return place
        if message not in self._known:
            sizes = (len(text[at : at + STRIDE].encode()) for at in range(0, len(text), STRIDE))
            self._known[message] = list(accumulate(sizes, initial=0))
        index = place // STRIDE
        return self._known[message][index] + len(text[index * STRIDE : place].encode())


def digestible_messages(task: DigestTask, parameters: AgentParameters) -> list[int]:
    """Indices of the messages of a batch that become memories."""
    return [
        index
        for index, record in enumerate(task.records)
        if record.role != "system" or parameters.digest_system
    ]


def utterances(task: DigestTask, indices: Sequence[int], parameters: AgentParameters) -> list[Utterance]:
    """What the model gets to see of a batch."""
    spoken = [(task.records[i].role, task.records[i].speaker, task.texts[i]) for i in indices]
    labels = speaker_labels(spoken, parameters.speaker_prefix, parameters.locale)
    return [
        Utterance(role, speaker, text, label)
        for (role, speaker, text), label in zip(spoken, labels, strict=True)
    ]


def placed_start(segment: Segment, heard: Sequence[Utterance]) -> int | None:
    """Where the segment stands word for word in its only message, in code points."""
    if len(segment.messages) != 1:
        return None
    text = heard[segment.messages[0]].text
    start = segment.start
    if start is not None and text[start : start + len(segment.text)] == segment.text:
        return start
    found = text.find(segment.text)
    return None if found < 0 else found


def label_of(segment: Segment, heard: Sequence[Utterance]) -> str:
    """The speaker's label of a segment: the one of its messages, where they agree."""
    labels = {heard[index].prefix for index in segment.messages}
    return labels.pop() if len(labels) == 1 else ""


def memory_of(
    segment: Segment,
    processed: Processed,
    heard: Sequence[Utterance],
    records: Sequence[MessageRecord],
    offsets: ByteOffsets,
) -> Draftable:
    """The memory that a processed segment becomes. `records` and `offsets` are those of `heard`."""
    prefix = label_of(segment, heard)
    start = placed_start(segment, heard)
    first = records[segment.messages[0]]
    if start is None:
        sources = tuple(_whole_source(records[i], heard[i].text) for i in sorted(set(segment.messages)))
    else:
        begin = offsets.at(segment.messages[0], start)
        sources = (Source(first.number, begin, len(segment.text.encode())),)
    is_verbatim = start is not None and processed.content == prefix + segment.text
    if not processed.content.startswith(prefix):
        prefix = ""
    memory = NewMemory(
        content=processed.content,
        phrase=processed.phrase,
        keywords=processed.keywords,
        created_at_ms=first.time_ms,
        prefix=prefix,
        sources=sources,
    )
    return Draftable(memory, None if is_verbatim else processed.content.removeprefix(prefix))


def _whole_source(record: MessageRecord, text: str) -> Source:
    """The whole of a message as a source."""
    return Source(record.number, 0, len(text.encode()))
