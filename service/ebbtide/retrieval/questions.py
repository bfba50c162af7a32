"""Recognise questions among messages, with or without a question mark.

People who write to an assistant often omit the mark: "what's my address again, the form wants it". A sentence is a
question if it ends with the mark, or begins as only questions do.
"""

from __future__ import annotations

import re

from ebbtide.retrieval.sentences import sentences_of

_AUXILIARY = r"(?:is|are|am|was|were|does|did|has|have|had|can|could|will|would|shall|should|might)\b"
_OPENS_ENGLISH = re.compile(
    r"(?:(?:wait|hey|ok|okay|so|and|but|also|sorry|please|oh|well|hmm?|um)\b[\s,.…:-]*+){0,3}+"
    rf"(?:(?:what|where|when|who|how|why)(?:['’](?:s|re)\b|\s++(?:do\b|{_AUXILIARY}))"
    rf"|how\s++(?:much|many|often|long|far|old)\s++(?:\w++\s++)?(?:do\b|{_AUXILIARY})"
    rf"|(?:which|what)\s++(?!(?:i|you|we|they|he|she|it)\b)\w++\s++(?:do\b|{_AUXILIARY})"
    rf"|(?!(?:can|could|will|would)\s++you\b){_AUXILIARY}(?:n['’]t)?\s++"
    r"(?:i|you|we|they|he|she|it|there|this|that|my|your|our|the)\b"
    r"|do\s++(?:i|you|we|they)\b)",
    re.IGNORECASE,
)

_ENDS_CHINESE = re.compile(
    r"(?:[吗谁]|[^什怎那这多]么|哪[里儿]?|(?<!没)(?<!没有)什么|怎么样|多[久远大高少]|几[个次点岁号路])(?:来着)?\Z"
)
"""The end of a Chinese clause that asks."""

_CLAUSE_ENDS = re.compile(
    r"[，；：()（）\n—–]|[,;:](?!\d)|\s--?\s|\b(?:and/or|and|but|because|since|given)\b"
    r"|\bso\b(?=\s++(?:wh|how|can|could|should))"
    r"|(?<!what )(?<!know )(?<!tell me )(?<!remember )(?<!check )(?<!see )(?<!sure )(?<!remind me )"
    r"\bif\b(?=\s++(?:i|we|my|our)\b)",
    re.IGNORECASE,
)
"""The end of a clause. A condition about the speaker is a clause, but not an indirect question: "do you know if"."""

_COURTESIES = re.compile(
    r"(?:\W|(?:wait|hey|hi|hello|ok|okay|so|also|sorry|please|oh|well|hmm?|um|thanks|thank you|again|by the way)\b"
    r"|你好|您好|请问|谢谢|好的|对了|嗨)*+",
    re.IGNORECASE,
)
"""Words at the begin of a clause that neither state nor ask anything; a clause may have no others."""

_STATES = re.compile(
    r"(?:(?:did|do)\s++you\s++know\s++(?:that\s++)?+)?+i\b|we\b|my\b|our\b|[我咱俺]"
    r"|(?:(?:can|could|will|would)\s++you\s++)?+(?:please\s++)?+(?:note|save|keep in mind|write down)\b"
    r"|.{0,4}记[下一录]",
    re.IGNORECASE,
)
"""The begin of a clause that is about the speaker, or asks to note something."""

_ASKS_WITHIN = re.compile(r"什么|谁|哪|几(?!乎)|多少|多[久大远高长]|怎|吗|呢|有没有|(\w)不\1|为何|何时")
"""Words that make a Chinese clause about the speaker a question."""

_ASKS_PERMISSION = re.compile(r"(?:可以|行|没问题|没关系|方便|介意)[吗么]\W*+\Z")
"""The end of a Chinese clause that asks whether a plan is all right."""

_NAMES_MINE = re.compile(
    r"\b(?:my|our)\s++(?:\w{1,20}\s{1,3})?(?:dog|cat|puppy|kitten|horse|rabbit|parrot|hamster|son|daughter|baby|brother|sister"
    r"|wife|husband|partner|fianc[ée]{1,2}|boyfriend|girlfriend|friend|boss|colleague|neighbou?r|uncle|aunt|cousin|nephew"
    r"|niece|flatmate|roommate|landlord|doctor|teacher),?\s++(?-i:[A-Z][a-z])",
    re.IGNORECASE,
)
"""A person or a pet of the speaker with a name, which a question states too: "can I bring my dog Bo"."""

