"""Causes in words: whether a message joins two statements by because, so, 因为 or 所以, and which one is the cause.

The connective must be next to both quotes, or begin the sentence of both with nothing but a comma between them. Words
that deny the connection, and connectives that state a purpose or a time, count for nothing. So do those of another
clause: after "I moved to Porto", "Because it rained, I took the bus" states no cause of the move.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from ebbtide.normalisation import simplified

Cause = Literal["causes", "caused_by"]
"""How the first statement of two is connected with the second."""

MAX_GAP_CHARS: Final = 60
"""A longer text between two quotes joins nothing."""
_LEAD_CHARS: Final = 16
"""Characters before a quote, and at its beginning, that are read."""

_SO: Final = (
    r"so(?![ -](?:that|far|much|many|long|well|good|little|often|called|to speak|do|does|did|am|are|is"
    r"|any ?way|anyhow|yeah|yes|by the way)\b)"
)
_FORWARD: Final = (
    rf"(?:{_SO}|therefore|thus|hence|consequently|as a (?:result|consequence)(?! of\b)|for (?:this|that) reason"
    r"|(?:because of (?:this|that|it)|due to (?:this|that))(?! (?!(?:i|we|he|she|they|my|our)\b)[a-z])"
    r"|(?:which|that|this|it) (?:is|was) why|that'?s why"
    r"|(?:(?:which|that|this|it) )?(?:has |have )?"
    r"(?:leads? to|led to|caus(?:es?|ed)|results? in|resulted in|made me|makes me)"
    r"|所以|因此|因而|于是|从而|为此|(?:这|那)?(?:就)?(?:导致|致使|造成|引起|使得)(?:了)?|结果(?![还是没未出单报])|故而|以致)"
)
_BACKWARD: Final = (
    r"(?:because(?: of)?(?! (?:this|that|it)\b)|due to(?! (?:this|that)\b)|owing to|on account of"
    r"|(?:the|one) reason (?:is|was|being)(?: that)?"
    r"|(?:that|this|it)(?:'s| is| was) because(?: of)?|as a (?:result|consequence) of"
    r"|(?:是|这是|那是)?(?:因为|由于)|原因是|起因是)"
)
_BEFORE_CAUSE: Final = r"(?:because|due to|owing to|on account of|因为|由于|既然|正因为)"
_PUNCTUATION: Final = r"[\s,.;:!，。；：！、—–-]"

_JOINED: Final = re.compile(
    rf"{_PUNCTUATION}{{0,4}}(?:(?:and|but|也|就|而|这)(?:\s|(?=[^\x00-\x7f])))?{_PUNCTUATION}{{0,2}}"
    rf"(?:(?P<forward>{_FORWARD})|(?P<backward>{_BACKWARD}))(?![a-z])(?:\s?[,，])?(?P<filler>[^.,;!?。，；！？\n]{{0,32}})"
)
_OTHER_CLAUSE: Final = re.compile(
    r"\b(?:and|but|or|so|because|if|when|while)\b|而且|并且|但|所以|因为|由于|如果|要是|的时候"
)
"""Words between a connective and a quote that begin another clause."""
_SUBJECT: Final = re.compile(
    r"(?:\s?\b(?:i|we|he|she|they|my|our|his|her|their|the|of|then|back then|also|just)\b){0,4}\s?"
    r"|(?:我们|我|他们|他|她|咱|当时|那时候?|的|也|都|又){0,4}"
)
"""Words between a connective that opens a sentence and a quote of its own clause."""
_SENTENCE_END: Final = re.compile(r"[.;!?。；！？\n]")
_MAIN_CLAUSE: Final = re.compile(r"[,，]|所以|因此")
"""The end of a cause that opens its sentence, before the effect in it."""
_OPENS: Final = re.compile(r"(?:^|[.;!?。；！？\n])\s?(?:(?:and|but|yes|well|但是?|而|嗯|对)\s?)?[,，]?\s?$")
_COMMA: Final = re.compile(r"[\s,，:：—–-]{0,4}(?:then|就|才|便|也)?\s?(?:i|we|my|我|我们|我的)?\s?")
_LEADS: Final = re.compile(
    rf"(?:^|[^a-z])(?P<word>{_BEFORE_CAUSE})(?![a-z])[^.,;!?。，；！？\n]{{0,{_LEAD_CHARS}}}$"
)
_BEGINS: Final = re.compile(rf"\W{{0,2}}{_BEFORE_CAUSE}(?![a-z])")
_DENIED: Final = re.compile(r"(?:\bnot(?: (?:just|only|simply|really))?[\s,]{0,3}|不是|并非|不|没|未必)$")


def cause_between(text: str, first: tuple[int, int], second: tuple[int, int]) -> Cause | None:
    """Return how the words of a text join two quotes; None if they do not.

    The quotes are (offset, length) in UTF-8 bytes, as in a source. `causes` means that the first one is the cause.
    """
    data = text.encode()
    if first[0] > second[0]:
        found = cause_between(text, second, first)
        return None if found is None else "caused_by" if found == "causes" else "causes"
    end, begin = first[0] + first[1], second[0]
    if begin < end or begin - end > 4 * MAX_GAP_CHARS:
        return None
    gap = _folded(data[end:begin])
    if len(gap) > MAX_GAP_CHARS:
        return None
    head = _folded(data[begin : begin + min(second[1], 4 * _LEAD_CHARS)])
    rest = _folded(data[begin : begin + second[1] + 4 * MAX_GAP_CHARS])
    lead = _folded(data[max(0, first[0] - 4 * MAX_GAP_CHARS) : first[0]])
    return _joined(lead, _folded(data[first[0] : end]), gap, head, rest)


def _folded(data: bytes) -> str:
    return data.decode(errors="ignore").casefold().replace("’", "'").translate(simplified())


def _joined(lead: str, quote: str, gap: str, head: str, rest: str) -> Cause | None:
    """Read what is before the first quote, the quote, what is between both, and how the second one begins.

    `rest` is the second quote and the text after it.
    """
    match = _JOINED.fullmatch(gap) or _JOINED.match(gap + head)
    if match is not None and _is_within(match, gap, head):
        place = match.start("forward") if match["forward"] else match.start("backward")
        if _DENIED.search((quote + gap)[: len(quote) + place][-MAX_GAP_CHARS:]):
            return None
        if _has_own_clause(match, gap, rest):
            return None
        return "causes" if match["forward"] else "caused_by"
    if _COMMA.fullmatch(gap) and gap.strip():
        before = _LEADS.search(lead)
        opening = lead[: before.start("word")] if before else lead if _BEGINS.match(quote) else None
        if opening is not None and _OPENS.search(opening):
            return "causes"
    return None


def _has_own_clause(match: re.Match[str], gap: str, rest: str) -> bool:
    """Return whether a connective between two quotes belongs to a clause other than theirs."""
    begin, end = match.span("forward") if match["forward"] else match.span("backward")
    filler = gap[min(end, len(gap)) :]
    if _OTHER_CLAUSE.search(filler):
        return True
    if match["forward"] or not _SENTENCE_END.search(gap[:begin]):
        return False
    # The sentence of the second quote begins with the connective: it may contain the effect too.
    sentence = _SENTENCE_END.split(rest[max(0, end - len(gap)) :], maxsplit=1)[0]
    return _MAIN_CLAUSE.search(sentence) is not None or not _SUBJECT.fullmatch(filler.strip(" ,，"))


def _is_within(match: re.Match[str], gap: str, head: str) -> bool:
    """Return whether a connective is in the gap, or begins in it and opens the second quote."""
    begin, end = match.span("forward") if match["forward"] else match.span("backward")
    return end <= len(gap) or (begin >= len(gap.rstrip()) and not gap.strip(" ,.;:!，。；：！、—–-"))
