"""Whether a user asks to remember something in words (memory model, section 4, step 3c).

An imperative is a request: “remember that”, “don't forget”, 记住, 别忘了. A report or a failure of memory is none: “I
remember that film”, “I can't remember that”, 没记住, 记不住. A denial revokes every request of the same memory: “no
need to remember”, 不用记.
"""

from __future__ import annotations

import re

_DO_NOT = "(?<![特分个個区區告离離级級类類性各])[别別]"
"""The 别 of a prohibition, not that of 特别 or 分别."""

_REQUESTS = re.compile(
    rf"[记記][住牢]|请[记記]得|請記得|{_DO_NOT}忘|勿忘|不要忘"
    r"|\bremember (?:that|this)\b|\bremember:|\bplease remember\b|\bnever forget\b|\b(?:don't|do not) forget\b"
)
_DENIALS = re.compile(
    rf"(?:不用|不必|不需要?|[无無]需|[没沒]必要|用不着|{_DO_NOT}|不要)(?:[帮幫给給替]我)?[记記](?![得错錯混])"
    r"|\bno need to remember\b|\b(?:don't|do not) (?:need|have|bother) to remember\b"
)
_ADVERBS = r"(?:(?:really|even|quite|ever|always|clearly|exactly|actually|now|just|still|never) ){0,2}"
_NO_REQUESTS = re.compile(
    r"(?:[没沒]有?|[没沒未]能|未|[无無]法|不能|不[会會])(?:完全|真正|再)?[记記][住牢]|[记記]不[住牢]"
    r"|(?<![帮幫给給替为為让讓请請])(?:[我他她][们們]?|大家)(?:已[经經]|都|就|也|才|[终終]于|早就)?[记記][住牢]"
    r"|\b(?:can't|cannot|can not|couldn't|could not|don't|do not|didn't|did not|doesn't|does not|won't|wouldn't"
    rf"|hardly|barely|(?:do|did|don't|didn't) you) {_ADVERBS}remember\b"
    r"|\b(?:unable|fail|fails|failed|hard|difficult|impossible|struggle|struggling|tried|trying) to remember\b"
    rf"|\b(?:i|we|he|she|they)(?:'ll|'d)?(?: (?:will|would|can|could|do|did))? {_ADVERBS}"
    r"(?:remember|(?:don't |do not )?forget)\b"
)
"""Reports and failures of memory, and denials of forgetting."""


def asks_to_remember(content: str) -> bool:
    """Return whether a memory asks to be remembered."""
    text = " ".join(content.casefold().replace("’", "'").split())
    if not _REQUESTS.search(text) or _DENIALS.search(text):
        return False
    return _REQUESTS.search(_NO_REQUESTS.sub(" ", text)) is not None
