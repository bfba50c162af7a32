"""Checks of the objects of English forms of words: a place, a profession, a name, a food and so on."""

from __future__ import annotations

import re
from typing import Final

from ebbtide.language.builtin.forms import Check
from ebbtide.language.builtin.word_lists import word_list, words
from ebbtide.language.builtin.words_english import VERBS

MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_COUNT: Final = r"(?:two|three|four|five|six|\d{1,3})"
TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|tmrw|tmr|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|next (?:week|month|year|weekend|spring|summer|autumn|fall|winter)"
    r"|this (?:week|weekend|evening|afternoon|morning|month)"
    rf"|last (?:night|week|month|year|weekend|spring|summer|autumn|fall|winter|{MONTH})"
    rf"|in (?:{MONTH}|(?:19|20)\d\d|{_COUNT} (?:days|weeks|months))|{MONTH} \d{{1,2}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}|the \d{{1,2}}(?:st|nd|rd|th)|at \d{{1,2}}(?::\d\d)?(?: ?[ap]m)?"
    rf"|{_COUNT} (?:days|weeks|months|years) ago|a (?:week|month|year|day) ago|by (?:{MONTH}|\d))\b"
)
"""Words that state a time."""

PRONOUN: Final = re.compile(
    r"\b(?:i|me|mine|you|your|yours|he|him|his|she|her|hers|it|its|they|them|their|this|that|these|those|there|here"
    r"|what|which|who|how|something|anything|everything|nothing|neither|someone|anyone|everyone|nobody|one|ones|lot|bit"
    r"|stuff|thing|things"
    r"|same|such|both|idea|way|much|more|less|being|having|doing|getting|going|us|our|we|myself)\b"
)
"""Words by which an object says nothing without its context."""
_EVENT_PRONOUN: Final = re.compile(
    r"\b(?:i|me|you|your|he|him|his|she|hers|it|its|they|them|their|that|these|those|there|here|what|which|who|how"
    r"|this(?! (?:morning|week|month|year|afternoon|evening|weekend|summer|spring))|something|anything|everything"
    r"|someone|thing|things|stuff|like|when|while|because|if|would|will|not|never|bed|sleep|fun|nuts|crazy)\b"
)
_WITHOUT_OBJECT: Final = re.compile(
    r"(?:start|mov|gett|hav|runn|finish|join)(?:ed|ing)"
    r" (?:a few|last|next|this|two|on \w{1,9}day|in|at|yesterday|tomorrow|today)\b"
)
_CHOICES: Final = re.compile(
    r"\b(?:option|version|choice|draft|suggestions?|answers?|reply|replies|first|second|third|latter|former|title|headline"
    r"|point|tone|phrasing|wording|plan [a-z])\b"
)
"""Words for a part of the present conversation."""
_JOKES: Final = re.compile(
    r"\b(?:bullshit|bs|stupid\w{0,8}|people|work|working|mondays?|idiots?|drama|effort|fun|money|exercise|mornings|nonsense"
    r"|commitment|vibes|bad|early|cooking"
    r"|cleaning|housework|meetings|boredom|winter|food|skin|seasonal|new|lies|liars|humans|adulting|responsibilit\w{1,5})\b"
)
NO_ITEM: Final = re.compile(
    r"(?:nothing|nobody|none|neither|nowhere|else|etc|i|im|ive|we|you|he|she|it|they|my|our|your|his|her|the|this|that|there|then|so|also|not|never|always|want"
    r"|need|have|am|is|are|was|will|would|can|could|don|please|just|what|how|any|no|it's|i'm|i've|i'd|i'll)(?:'|\b)"
)
"""Words that begin a clause rather than an item of a list or a name."""

