"""The door: what becomes of personal data before anything of a request is stored, hashed, logged or shown to a model.

Texts, speakers and values of metadata are redacted in place: `[email]`. Ids, and the names of fields, get a keyed form
instead (`[email:9f2c…]`): the same again for the same one, so that messages of a conversation stay together and a
request that is sent twice is known. Under `tag` everything stays as it is, and is told of; under `off` nobody looks.

An agent's id is not covered: it is part of every address and of the log. Which values an error may echo is decided in
`forms.py`, whatever the policy: an error never tells what looks personal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.parameters import AgentParameters
from ebbtide.privacy.spans import Span, find, keyed, redacted
from ebbtide.records import PersonalSpan
from ebbtide.store.port import Identity


class PiiPolicy:
    """An agent's policy on personal data, applied to one request; counts what it meets."""

    def __init__(self, parameters: AgentParameters, identity: Identity) -> None:
        self.is_open = parameters.pii == "off"
        self.redacts = parameters.pii == "redact"
        self.counts: Counter[str] = Counter()
        self._key = f"{identity.agent_id}/{identity.seed}/pii".encode()

    def text(self, text: str) -> tuple[str, tuple[PersonalSpan, ...]]:
        """A text as it is stored, and under `tag` what is personal in it."""
        spans = self._met(text)
        if self.redacts:
            return redacted(text, spans), ()
        return text, _in_bytes(text, spans)

    def tagged(self, text: str) -> tuple[PersonalSpan, ...]:
        """What is personal in a text that was counted before, under `tag`."""
        return () if self.is_open or self.redacts else _in_bytes(text, find(text))

    def words(self, text: str) -> str:
        """A short text as it is stored: who speaks, a value."""
        return self.text(text)[0]

    def name(self, text: str) -> str:
        """An id, or the name of a field, as it is stored."""
        spans = self._met(text)
        return keyed(text, self._key) if self.redacts and spans else text

    def forms(self, text: str) -> set[str]:
        """An id as it may be stored: as it is given, from under another policy, and as it is when it was redacted."""
        return {text, keyed(text, self._key)}

    def value(self, value: Any, name: str = "") -> Any:
        """A value of metadata as it is stored, all the way down; its name may tell what it is."""
        if self.is_open or value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, Mapping):
            return {self.name(key): self.value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        return self._named(value, name)

    def metadata(self, metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """An object of metadata as it is stored."""
        return None if metadata is None else dict(self.value(metadata))

    def _named(self, value: str | int, name: str) -> str | int:
        text, label = str(value), f"{name}: "
        spans = [
            Span(span.kind, span.begin - len(label), span.length)
            for span in find(label + text)
            if span.begin >= len(label)
        ]
        self.counts.update(span.kind for span in spans)
        return redacted(text, spans) if spans and self.redacts else value

    def _met(self, text: str) -> Sequence[Span]:
        spans = () if self.is_open else find(text)
        self.counts.update(span.kind for span in spans)
        return spans


def asked(policy: PiiPolicy, texts: Sequence[str]) -> list[str]:
    """Words of a question as they may be looked for: what was redacted is found by what stands in its place."""
    return [policy.words(text) for text in texts] if policy.redacts else list(texts)


def _in_bytes(text: str, spans: Sequence[Span]) -> tuple[PersonalSpan, ...]:
    """Spans in bytes of UTF-8, as every place in a message is told."""
    found, position, offset = [], 0, 0
    for span in spans:
        offset += len(text[position : span.begin].encode())
        length = len(text[span.begin : span.end].encode())
        found.append(PersonalSpan(span.kind, offset, length))
        position, offset = span.end, offset + length
    return tuple(found)
