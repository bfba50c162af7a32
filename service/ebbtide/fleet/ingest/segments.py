"""Turns a model's segments into memories with exact sources.

A segment that occurs verbatim in one message cites that slice in UTF-8 bytes, and its first content is the slice, so
that nothing is stored twice. A rephrased segment cites the whole messages that it names and stores its first content
separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from ebbtide.fleet.ingest.inbox import DigestTask, MemoryDraft
from ebbtide.language.port import Processed, Segment, Utterance
from ebbtide.memory.digestion import NewMemory
from ebbtide.memory.wording import speaker_labels
from ebbtide.parameters import AgentParameters
from ebbtide.records import MessageRecord, Source

STRIDE = 1024
"""Interval, in characters, between stored byte offsets."""


class ByteOffsets:
    """Converts code point offsets in messages to byte offsets. Encodes each text once, not once per segment."""

    def __init__(self, utterances: Sequence[Utterance]) -> None:
        self._utterances = utterances
        self._known: dict[int, list[int]] = {}

    def at(self, message: int, place: int) -> int:
        """Return the UTF-8 byte offset of a code point offset in a message."""
        text = self._utterances[message].text
        if text.isascii():
            return place
        if message not in self._known:
            sizes = (len(text[at : at + STRIDE].encode()) for at in range(0, len(text), STRIDE))
            self._known[message] = list(accumulate(sizes, initial=0))
        index = place // STRIDE
        return self._known[message][index] + len(text[index * STRIDE : place].encode())


def digestible_messages(task: DigestTask, parameters: AgentParameters) -> list[int]:
    """Return the indices of the messages that become memories."""
    return [
        index
        for index, record in enumerate(task.records)
        if (record.role != "system" or parameters.digest_system)
        and (parameters.digest_tools or record.tools_from != 0)
    ]


def utterances(task: DigestTask, indices: Sequence[int], parameters: AgentParameters) -> list[Utterance]:
    """Return the messages as the model sees them."""
    spoken = []
    for record, text in ((task.records[i], task.texts[i]) for i in indices):
        heard = text if parameters.digest_tools else record.without_tools(text)
        spoken.append((record.role, record.speaker, heard))
    labels = speaker_labels(spoken, parameters.speaker_prefix, parameters.locale)
    return [
        Utterance(role, speaker, text, label)
        for (role, speaker, text), label in zip(spoken, labels, strict=True)
    ]


def placed_start(segment: Segment, utterances: Sequence[Utterance]) -> int | None:
    """Return the code point offset at which the segment occurs verbatim in its only message; None if it does not."""
    if len(segment.messages) != 1:
        return None
    text = utterances[segment.messages[0]].text
    start = segment.start
    if start is not None and text[start : start + len(segment.text)] == segment.text:
        return start
    found = text.find(segment.text)
    return None if found < 0 else found


def _shared(values: Iterable[str]) -> str:
    """Return the value that all messages of a segment share; else an empty string."""
    different = set(values)
    return different.pop() if len(different) == 1 else ""


def memory_of(
    segment: Segment,
    processed: Processed,
    utterances: Sequence[Utterance],
    records: Sequence[MessageRecord],
    offsets: ByteOffsets,
) -> MemoryDraft:
    """Return the memory of a processed segment. `records` and `offsets` belong to `utterances`."""
    start = placed_start(segment, utterances)
    first = records[segment.messages[0]]
    if start is None:
        sources = tuple(_whole_source(records[i], utterances[i].text) for i in sorted(set(segment.messages)))
    else:
        byte_begin = offsets.at(segment.messages[0], start)
        sources = (Source(first.number, byte_begin, len(segment.text.encode())),)
    is_verbatim = start is not None and processed.content == segment.text
    spoken = [utterances[index] for index in segment.messages]
    memory = NewMemory(
        content=processed.content,
        phrase=processed.phrase,
        keywords=processed.keywords,
        created_at_ms=first.time_ms,
        label=_shared(one.prefix for one in spoken),
        speaker=_shared(one.speaker for one in spoken),
        sources=sources,
        is_from_user=all(one.role == "user" for one in spoken),
    )
    return MemoryDraft(memory, None if is_verbatim else processed.content)


def _whole_source(record: MessageRecord, text: str) -> Source:
    """Return a whole message as a source."""
    return Source(record.number, 0, len(text.encode()))