_PROFESSIONS: Final = word_list("english_professions")
_VAGUE_PROFESSIONS: Final = word_list("english_professions_vague")
_LANGUAGES: Final = word_list("english_languages")
_PLACES: Final = word_list("english_places")
_REGIONS: Final = word_list("english_regions")
_NO_PLACES: Final = word_list("english_no_places")
_HEALTH_ADJECTIVES: Final = word_list("english_health_adjectives")
_MEDICINES: Final = word_list("english_medicines")
_CARS: Final = word_list("english_cars")
ANIMALS: Final = word_list("english_animals")
_PASTIMES: Final = word_list("english_pastimes")
_STUDIES: Final = word_list("english_studies") | word_list("english_study_phrases")
_DATE_WORDS: Final = word_list("english_months") | word_list("english_weekdays")
_TRAITS: Final = word_list("english_traits")
_FIRMS: Final = word_list("english_firms")
_NO_FOOD: Final = word_list("english_no_food")
_SCHOOLS: Final = words(
    "university uni college school academy oxford cambridge harvard yale stanford mit trinity"
)
_LOOSE_ENDS: Final = words(
    "like just really so too very back up out off today tonight enough to than if my best most together lately itself"
    " right then there"
)
_PLANNED: Final = words("to a an the my our back home with lunch dinner surgery married in")
"""Words after "having", "going" and so on that begin a plan: "running late" is none."""
_NEW_JOB: Final = re.compile(r"^starting (?:(?:work )?at (?=[A-Z])|as (?=an? ))")
"""The words before an employer or a job to come: "starting at Acme in March"."""
_NO_DUTY: Final = re.compile(
    r"(?:know|see|think|find out|hear|understand|be|sleep|go|stop|talk|say|admit|agree|ask|tell|have|wait|wonder"
    r"|confess|feel|eat)\b"
)
_AND: Final = re.compile(r",? and ")
_AGO: Final = re.compile(r"\b(?:yesterday|last|ago)\b")
_BAD_DAY: Final = re.compile(
    r"having an? (?:\w{1,24} )?(?:bad|good|great|nice|rough|hard|busy|lazy|weird|terrible|lovely|day|breakdown)\b"
)
_COUNTED: Final = re.compile(
    r"(?:half|one|two|three|four|five|six|some|few|a few|several|\d{1,5})\b(?! ?m?c?g\b| ?ml\b)"
)
"""A number of doses, which belongs to an occasion."""
_NEW_DIETS: Final = words("new strict healthy different special better balanced crazy good bad")


def fold(said: str) -> str:
    """Return a text in small letters, with plain apostrophes."""
    return said.casefold().replace("’", "'")


def _count(said: str) -> int:
    return said.count(" ") + 1


_SMALL: Final = words("of the de la le du del da van von y and & am an sur on upon")


def _is_capitalised(said: str) -> bool:
    words = said.removeprefix("the ").split(" ")
    return all(word[:1].isupper() or word[:1].isdigit() or word in _SMALL for word in words) and (
        words[0][:1].isupper() and words[-1] not in _SMALL
    )


def _is_place(said: str) -> bool:
    folded = fold(said)
    if folded in _PLACES or folded.removeprefix("the ") in _PLACES:
        return True
    first = folded.split(" ")[0]
    return (
        _is_capitalised(said) and first not in _NO_PLACES and folded not in _DATE_WORDS and _count(said) <= 4
    )


def is_region(said: str) -> bool:
    """Whether a text after a place and a comma says where the place is."""
    return fold(said) in _PLACES or fold(said) in _REGIONS


def _is_employer(said: str) -> bool:
    folded = fold(said)
    if folded.startswith(("a ", "an ")):
        return folded.split(" ")[-1] in _FIRMS
    return _is_capitalised(said) and folded not in _DATE_WORDS and first_word(folded) not in _LANGUAGES


def _is_new_employer(said: str) -> bool:
    """Whether a text after "started at" is an employer: no place, where a journey starts, and no school."""
    return _is_employer(said) and fold(said) not in _PLACES and _SCHOOLS.isdisjoint(fold(said).split(" "))


def first_word(text: str) -> str:
    """Return the first word of a text."""
    return text.split(" ", 1)[0]


def _is_profession(said: str) -> bool:
    folded = fold(said)
    last = folded.split(" ")[-1]
    if _count(said) > 4 or not _TRAITS.isdisjoint(folded.split(" ")):
        return False
    return last in _PROFESSIONS or (_count(said) > 1 and last in _VAGUE_PROFESSIONS)


def is_name(said: str) -> bool:
    """Whether a text may be the name of a person or a pet."""
    folded = fold(said)
    words = said.split(" ")
    return (
        _count(said) <= 3
        and all(word[:1].isupper() for word in words)
        and not any(word.isupper() and len(word) > 3 for word in words)
        and first_word(folded) not in _DATE_WORDS | _LANGUAGES
        and first_word(folded) not in VERBS
        and not NO_ITEM.match(folded)
    )


