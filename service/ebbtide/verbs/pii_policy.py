"""The PII policy: detection and redaction of personal data on ingest, before anything is stored, hashed, logged or
sent to a model.

`redact` replaces personal data in texts, speakers and metadata values by its kind: `[email]`. In ids and names of
fields it is replaced by a keyed form (`[email:9f2c…]`), which is always the same for the same value. So messages of a
conversation stay together, and a repeated request is recognised. `tag` stores everything and returns where personal
data is. `off` does not search for it.

The policy does not cover an agent's id, which is part of every address and of the log. Errors never echo personal data,
under any policy (`requests.py`).
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
    """An agent's policy, applied to one request; it counts the personal data that it finds."""

    def __init__(self, parameters: AgentParameters, identity: Identity) -> None:
        self.is_off = parameters.pii == "off"
        self.redacts = parameters.pii == "redact"
        self.counts: Counter[str] = Counter()
        self._key = f"{identity.agent_id}/{identity.seed}/pii".encode()

    def text(self, text: str) -> tuple[str, tuple[PersonalSpan, ...]]:
        """Return a text as it is stored, and under `tag` the places of personal data."""
        spans = self._met(text)
        if self.redacts:
            return redacted(text, spans), ()
        return text, _in_bytes(text, spans)

    def tagged(self, text: str) -> tuple[PersonalSpan, ...]:
        """Return the places of personal data in a text that was counted before, under `tag`."""
        return () if self.is_off or self.redacts else _in_bytes(text, find(text))

    def words(self, text: str) -> str:
        """Return a short text as it is stored: a speaker, or a value."""
        return self.text(text)[0]

    def name(self, text: str) -> str:
        """Return an id, or the name of a field, as it is stored."""
        spans = self._met(text)
        return keyed(text, self._key) if self.redacts and spans else text

    def forms(self, text: str) -> set[str]:
        """Return the forms in which an id may be stored: as given, and redacted."""
        return {text, keyed(text, self._key)}

    def value(self, value: Any, name: str = "") -> Any:
        """Return a metadata value as it is stored, at any depth. Its name may reveal that it is personal."""
        if self.is_off or value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, Mapping):
            return {self.name(key): self.value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        return self._named(value, name)

    def metadata(self, metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return a metadata object as it is stored."""
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
        spans = () if self.is_off else find(text)
        self.counts.update(span.kind for span in spans)
        return spans


def as_stored(policy: PiiPolicy, texts: Sequence[str]) -> list[str]:
    """Return the words of a query as they are stored: redacted text is found by its replacement."""
    return [policy.words(text) for text in texts] if policy.redacts else list(texts)


def _in_bytes(text: str, spans: Sequence[Span]) -> tuple[PersonalSpan, ...]:
    """Return the spans in bytes of UTF-8, like every position in a message."""
    found, position, offset = [], 0, 0
    for span in spans:
        offset += len(text[position : span.begin].encode())
        length = len(text[span.begin : span.end].encode())
        found.append(PersonalSpan(span.kind, offset, length))
        position, offset = span.end, offset + length
    return tuple(found)
