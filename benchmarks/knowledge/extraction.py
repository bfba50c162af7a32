"""Extraction by rules: the share of right statements, how many there are, and the time that a message takes.

The messages are `data/messages.jsonl`. A reader judged the statements that the rules make of them
(`data/verdicts.jsonl`). A verdict is bound to the message and to the whole statement, so a statement that changes is
unlabelled, is shown as such, and misses the bar. The verdicts on public conversations are bound to digests, because
their texts are not part of this project.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import quantiles
from time import perf_counter

from benchmarks.knowledge.sets import (
    LANGUAGES,
    MESSAGE_PARTS,
    FreshMessage,
    Output,
    digest_of,
    read_fresh_messages,
    read_public_verdicts,
    read_verdicts,
)
from benchmarks.knowledge.table import Row
from benchmarks.recall_data import Corpus, MissingSet, default_folder, read_set
from ebbtide.language.builtin.extraction import extract
from ebbtide.memory.reports import REPORTS

BAR = 0.97
SLOT_BAR = 0.95
MOST_MS = 2.0
LEAST_OUTPUTS = 10
"""Fewest outputs of a slot that is judged by itself."""
SCORED_PARTS = ("held_out", "independent", "independent_second")
OTHER = "other"
"""The topic of a fact on no topic of the design."""
CONVERSATIONS = ("locomo", "longmemeval", "memorybank_cn")


@dataclass(slots=True)
class Count:
    """How many outputs a reader accepts, does not accept, and has not judged."""

    right: int = 0
    wrong: int = 0
    unlabelled: int = 0

    def add(self, verdict: bool | None) -> None:
        """Count an output."""
        if verdict is None:
            self.unlabelled += 1
        elif verdict:
            self.right += 1
        else:
            self.wrong += 1

    @property
    def total(self) -> int:
        """The number of outputs."""
        return self.right + self.wrong + self.unlabelled

    @property
    def share(self) -> float:
        """The share of right ones; an unlabelled one does not count as right."""
        return self.right / self.total if self.total else 0.0

    def __str__(self) -> str:
        unlabelled = f", {self.unlabelled} unlabelled" if self.unlabelled else ""
        return f"{self.share:.1%} ({self.right} of {self.total}{unlabelled})"


@dataclass(slots=True)
class Tally:
    """The outputs on some messages."""

    messages: int = 0
    whole: Count = field(default_factory=Count)
    slots: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))

    def add(self, outputs: Iterable[Output], verdict: Callable[[Output], bool | None]) -> None:
        """Count the outputs on one message."""
        self.messages += 1
        for output in outputs:
            for count in (self.whole, self.slots[output.slot.partition(":")[0]]):
                count.add(verdict(output))

    @property
    def per_hundred(self) -> float:
        """Outputs per hundred messages."""
        return 100 * self.whole.total / max(1, self.messages)


def outputs_of(message: str, text: str) -> Iterator[Output]:
    """Yield the statements that the rules make of a text."""
    for one in extract(text):
        if one.slot in REPORTS:  # stored only as a change of a known statement
            continue
        quote = text[one.offset : one.offset + one.length]
        yield Output(message, quote, one.subject, one.slot, one.object, one.negated, one.planned)


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of extraction by rules."""
    messages = read_fresh_messages()
    return [*_precision(messages), *_public(), _time(messages, 1 if is_quick else 5)]


def _precision(messages: list[FreshMessage]) -> Iterator[Row]:
    verdicts = read_verdicts()
    tallies = {(part, lang): Tally() for part in MESSAGE_PARTS for lang in LANGUAGES}
    for message in messages:
        tallies[message.part, message.lang].add(outputs_of(message.id, message.text), verdicts.get)
    tallies = {name: tally for name, tally in tallies.items() if tally.messages}
    for part in SCORED_PARTS:
        yield from _scored(part, [message for message in messages if message.part == part], verdicts)
    parts = ", ".join(f"{part} {lang} {tally.whole}" for (part, lang), tally in tallies.items())
    yield Row("rules, each part, after repairs", "–", parts, None)
    yields = ", ".join(f"{part} {lang} {tally.per_hundred:.0f}" for (part, lang), tally in tallies.items())
    yield Row("rules, outputs per hundred messages", "–", yields, None)


