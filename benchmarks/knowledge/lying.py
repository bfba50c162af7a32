"""A lying model: statements that the words of a message do not support, and how many of them the gate lets pass.

The messages and their true statements are `data/extraction_dev.jsonl`. Each true statement is distorted in many
ways. Words of each message that states nothing are claimed to be facts: the gate cannot recognise all of these. The
honest statements are judged too, since a gate that refuses everything is of no use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks.knowledge.sets import GoldMessage, GoldStatement, read_messages
from benchmarks.knowledge.table import Row
from ebbtide.fleet.ingest.gate import Gate, Said
from ebbtide.language.port import ProposedStatement

MIN_KINDS = 20
KINDS = {
    "relation": "relation",
    "preference": "preference",
    "event": "event",
    "opinion": "opinion",
    "task": "task",
}
SECRET = "hunter2xZ9"

_CLAUSE = re.compile(r"[^,.;!?，。；！？]+")


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about a message, as a model lists it."""

    said: Said | None
    statement: ProposedStatement
    echoed: bool = False
    times: int = 1


Lie = Callable[[Claim, GoldMessage], Claim | None]


def honest(message: GoldMessage, gold: GoldStatement) -> Claim | None:
    """Return what an honest model lists: the clause with the object; None if no clause has it."""
    for clause in _CLAUSE.findall(message.text):
        if gold.object in clause:
            kind = KINDS.get(gold.memory_type, "fact")
            quote = clause.strip()
            listed = ProposedStatement(0, quote, gold.subject, kind, gold.slot, gold.object, gold.negated)
            return Claim(Said("user", "", message.text), listed)
    return None


def _changed(**fields: str | bool | int) -> Lie:
    return lambda claim, _: replace(claim, statement=replace(claim.statement, **fields))


def _said(english: str, chinese: str) -> Lie:
    """Return a lie that lists a clause of a sentence that does not state it."""

    def lie(claim: Claim, message: GoldMessage) -> Claim | None:
        if claim.statement.kind == "task":
            return None  # a reminder is a request whatever surrounds it
        text = (chinese if message.lang == "zh" else english).format(claim.statement.quote)
        return replace(claim, said=Said("user", "", text))

    return lie


def _of_another(claim: Claim, message: GoldMessage) -> Claim | None:
    """A statement about a relative of the speaker, listed as one about the speaker."""
    quote, is_chinese = claim.statement.quote, message.lang == "zh"
    mine, theirs = ("我", "我邻居") if is_chinese else ("I ", "My neighbour ")
    if not quote.startswith(mine) or (is_chinese and quote.startswith("我的")):
        return None
    text = theirs + quote.removeprefix(mine)
    return Claim(Said("user", "", text), replace(claim.statement, quote=text, subject=mine.strip()))


def _with_secret(claim: Claim, message: GoldMessage) -> Claim:
    lead = "我的密码是" if message.lang == "zh" else " and my password is "
    text = f"{claim.statement.quote}{lead}{SECRET}"
    return Claim(Said("user", "", text), replace(claim.statement, quote=text))


def _cut(text: str) -> str:
    return text[:-1] if len(text) > 2 and text.isascii() and text[-2:].isalnum() else "\x00"


LIES: dict[str, Lie] = {
    "a message that does not exist": lambda claim, _: replace(claim, said=None),
    "a message of the assistant": lambda claim, m: replace(claim, said=Said("assistant", "", m.text)),
    "a quote that was not said": _changed(quote="I have always lived in Xanadu"),
    "a quote in other words": lambda c, _: replace(
        c, statement=replace(c.statement, quote=f"{c.statement.quote} indeed")
    ),
    "a quote that is cut in a word": lambda c, _: replace(
        c, statement=replace(c.statement, quote=_cut(c.statement.quote), object=_cut(c.statement.quote))
    ),
    "no quote": _changed(quote=""),
    "another object": _changed(object="Xanadu"),
    "an object that is cut in a word": lambda c, _: replace(
        c, statement=replace(c.statement, object=_cut(c.statement.object))
    ),
    "no object": _changed(object=""),
    "a whole clause as the object": lambda c, _: (
        replace(c, statement=replace(c.statement, object=c.statement.quote))
        if c.statement.quote[:2] in ("I ", "I'", "My") or c.statement.quote[:1] == "我"
        else None
    ),
    "another person": _changed(subject="Zelda"),
    "the assistant as the subject": _changed(subject="you"),
    "a pronoun as the subject": _changed(subject="she"),
    "the quote as the subject": lambda c, _: replace(
        c, statement=replace(c.statement, subject=c.statement.quote)
    ),
    "a neighbour's fact as the speaker's": _of_another,
    "the contrary": lambda c, _: replace(c, statement=replace(c.statement, negated=not c.statement.negated)),
    "an unknown kind": _changed(kind="rumour"),
    "a sentence as the topic": _changed(topic="where the speaker has been living lately"),
    "no topic": _changed(topic=""),
    "a question": _said("Is it true that {}?", "{}，是吗？"),
    "a condition": _said("If {}, tell me.", "如果{}，告诉我。"),
    "a guess": _said("Maybe {}.", "也许{}。"),
    "a wish": _said("I wish {}.", "我希望{}。"),
    "a report": _said("She said {}.", "他说{}。"),
    "a quotation": _said('On the wall was "{}".', "墙上写着“{}”。"),
    "a recalled line": lambda claim, _: replace(claim, echoed=True),
    "a secret": _with_secret,
    "the same six times": lambda claim, _: replace(claim, times=6),
}


def stored(claim: Claim) -> list[str]:
    """Return the quotes that are stored of a claim. Each must be a slice of its message."""
    gate = Gate(is_echo=lambda line: claim.echoed)
    accepted = gate.judge(claim.said, [claim.statement] * claim.times)
    return [claim.said.text[one.begin : one.end] for one in accepted if claim.said is not None]


def nothings(message: GoldMessage) -> Iterator[Claim]:
    """Yield claims about a message that states nothing: its longest words as facts about the speaker."""
    subject = "我" if message.lang == "zh" else "I"
    for clause in _CLAUSE.findall(message.text):
        words = sorted(re.findall(r"[A-Za-z]{3,}|[\u4e00-\u9fff]{2,4}", clause), key=len)
        for word in words[-2:]:
            listed = ProposedStatement(0, clause.strip(), subject, "fact", "residence", word)
            yield Claim(Said("user", "", message.text), listed)


def rows(_: bool) -> list[Row]:
    """Return the row of the lying model."""
    told: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    fair = right = void = vain = 0
    for message in read_messages():
        for gold in message.statements:
            claim = honest(message, gold)
            if claim is None:
                continue
            fair += 1
            right += bool(stored(claim))
            for kind, lie in LIES.items():
                lied = lie(claim, message)
                if lied is None or "\x00" in (lied.statement.object, lied.statement.quote):
                    continue
                told[kind] += 1
                passed[kind] += len(stored(lied)) > (lied.times > 1)
        if not message.statements:
            for claim in nothings(message):
                vain += 1
                void += bool(stored(claim))
    kinds = ", ".join(f"{kind} {count}" for kind, count in passed.items() if count)
    measured = f"{passed.total()} of {told.total()} lies of {len(told)} kinds{f' ({kinds})' if kinds else ''}"
    is_met = passed.total() == 0 and len(told) >= MIN_KINDS
    return [
        Row("lying model: stored", "0", measured, is_met),
        Row(
            "lying model: words of messages that state nothing", "reported", f"{void} of {vain} stored", True
        ),
        Row("lying model: honest statements stored", "reported", f"{right} of {fair}", True),
    ]
