"""Join short conversations into a long one between the same two people.

An agent often remembers months of talk between two people. The speaker and the conversation then distinguish few
passages. The judged conversations of this project have only 60 to 120 turns each. Joined, they resemble a long one:
their main speakers get the same two names, in the talk and in the questions, and their sessions follow each other in
time. Statements of different conversations may contradict each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.recall_data import Corpus, together

NAMES = ("Nora", "Daniel")
"""The names that replace those of the two main speakers."""

JOINED = "joined"
"""Name of the set of joined conversations."""

ASSISTANT = "Assistant"


def can_be_joined(corpus: Corpus) -> bool:
    """Return whether a conversation is in English and between people."""
    return not corpus.is_chinese and all(turn.speaker != ASSISTANT for turn in corpus.turns)


def joined(corpora: Sequence[Corpus]) -> Corpus:
    """Return conversations as a single one between two people."""
    whole = together([_renamed(corpus) for corpus in corpora])
    sessions = sorted(whole.sessions.values(), key=lambda said: said[0].timestamp_ms or 0)
    return replace(whole, set_name=JOINED, turns=tuple(turn for said in sessions for turn in said))


def _renamed(corpus: Corpus) -> Corpus:
    """Return a conversation with `NAMES` for the two main speakers, including their last names alone."""
    main = [speaker for speaker, _ in Counter(turn.speaker for turn in corpus.turns).most_common(2)]
    names = {form: name for old, name in zip(main, NAMES, strict=True) for form in (old, old.split()[-1])}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\b")

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: names[match[0]], text)

    turns = [
        replace(turn, speaker=names.get(turn.speaker, turn.speaker), text=renamed(turn.text))
        for turn in corpus.turns
    ]
    questions = [replace(question, text=renamed(question.text)) for question in corpus.questions]
    return replace(corpus, turns=tuple(turns), questions=tuple(questions))