def _is_allergen(said: str) -> bool:
    folded = fold(said)
    return (
        _count(said) <= 3
        and not PRONOUN.search(folded)
        and not _JOKES.search(folded)
        and not folded.startswith("my ")
    )


def _is_liked(said: str) -> bool:
    folded = fold(said)
    return (
        _count(said) <= 4
        and not PRONOUN.search(folded)
        and not _CHOICES.search(folded)
        and not folded.startswith(
            ("the ", "to ", "my ", "all ", "also ", "not ", "a ", "an ", "when ", "where ", "every")
        )
        and folded.split(" ")[-1] not in _LOOSE_ENDS
        and not (_count(said) == 1 and folded.endswith("ly"))
        and folded not in ("people", "life", "love", "working", "him", "everybody")
    )


def _is_language(said: str) -> bool:
    return fold(said) in _LANGUAGES


def _is_food(said: str) -> bool:
    folded = fold(said)
    return (
        _count(said) <= 2
        and not PRONOUN.search(folded)
        and first_word(folded) not in _NO_FOOD
        and folded not in _NO_FOOD
    )


def _is_diet(said: str) -> bool:
    folded = fold(said)
    return first_word(folded) not in _NEW_DIETS


def _is_health_adjective(said: str) -> bool:
    return fold(said) in _HEALTH_ADJECTIVES


def _is_medicine(said: str) -> bool:
    folded = fold(said)
    return (
        _count(said) <= 4
        and not _COUNTED.match(folded)
        and any(word in _MEDICINES for word in folded.split(" "))
    )


def _is_car(said: str) -> bool:
    folded = fold(said)
    return (
        _count(said) <= 5 and any(word in _CARS for word in folded.split(" ")) and not PRONOUN.search(folded)
    )


def is_pet(said: str) -> bool:
    """Whether a text with a number names one or two kinds of pets."""
    folded = fold(said)
    parts = [part.split(" ")[-1] for part in _AND.split(folded)]
    return all(part in ANIMALS or part.removesuffix("s") in ANIMALS or part == "puppies" for part in parts)


def _is_pastime(said: str) -> bool:
    return fold(said).removeprefix("the ") in _PASTIMES


def _is_study(said: str) -> bool:
    return fold(said) in _STUDIES


def _is_school(said: str) -> bool:
    return _is_capitalised(said) and fold(said) not in _DATE_WORDS


def _is_age(said: str) -> bool:
    return 1 <= int(said) <= 110


def _is_adult_age(said: str) -> bool:
    return 13 <= int(said) <= 99


def _is_any(said: str) -> bool:
    return True


def _is_event(said: str) -> bool:
    folded = fold(said)
    return 2 <= _count(said) <= 12 and not _EVENT_PRONOUN.search(folded) and not _WITHOUT_OBJECT.match(folded)


def _is_duty(said: str) -> bool:
    return _is_timed(said) and not _NO_DUTY.match(fold(said)) and not _AGO.search(fold(said))


def _is_timed(said: str) -> bool:
    return _is_event(said) and TIME.search(fold(said)) is not None


def _is_plan(said: str) -> bool:
    said = _NEW_JOB.sub("starting ", said)
    folded = fold(said)
    second = said.split(" ")[1]
    return (
        _is_timed(said)
        and not _BAD_DAY.match(folded)
        and not _AGO.search(folded)
        and (second[:1].isupper() or second[:1].isdigit() or second in _PLANNED)
    )


CHECKS: Final[dict[str, Check]] = {
    "place": _is_place,
    "employer": _is_employer,
    "new_employer": _is_new_employer,
    "profession": _is_profession,
    "name": is_name,
    "allergen": _is_allergen,
    "liked": _is_liked,
    "language": _is_language,
    "food": _is_food,
    "diet": _is_diet,
    "health_adjective": _is_health_adjective,
    "medicine": _is_medicine,
    "car": _is_car,
    "pet": is_pet,
    "pastime": _is_pastime,
    "study": _is_study,
    "school": _is_school,
    "age": _is_age,
    "adult_age": _is_adult_age,
    "any": _is_any,
    "event": _is_event,
    "timed": _is_timed,
    "duty": _is_duty,
    "plan": _is_plan,
}
"""The checks that the tables of forms name."""
