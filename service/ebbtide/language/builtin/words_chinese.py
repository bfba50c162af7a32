"""Chinese word lists from `data/`. Each list's file explains what the list is for."""

from __future__ import annotations

from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

PRONOUNS = word_list("chinese_pronouns")
SURNAMES = word_list("chinese_surnames")
COMPOUND_SURNAMES = word_list("chinese_compound_surnames")
VAGUE_NOUNS = word_list("chinese_vague_nouns")
TIME_FILLERS = word_list("chinese_time_fillers")
OBJECT_VERBS = word_list("chinese_object_verbs")
OBJECT_WHOLES = word_list("chinese_object_wholes")
NOUN_ENDINGS = word_list("chinese_noun_endings")
ORGANISATIONS = ordered_list("chinese_organisations")
ATTRIBUTIVE_VERBS = word_list("chinese_attributive_verbs")
ACTIVITIES = word_list("chinese_activities")
WEAK_NOUNS = word_list("chinese_weak_nouns")
HONORIFICS = word_list("chinese_honorifics")
KIN = word_list("chinese_kin")
NEGATIONS = word_list("chinese_negations")
OPENERS = word_list("chinese_openers")
CONTRASTS: tuple[str, ...] = ordered_list("chinese_contrasts")
CONDITIONS: tuple[str, ...] = ordered_list("chinese_conditions")
ADVERBS = word_list("chinese_adverbs")
VERBS = word_list("chinese_verbs")
NO_END = word_list("chinese_no_end")
NO_START = word_list("chinese_no_start")
ADDED_WORDS = ordered_list("chinese_added_words")
# Words that are never keywords, whatever the tagger says.
STOPPED = PRONOUNS | VAGUE_NOUNS | TIME_FILLERS
# The tagger's tags of nouns, proper names, places and verbal nouns.
NOUN_TAGS = words("n nr nr1 nr2 nrj nrf nrt nrfg ns nsf nt nz nw nl ng vn j an s")