_ASKS_FOR_MINE = re.compile(
    r"(?:what|who|where|when)(?:['’]s|\s++(?:is|are|was|were))\s++(?:my|our)\b"
    r"|(?:do|did|can|could)\s++you\s++(?:still\s++)?+(?:know|remember|recall|tell\s++me)\s++(?:my|our)\b"
    r"|[我咱俺]们?的[一-鿿]{1,8}(?:什么|谁|哪|几|多少)",
    re.IGNORECASE,
)
"""A question for something of the speaker; further things may follow it."""

_MINE = re.compile(
    r"(?:my|our)(?:\s++(?!(?:is|are|was|were|has|have|had|will|can)\b|\w{1,20}ed\b|(?-i:[A-Z]))[\w'’-]++){1,2}+\W*+\Z"
    r"|[我咱俺]们?的(?:(?![是有在了叫要会想死])[一-鿿]){1,5}+\W*+\Z",
    re.IGNORECASE,
)
"""A thing of the speaker, without a verb or a name."""

_ASKS_UNMARKED = re.compile(
    r"tell\s++me\s++(?:again\s++)?(?:what|where|when|who|how|why|which|everything|about)\b"
    r"|[^不没忘]{0,20}[叫姓是在爱欢](?:什么|哪)[一-鿿]{1,3}\W*+\Z",
    re.IGNORECASE,
)
"""Questions without a mark that `asks` does not recognise."""

_CLOSING = " \t\n\"'”’」』)）!！~…"
"""Characters that may follow a question mark at the end of a text."""

MIN_PLAN = 4
"""Characters of a plan for which a Chinese clause asks permission."""

MAX_REMARK = 10
"""Characters behind a Chinese clause that asks: "what's my number, the form wants it"."""


def ends_with_question(text: str) -> bool:
    """Return whether the last sentence of a text ends with a question mark."""
    return text.rstrip(_CLOSING).endswith(("?", "？"))


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    if ends_with_question(sentence) or _OPENS_ENGLISH.match(sentence.lstrip()):
        return True
    if sentence.isascii():
        return False
    clause, _, remark = sentence.strip(" \t\n。！!").replace(",", "，").partition("，")
    return len(remark) <= MAX_REMARK and _ENDS_CHINESE.search(clause[-8:]) is not None


def split_questions(text: str) -> tuple[list[str], list[str]]:
    """Return the questions and the other sentences of a text, without those that have no letter or digit."""
    questions: list[str] = []
    others: list[str] = []
    for sentence in sentences_of(text):
        if any(character.isalnum() for character in sentence):
            (questions if asks(sentence) else others).append(sentence)
    return questions, others


def only_asks(text: str) -> bool:
    """Return whether every clause of a text asks. A clause about the speaker does so only by its words.

    This is stricter than `asks`: "I am vegan, what can I eat?" also states something.
    """
    has_clauses = is_list = False
    for sentence in sentences_of(text):
        is_question = ends_with_question(sentence)
        for part in _CLAUSE_ENDS.split(sentence):
            clause = part[_begin(part) :].strip()
            if not clause:
                continue
            has_clauses = True
            if is_list and is_question and _MINE.match(clause):
                # "What is my name and my birthday?"
                continue
            if not _clause_asks(clause):
                return False
            is_list = _ASKS_FOR_MINE.match(clause) is not None
    return has_clauses or not any(map(str.isalnum, text))


def _begin(clause: str) -> int:
    courtesies = _COURTESIES.match(clause)
    return courtesies.end() if courtesies else 0


def _clause_asks(clause: str) -> bool:
    if not asks(clause) and not _ASKS_UNMARKED.match(clause):
        return False
    if _NAMES_MINE.search(clause):
        return False
    permission = _ASKS_PERMISSION.search(clause)
    if permission is not None:
        plan = clause[: permission.start()]
        return len(plan) < MIN_PLAN or "我" not in plan or _ASKS_WITHIN.search(plan) is not None
    return not _STATES.match(clause) or _ASKS_WITHIN.search(clause) is not None
