"""English word lists from `data/`, and the verb forms derived from them.

A word that is in no list counts as a noun. The lists are therefore long for verbs and adjectives and short for nouns.
Each list's file explains what the list is for.
"""

from __future__ import annotations

from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

DETERMINERS = word_list("english_determiners")
POSSESSIVES = word_list("english_possessives")
SUBJECTS = word_list("english_subjects")
PRONOUNS = SUBJECTS | word_list("english_pronouns")
AUXILIARIES = word_list("english_auxiliaries")
BE = word_list("english_be")
MODALS = word_list("english_modals")
PREPOSITIONS = word_list("english_prepositions")
CONJUNCTIONS = word_list("english_conjunctions")
ADVERBS = word_list("english_adverbs")
ADJECTIVES = word_list("english_adjectives")
WEAK_NOUNS = word_list("english_weak_nouns")
VAGUE_NOUNS = word_list("english_vague_nouns")
EMPTY_ALONE = word_list("english_empty_alone")
MODEST = word_list("english_modest")
TOPICAL = word_list("english_topical")
TITLES = word_list("english_titles")
MONTHS = word_list("english_months")
WEEKDAYS = word_list("english_weekdays")
PERSONS = word_list("english_persons")
_VERBS = ordered_list("english_verbs")
NOUN_VERBS = word_list("english_noun_verbs")
MOSTLY_NOUNS = word_list("english_mostly_nouns")
_IRREGULAR = ordered_list("english_irregular")


def _inflect(verb: str) -> tuple[str, str, str]:
    """Return the regular forms in -s, -ed and -ing."""
    vowels = "aeiou"
    if verb.endswith("ee"):
        return verb + "s", verb + "d", verb + "ing"
    if verb.endswith("e"):
        return verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in vowels:
        return verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    third = verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")
    short = len(verb) <= 4 and verb[-1] not in "wxy" + vowels and verb[-2] in vowels
    if (short and (len(verb) < 3 or verb[-3] not in vowels)) or verb in _DOUBLING:
        return third, verb + verb[-1] + "ed", verb + verb[-1] + "ing"
    return third, verb + "ed", verb + "ing"


_DOUBLING = word_list("english_doubling_verbs")
_FORMS = {verb: _inflect(verb) for verb in _VERBS}
# Every form in -ing of the listed verbs.
GERUNDS = frozenset(forms[2] for forms in _FORMS.values())
# Verb forms that are never nouns.
VERBS = frozenset(
    form
    for verb, forms in _FORMS.items()
    for form in ((verb, *forms[:2]) if verb not in NOUN_VERBS else (forms[1],))
) | frozenset(_IRREGULAR) - words("left lead lay wound bit bore spread drunk")
# Forms that are nouns or verbs, depending on the context.
AMBIGUOUS = NOUN_VERBS | frozenset(forms[0] for verb, forms in _FORMS.items() if verb in NOUN_VERBS)
# Past forms that follow a subject. The listed forms are also present forms, or follow an auxiliary.
PASTS = frozenset(_IRREGULAR) - words(
    "am is are has does being been done gone taken got seen let cut put set read hit hurt quit shut spread bet beat lit"
)
ACTIVITY_GERUNDS = word_list("english_activity_gerunds")
PURSUING = word_list("english_pursuing")
INFINITIVE_HEADS = word_list("english_infinitive_heads")
BUSY_GERUNDS = word_list("english_busy_gerunds")
TRUE_NOUNS = word_list("english_true_nouns")
ABBREVIATIONS = word_list("english_abbreviations")
CLOSING_ABBREVIATIONS = word_list("english_closing_abbreviations")
NEGATIONS = word_list("english_negations")
CONTRASTS = ordered_list("english_contrasts")
CONDITIONS = ordered_list("english_conditions")
OPENERS = word_list("english_openers")
DROPPABLE = word_list("english_droppable")


def is_past(word: str) -> bool:
    """Return whether a word after a subject is a past form."""
    lower = word.casefold()
    return lower in PASTS or (lower.endswith("ed") and len(lower) > 3)


FUNCTION_WORDS = PRONOUNS | DETERMINERS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | ADVERBS
"""Words without content of their own. They may begin a sentence with a capital and are no names."""

# Words that say nothing alone.
EMPTY_WORDS = PRONOUNS | DETERMINERS | POSSESSIVES | AUXILIARIES | MODALS | PREPOSITIONS | CONJUNCTIONS
NO_END = (
    DETERMINERS
    | POSSESSIVES
    | PREPOSITIONS
    | (CONJUNCTIONS - {"etc", "also", "instead", "however"})
    | AUXILIARIES
    | word_list("english_no_end")
)