def _scored(part: str, messages: list[FreshMessage], verdicts: dict[Output, bool]) -> Iterator[Row]:
    """Yield the rows of a part that serves as a score only.

    An error that was repaired after the first run still counts: other messages may have others like it.
    """
    wrong = defaultdict(set)
    for output, is_right in verdicts.items():
        if not is_right:
            wrong[output.message].add(output)
    tally = Tally()
    for message in messages:
        outputs = [*outputs_of(message.id, message.text)]
        tally.add([*outputs, *(wrong[message.id] - {*outputs})], verdicts.get)
    named = f"rules, {part.replace('_', ' ')}"
    is_met = tally.whole.share >= BAR if messages else None
    yield Row(f"{named}, with repaired errors", f"≥ {BAR:.0%}", str(tally.whole), is_met)
    judged = {slot: count for slot, count in tally.slots.items() if count.total >= LEAST_OUTPUTS}
    said = ", ".join(f"{slot} {count}" for slot, count in sorted(judged.items()))
    yield Row(
        f"{named}, each slot with {LEAST_OUTPUTS} outputs",
        f"≥ {SLOT_BAR:.0%}",
        said,
        all(count.share >= SLOT_BAR for count in judged.values()) if judged else None,
    )
    rest = Count()
    for slot, count in tally.slots.items():
        if slot not in judged:
            rest.right, rest.wrong = rest.right + count.right, rest.wrong + count.wrong
            rest.unlabelled += count.unlabelled
    yield Row(f"{named}, all other slots", "–", str(rest), None)
    stating = [message for message in messages if message.states - {OTHER}]
    if stating:
        found = {
            lang: [
                any(verdicts.get(output) for output in outputs_of(message.id, message.text))
                for message in stating
                if message.lang == lang
            ]
            for lang in LANGUAGES
        }
        shares = ", ".join(f"{lang} {sum(ones)} of {len(ones)}" for lang, ones in found.items())
        yield Row(f"{named}, messages with a fact that give a right statement", "–", shares, None)


def _public() -> Iterator[Row]:
    verdicts = read_public_verdicts()
    for name in CONVERSATIONS:
        corpora = read_set(name, default_folder())
        if isinstance(corpora, MissingSet):
            yield Row(f"rules on {name}", "–", f"not measured: {corpora.reason}", None)
            continue
        tally = Tally()
        for text in spoken(corpora):
            verdict = {output: verdicts.get(digest_of(name, text, output)) for output in outputs_of("", text)}
            tally.add(verdict, verdict.get)
        said = f"{tally.whole}, {tally.per_hundred:.1f} per hundred of {tally.messages} messages"
        yield Row(f"rules on {name}", "–", said, None)


def spoken(corpora: Iterable[Corpus]) -> Iterator[str]:
    """Yield the texts of the persons of conversations, without those of an assistant."""
    for corpus in corpora:
        for turn in corpus.turns:
            if turn.speaker.casefold() not in ("assistant", "ai", "助手"):
                yield turn.text


def _time(messages: list[FreshMessage], repetitions: int) -> Row:
    said, most = [], 0.0
    for lang in LANGUAGES:
        taken = [_milliseconds(message.text, repetitions) for message in messages if message.lang == lang]
        p95 = quantiles(taken, n=20)[-1]
        said.append(f"{lang} {p95:.2f} ms (longest {max(taken):.2f})")
        most = max(most, p95)
    return Row("rules, time per message, p95", f"≤ {MOST_MS:.0f} ms", ", ".join(said), most <= MOST_MS)


def _milliseconds(text: str, repetitions: int) -> float:
    """Return the shortest time of extracting from a text."""
    best = float("inf")
    for _ in range(repetitions):
        begun = perf_counter()
        extract(text)
        best = min(best, perf_counter() - begun)
    return best * 1000
