"""Facts that an English sentence states about its speaker, or about a relative of the speaker.

A sentence is cut into clauses. A clause gives a fact if it begins with its subject, and one form of words matches it up
to its end; only known endings, such as "with my brother" or "these days", may follow the object.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from ebbtide.language.builtin.english_values import (
    ANIMALS,
    CHECKS,
    MONTH,
    NO_ITEM,
    PRONOUN,
    TIME,
    fold,
    is_name,
    is_pet,
    is_region,
)
from ebbtide.language.builtin.finding import Finding
from ebbtide.language.builtin.forms import Check, object_of, read_forms
from ebbtide.language.builtin.word_lists import ordered_list
from ebbtide.language.builtin.words_english import VERBS


def _any_of(name: str) -> str:
    return "|".join(ordered_list(name))


_GUARDS: Final = re.compile(rf"(?<![\w'])(?:{_any_of('english_fact_guards')})(?![\w'])")
_ASKING: Final = re.compile(rf"(?:{_any_of('english_asking')})\b")
_TAG: Final = re.compile(
    r"(?:right|correct|yes|no|yeah|ok|okay|huh|eh|innit|or not|or what"
    r"|(?:is|are|am|was|were|do|does|did|have|has|had|can|could|would|should|wo|ai|ca)(?:n't|nt)?"
    r"(?: (?:not|i|you|he|she|it|we|they|there)){1,2})\s*\?*"
)
"""A question at the end that asks whether the sentence is true."""
_SEPARATOR: Final = re.compile(
    r"(?:[,;()…—–\n]|:(?!\d| ?\+?\d[\d -]{3,18}\d\b| ?[\w.+-]{1,40}@))+\s{0,3}|\s(?:-|–|—)\s"
    r"|\s(?:and(?! raised)|but|because|bc|cause|cos|so|although|though|while|plus|yet)\s"
)
_LEAD: Final = re.compile(rf"(?:(?:{_any_of('english_fact_leads')})[ ,:!.-]{{1,3}}){{0,4}}+")

_WORD: Final = r"[\w'.&+-]{1,24}"
_TAIL_WORDS: Final = rf"(?: (?:{_any_of('english_tail_words')})){{0,3}}+"
_TAIL: Final = rf"{_TAIL_WORDS}(?: (?:{_any_of('english_adjunct_words')})\b[^\n]{{0,200}})?+$"
_BARE_TAIL: Final = rf"{_TAIL_WORDS}$"
_DATE: Final = (
    rf"(?P<o>(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}(?:,? (?:19|20)\d\d)?"
    rf"|{MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:19|20)\d\d)?"
    r"|\d{1,2}[./]\d{1,2}(?:[./](?:19|20)?\d\d)?|(?:19|20)\d\d-\d\d-\d\d)"
)
_PARTS: Final = {
    "WORD": _WORD,
    "TAIL_WORDS": _TAIL_WORDS,
    "TAIL": _TAIL,
    "BARE_TAIL": _BARE_TAIL,
    "ADVERB": rf"(?: (?:{_any_of('english_clause_adverbs')})){{0,3}}+",
    "BE": r"(?:'m|m| am|'re| are|'s| is)",
    "HAVE": r"(?: have(?: got)?|'ve got|ve got| got| own|'s got| has(?: got)?| owns)",
    "MY_NEW": (
        r"(?:(?:(?:here's|here is|this is|that's) )?my (?:new )?|i(?: have| got|'ve| have got|'ve got)(?: just)? a new "
        r"|i(?:'ve| have)?(?: just)? changed my )"
    ),
    "IS_NOW": r"(?::|(?: is|'s)(?: now)?:?|(?: has| was|'s)?(?: just| now)? changed to| to)",
    "PERFECT": r"(?:'ve|ve| have|'s| has)",
    "NOT": r"(?: don't| do not| dont| doesn't| does not| doesnt| no longer| never)",
    "NAME_OBJECT": rf"(?P<o>[^\W_]{_WORD}(?: {_WORD}){{0,4}}?)",
    "OBJECT": rf"(?P<o>{_WORD}(?: {_WORD}){{0,5}}?)",
    "AMOUNT": r"\d{1,4}(?:\.\d{1,2})? ?(?:mg|mcg|g|ml|milligrams?|micrograms?|units?)",
    "COUNT": (
        r"(?:half|an?|one|two|three|four|\d)(?: an?)?(?: (?:tablets?|pills?|capsules?|drops?|puffs?|doses?) of)? "
        r"(?=[\w-]{4,24}(?: tablets?)?$|[^\n]{4,60} (?:daily|every|each|(?:a|per) (?:day|night|week)|at night"
        r"|in the (?:morning|evening)|(?:with|before|after) (?:breakfast|lunch|dinner|meals|food))\b)"
    ),
    "MONTH": MONTH,
    "DATE": _DATE,
    "HEALTH": "|".join(sorted(ordered_list("english_health"), key=len, reverse=True)),
    "EVENT_VERB": _any_of("english_event_verbs"),
    "TIMED_EVENT_VERB": _any_of("english_timed_event_verbs"),
    "PLAN": _any_of("english_plan_gerunds"),
    "APPOINTMENT": _any_of("english_appointments"),
}
_FORMS: Final = read_forms("english_forms", _PARTS, CHECKS)
_OWN_FORMS: Final = read_forms("english_own_forms", _PARTS, CHECKS)

RELATIVES: Final = dict(line.rsplit(" ", 1) for line in ordered_list("english_relatives"))
"""From a word for a relative, a friend or a pet to the slot of the name."""
_RELATIVE: Final = "|".join(re.escape(word) for word in sorted(RELATIVES, key=len, reverse=True))
_CALLED: Final = {slot: word for word, slot in reversed(RELATIVES.items())}
"""One word for each slot, so that "my mom" and "my mum" are one person."""
_UNIQUE: Final = re.compile(
    r"partner|mother|father|son|daughter|(?:elder_|younger_)?(?:sister|brother)|boss"
    r"|(?:maternal_)?grand(?:mother|father)|(?:mother|father)_in_law"
)
"""The slots of relatives of whom facts are kept without a name."""
_NAME: Final = r"[^\W\d_][\w'-]{1,15}"

_SELF: Final = re.compile(r"(?:i|we)(?=[' ])|i(?=(?:m|ve) )")
_KIN: Final = re.compile(rf"(?:my|our) (?P<kin>{_RELATIVE})(?=[' ,])")
_KIN_NAME: Final = re.compile(rf"(?:,? (?P<name>{_NAME}),?)(?= |'s )")
_TIME_BEFORE: Final = re.compile(
    r"(?:yesterday|last (?:night|week|month|year|summer|spring|autumn|fall|winter|weekend|[a-z]{3,6}day)"
    r"|on [a-z]{3,6}day|this (?:morning|week|month|year)|in (?:19|20)\d\d),? $"
)
"""A time right before the subject."""

_APPOINTMENT: Final = re.compile(
    r"my (?:flight|exam|appointment|interview|surgery|thesis defen[cs]e|wedding|contract|lease|driving test|check-?up"
    r"|presentation|operation)(?: to [\w ]{3,20}?| with [\w. ]{3,20}?)? (?:is|ends|expires|starts)(?: on| in)?"
    r" [^\n]{3,50}$"
)
_THING: Final = (
    r"(?P<thing>(?!thing|part|one\b|way|person|kind|type|of\b)[a-z]{3,16}(?: (?!is\b|are\b)[a-z]{3,12})?)"
)
_FAVOURITE: Final = re.compile(
    rf"(?:my|our) (?:new )?fav(?:ou?rite)? {_THING}(?: is| are|'s)"
    r"(?: (?:probably|still|always|definitely|currently|now))?"
    rf" (?P<o>(?:the |a )?{_WORD}(?: {_WORD}){{0,4}}?){_BARE_TAIL}"
)
_FAVOURITE_BEFORE: Final = re.compile(
    rf"(?P<o>{_WORD}(?: {_WORD}){{0,2}}) (?:is|are) my fav(?:ou?rite)? {_THING}{_BARE_TAIL}"
)
_KIN_CALLED: Final = re.compile(
    rf"(?:my|our) (?P<kin>{_RELATIVE}|baby)(?:'s name(?: is|'s)|(?: is|'s) (?:called|named))"
    rf" (?P<o>{_WORD}(?: {_WORD})?){_BARE_TAIL}"
)
_IS_MY_KIN: Final = re.compile(rf"(?P<o>{_NAME}(?: [\w'-]{{2,15}})?) is my (?P<kin>{_RELATIVE}){_BARE_TAIL}")
_KIN_APPOSITION: Final = re.compile(
    rf"(?<![\w'])(?:my|our) (?P<kin>{_RELATIVE})(?:,? (?:called |named )?)"
    r"(?P<o>[^\W\d_][\w-]{1,15})(?![\w-])(?P<after>,?)"
)
_NAMED_FIRST: Final = re.compile(
    rf"(?P<o>{_NAME}(?: [\w'-]{{2,15}})?), (?:my|our) (?P<kin>{_RELATIVE})(?:,(?= (?!and\b|or\b))|[.!]?$)"
)
"""A name and then the relative: "Clara, my sister, lives in Porto". Without the comma, Clara may be spoken to."""
_PET_CALLED: Final = re.compile(
    r"(?<![\w'])(?:have|got|adopted|'ve got|bought|rescued) an? (?P<kin>(?:[\w-]{3,12} ){0,2}?[\w-]{3,12}),?"
    rf" (?:called|named|whose name is|he's called|she's called) (?P<o>{_NAME})(?![\w-])"
)
_PLURAL: Final = {
    "kids": "child",
    "children": "child",
    "sons": "son",
    "daughters": "daughter",
    "cats": "pet",
    "dogs": "pet",
    "sisters": "sister",
    "brothers": "brother",
}
_MANY_CALLED: Final = re.compile(
    rf"(?:(?:have|'ve got|got) (?:two|three|four|five|\d) (?P<kin>{'|'.join(_PLURAL)})(?:,|:| called| named)"
    rf"|(?:my|our) (?P<kin2>{'|'.join(_PLURAL)}) are(?: called| named)?)"
    rf" (?P<names>{_NAME}(?:, {_NAME}){{0,4}},? and {_NAME})\s{{0,2}}(?:[.,!?;]|$)"
)
_MEANT_NOT: Final = re.compile(
    r"(?:(?:sorry|oops|wait|correction|my mistake|i misspoke)[ ,:.!-]{1,3}){0,3}+"
    r"(?:(?<=[ ,:.!-])(?:i meant|i mean|it's|it is|make that) |i meant (?:to say )?|(?<=[ ,:.!-])(?!i\b))"
    rf"(?P<o>{_WORD}(?: {_WORD}){{0,3}}?,? not {_WORD}(?: {_WORD}){{0,3}})$"
)
"""A correction with both values: "Sorry, I meant Leicester, not Leeds"."""
_ENDED: Final = (
    r"(?:fell through|(?:has|have) fallen through"
    r"|(?:is|was|got|has been|is now) (?:off|cancell?ed|called off|scrapped))"
)
_CALLED_OFF: Final = re.compile(
    rf"(?:the|my|our) (?P<o>[a-z-]{{3,14}}(?: (?:to|in|with|at|for) {_WORD}(?: {_WORD}){{0,2}}?)?) {_ENDED}{_BARE_TAIL}"
    r"|(?:i'm|i am|we're|we are) (?:no longer|not) "
    r"(?P<o2>(?:moving|going|flying|travell?ing|relocating|joining|starting) [^\n]{2,40}?)(?: any ?more| after all|$)"
)
"""A plan that will not happen: "the move to Oslo fell through", "I'm not moving to Oslo after all"."""
_CANCELLED: Final = re.compile(
    rf"(?:i|we)(?:'ve| have)?(?: just)? (?:cancell?ed|called off) (?:the|my|our) (?P<o>[a-z-]{{3,14}}"
    rf"(?: (?:to|in|with|at|for) {_WORD}(?: {_WORD}){{0,2}}?)?){_BARE_TAIL}"
)
_DIED: Final = re.compile(
    rf"(?:(?:my|our) )?(?:(?P<kin>{'|'.join(sorted(ANIMALS))}) )?(?P<o>{_NAME})(?: (?:has|just|sadly|recently)){{0,2}}"
    r" (?:died|passed away|was put (?:down|to sleep)|had to be put (?:down|to sleep))\b"
)
_AMOUNT: Final = r"(?:an?|one|two|three|four|five|six|\d)"
_PETS: Final = re.compile(
    rf"(?:i|we)(?: have|'ve got|ve got| have got| own)(?: also| just)? (?P<o>{_AMOUNT} (?:[\w-]{{3,14}} ){{0,2}}?"
    rf"[\w-]{{3,14}}(?:,? and {_AMOUNT} [\w-]{{3,14}})?)"
    r"(?=\s{0,2}(?:[.,;:!?()]|$)| (?:and|but|because|so|who|that|which|called|named)\b)"
)
_KIN_BIRTHDAY: Final = re.compile(
    rf"(?:my )?(?P<kin>{_RELATIVE})'s (?:birthday|bday) is(?: on)?(?: the)? {_DATE}{_BARE_TAIL}"
)
_TASK: Final = r"(?P<o>[^\n?!;]{4,110})"
_REMINDER: Final = re.compile(
    r"(?:(?:can|could|will|would) you (?:please )?|please |pls |so |and |, |^)(?:remind me"
    r"(?: (?:on [a-z]{3,6}day|tomorrow|tonight|next week|at [\d:apm ]{1,8}|in [\w ]{3,12}))?"
    r"(?: to| that i (?:have|need) to)"
    rf"|don't let me forget to|don't forget to remind me to|set a reminder(?: for me)? to) {_TASK}"
)
_NOTE: Final = re.compile(rf"(?:set a reminder|reminder to self|reminder)\s?: ?{_TASK}")
_GREETED: Final = re.compile(
    r"(?:hi|hello|hey|hi there|hey there|good morning|good evening|greetings|bonjour)[ ,!.]{1,3}"
    rf"(?:i'm|i am|im|this is) (?P<o>{_NAME}(?: {_NAME})?)(?=\s{{0,2}}(?:[.,!;]| and | from |$))"
)
_NO_NAMES: Final = re.compile(
    r".{0,64}(?:ish|ese|[ae]an|ian|ch|muslim|catholic|jewish|hindu|sikh|greek|german|swiss|dutch|thai|czech|iraqi|israeli"
    r"|back|new|here)"
)
_BETWEEN_NAMES: Final = re.compile(r",? and |, ")
_MEANT: Final = re.compile(r"\s{0,2}[,(–—-]\s{0,2}(?:the(?! \w{2,12}er\b)|as in|meaning|i mean|not the)\b")
"""Words that say which of two things of one name is meant."""
_CORRECTED: Final = re.compile(r" but (?:only |just |really )?an?\b")
"""Words that say more exactly what a person is: a pilot, but a paraglider pilot."""
_REGION: Final = re.compile(
    r", (?P<more>[\w'.-]{2,20}(?: [\w'.-]{2,20}){0,2}?)(?=\s{0,2}(?:[.;!?)]|$|,(?! (?:and|or) )))"
)
_MARITAL: Final = re.compile(r"\b(?:married|divorced|engaged|single|widowed|separated|broke up|split up)\b")
_MARRIED_NEXT: Final = re.compile(r"(?:got married to|married) ")
"""A clause without its own subject, after one on the end of a partnership: I divorced Tom and married Ben."""
_WHEN: Final = (
    r"(?: (?:now|yesterday|today|recently|(?:last|this) [a-z]{3,8}"
    r"|(?:a|an|one|two|three|four|five|six|\d) (?:day|week|month)s? ago))?"
)
_PARTED: Final = re.compile(
    r"(?:(?:'ve| have)?(?: just| recently| finally)? (?:(?:got )?divorced|(?:split|broke|broken) up)"
    r"(?: with my (?:partner|girlfriend|boyfriend|husband|wife|fianc[ée]e?|gf|bf)| my (?:husband|wife))?"
    rf"{_WHEN}|(?:'m|m| am|'re| are) (?:now divorced|divorced now)){_BARE_TAIL}"
)
"""The end of a partnership without the name of the partner, not one of years ago."""
_NO_SUBJECT: Final = re.compile(
    r"(?:just |finally )?(?:started (?:working |a (?:new )?job |my new job )?at [^\n]{2,40} (?:today|yesterday"
    r"|on [a-z]{3,6}day|this (?:week|month|morning)|last (?:week|month|[a-z]{3,6}day))"
    r"|(?:got|landed) a (?:new )?(?:job|position|role) (?:at|with) )"
)
"""The beginning of a message without a subject, of which the speaker is the subject."""
_PERSON: Final = re.compile(rf"(?P<first>{_NAME})(?: (?P<second>{_NAME}))?(?=['\s])")
_PLACED: Final = frozenset(("residence", "hometown"))
_PAIRS: Final = re.compile(
    r" and (?:cheese|roll|chips|jelly|tonic|white|vinegar|pepper|breakfast|blues|bass|gravy|beans)\b"
)
"""The second half of what two words mean together, such as "mac and cheese"."""
_ITEM: Final = re.compile(
    r"(?P<by>,? (?:and|or) |, )(?P<item>[\w'-]{2,20}(?: [\w'-]{2,20}){0,2}?)(?=\s{0,2}(?:[,.!?;()]|$)| (?:and|or) )"
)
_QUALITY: Final = re.compile(
    r"\w{2,20}(?:ic|al|ern|ous|ive|ish|ese|ean|ian)|(?:old|new|hot|cold|red|black|white|short|long|big|small|sweet|dark"
    r"|early|indie|hard)"
)
"""A single word that only describes the noun of a later item: electronic and rock music."""
_GOES_ON: Final = re.compile(
    r", (?!(?:i|we|he|she|it|they|so|but|and|which|my|the) )[\w']{2,20}(?: [\w']{2,20}){0,2}(?:,| and )"
    r"| (?:and|plus) (?!(?:i|we|he|she|it|they|my|had|have|has|was|were|am|is|are|now|then|just|want|need|feel|felt"
    r"|loved?|can|could|will|got|it's|i'm|he's|she's|they're|we're|practi[cs]e|enjoyed|met|saw|went|found|started|made"
    r"|learned|really|never|there)\b)"
)
"""A continuation after an event: its words do not end with their clause."""


def findings(
    sentence: str, is_question: bool, *, is_first: bool = False, people: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield the facts of a sentence. Linear in its length.

    `is_first`: a message begins with it. `people` are the names of persons whom the speaker has named.
    """
    folded = fold(sentence)
    if len(folded) != len(sentence):
        return
    if match := _REMINDER.search(folded) or _NOTE.search(folded):
        value = _said(sentence, match).rstrip(" .,")
        begin = len(folded) - len(folded[match.start() :].lstrip(", "))
        yield Finding(begin, match.end(), "I", "reminder", value, "task", is_planned=True)
        return
    if "remind" in folded:
        return
    meant = None if is_question else _MEANT_NOT.match(folded.rstrip(" .!"))
    if meant and not PRONOUN.search(meant["o"]):
        yield Finding(0, meant.end(), "I", "correction", _said(sentence, meant))
        return
    is_guarded = _GUARDS.search(folded) is not None
    yield from _named_relatives(sentence, folded)
    first = _NAMED_FIRST.match(folded)
    if first and sentence[:1].isupper() and is_name(name := _said(sentence, first)):
        yield Finding(0, first.end("kin"), "I", RELATIVES[first["kin"]], name, "relation")
        if sentence[first.end() + 1 : first.end() + 2].islower() and not is_guarded and not is_question:
            end = next(_clauses(folded[first.end() :]), (0, 0))[1]
            if RELATIVES[first["kin"]] != "pet":
                yield from _predicates(sentence, folded, 0, first.end(), first.end() + end, name)
    if is_guarded:
        return
    yield from _named_pets(sentence, folded)
    clauses = list(_clauses(folded))
    if is_question:
        asked = next((at for at, clause in enumerate(clauses) if _ASKING.match(folded, *clause)), None)
        if not asked or _TAG.fullmatch(folded[slice(*clauses[-1])].strip()):
            return
        clauses = clauses[:asked]
    match = _GREETED.match(folded)
    if match and is_name(name := _said(sentence, match)) and not _NO_NAMES.fullmatch(name.casefold()):
        yield Finding(0, match.end(), "I", "name", name)
    ended: Finding | None = None
    for begin, end in clauses:
        if _ASKING.match(folded, begin, end):
            continue
        found = list(_in_clause(sentence, folded, begin, end, people))
        if is_first and begin == 0 and not found and _NO_SUBJECT.match(folded):
            # A form begins with the space after its subject.
            found = [
                one._replace(begin=one.begin - 1, end=one.end - 1)
                for one in _predicates(f" {sentence}", f" {folded}", 1, 0, end + 1, "I")
            ]
        if ended is not None and not found and _MARRIED_NEXT.match(folded, begin, end):
            found = list(_predicates(sentence, folded, begin, begin - 1, end, ended.subject))
        yield from found
        is_end = bool(found) and found[0].slot == "partner" and found[0].is_negated
        ended = found[0] if is_end and folded.startswith(" and ", end) else None


def asks_for_reminder(folded: str) -> bool:
    """Return whether a sentence in small letters asks to be reminded of something."""
    return (_REMINDER.search(folded) or _NOTE.search(folded)) is not None


def _said(sentence: str, match: re.Match[str], group: str = "o") -> str:
    return sentence[slice(*match.span(group))]


def _clauses(folded: str) -> Iterator[tuple[int, int]]:
    """Yield where clauses begin, after words that only lead to them, and where they end."""
    begin, length = 0, len(folded.rstrip(" .!?"))
    for start, end in (*(one.span() for one in _SEPARATOR.finditer(folded)), (length, length)):
        if start > length:
            break
        lead = _LEAD.match(folded, begin, start)
        if lead is not None and lead.end() < start:
            yield lead.end(), start
        begin = end


def _in_clause(
    sentence: str, folded: str, begin: int, end: int, people: Collection[str]
) -> Iterator[Finding]:
    if (match := _PETS.match(folded, begin)) and is_pet(value := _said(sentence, match)):
        yield Finding(begin, match.end(), "I", "pet", value)
        return
    for form in _OWN_FORMS:
        if (match := form.pattern.match(folded, begin, end)) and form.check(value := _said(sentence, match)):
            yield Finding(begin, end, "I", form.slot, value)
            return
    if match := _CALLED_OFF.match(folded, begin, end):
        start, stop = object_of(match)
        yield Finding(begin, end, "I", "cancellation", sentence[start:stop])
        return
    if match := _CANCELLED.match(folded, begin, end):  # an event too
        yield Finding(begin, end, "I", "cancellation", _said(sentence, match))
    if match := _DIED.match(folded, begin, end):
        yield Finding(begin, end, "I", "loss", _said(sentence, match), is_negated=True)
        return
    subject = _SELF.match(folded, begin, end)
    if subject is None:
        yield from _about_others(sentence, folded, begin, end, people)
        return
    before = _TIME_BEFORE.search(folded, max(0, begin - 16), begin)
    start = begin if before is None else before.start()
    yield from _predicates(sentence, folded, start, subject.end(), end, "I")
    if _PARTED.match(folded, subject.end(), end) and len({*_MARITAL.findall(folded)}) == 1:
        yield Finding(start, end, "I", "partner", "", is_negated=True)


def _about_others(
    sentence: str, folded: str, begin: int, end: int, people: Collection[str]
) -> Iterator[Finding]:
    if _APPOINTMENT.match(folded, begin, end):
        if TIME.search(folded, begin, end):
            value = sentence[begin:end].strip()
            yield Finding(begin, end, "I", "appointment", value, "task", is_planned=True)
        return
    for favourite in (_FAVOURITE, _FAVOURITE_BEFORE):
        match = favourite.match(folded, begin, end)
        if (
            match
            and not PRONOUN.search(match["o"])
            and match["thing"].split(" ")[-1] not in RELATIVES
            and not match["o"].startswith(("when ", "to ", "by ", "not "))
        ):
            thing = (
                match["thing"].removesuffix("s")
                if " are my " not in match[0] and " are " in match[0]
                else match["thing"]
            )
            yield Finding(begin, end, "I", f"favourite:{thing}", _said(sentence, match), "preference")
            return
    if match := _KIN_BIRTHDAY.match(folded, begin, end):
        yield Finding(begin, end, _relative(match), "birthday", _said(sentence, match))
        return
    for called in (_KIN_CALLED, _IS_MY_KIN):
        if match := called.match(folded, begin, end):
            if is_name(name := _said(sentence, match)):
                yield Finding(begin, end, "I", RELATIVES.get(match["kin"], "child"), name, "relation")
            return
    kin = _KIN.match(folded, begin, end)
    if kin is None:
        if (person := _PERSON.match(folded, begin, end)) and people:
            for last in ("second", "first"):
                name = sentence[begin : person.end(last)].removesuffix("'s").removesuffix("’s")
                if name in people:
                    yield from _predicates(sentence, folded, begin, begin + len(name), end, name)
                    return
        return
    if RELATIVES[kin["kin"]] == "pet":
        return
    named = _KIN_NAME.match(folded, kin.end(), end)
    name = _said(sentence, named, "name").removesuffix("'s").removesuffix("’s") if named else ""
    if named and name[:1].isupper() and is_name(name):
        yield from _predicates(sentence, folded, begin, named.end(), end, name)
    elif _UNIQUE.fullmatch(RELATIVES[kin["kin"]]):
        yield from _predicates(sentence, folded, begin, kin.end(), end, _relative(kin))


def _relative(match: re.Match[str]) -> str:
    return f"my {_CALLED[RELATIVES[match['kin']]]}"


def _predicates(sentence: str, folded: str, begin: int, at: int, end: int, subject: str) -> Iterator[Finding]:
    """Yield what the first form finds between the end of the subject, `at`, and the end of the clause."""
    for form in _FORMS:
        match = None if form.is_own and subject != "I" else form.pattern.match(folded, at, end)
        if match is None:
            continue
        start, stop = object_of(match)
        if (form.is_list and _PAIRS.match(folded, stop)) or (
            form.slot == "event" and _GOES_ON.match(folded, end)
        ):
            return
        if (form.slot == "likes" or form.slot in _PLACED) and _MEANT.match(folded, end):
            return
        if form.slot == "occupation" and _CORRECTED.match(folded, end):
            return
        if form.slot == "marital_status" and len({*_MARITAL.findall(folded)}) > 1:
            return
        values, until = [sentence[start:stop].rstrip(" .,")], end
        if form.is_list:
            values = values[0].split(" or ")
        if not all(form.check(value) for value in values):
            continue
        if form.is_list and stop == end:
            more, until = _more_items(sentence, folded, end, form.check)
            if more and " " in more[-1] and _QUALITY.fullmatch(fold(values[0])):
                return
            values += more
        region = _REGION.match(folded, end) if form.slot in _PLACED and stop == end else None
        if region and is_region(region["more"]):
            values, until = [sentence[start : region.end()]], region.end()
        for value in values:
            yield Finding(
                begin, until, subject, form.slot, value, form.kind, form.is_negated, form.is_planned
            )
        return


def _more_items(sentence: str, folded: str, at: int, check: Check) -> tuple[list[str], int]:
    """Return the further items of a list, and where it ends; none unless the last one follows "and" or "or"."""
    items: list[str] = []
    place = at
    while len(items) < 4 and (match := _ITEM.match(folded, place)):
        item = match["item"]
        if NO_ITEM.match(item) or item.split(" ")[0] in VERBS or not check(_said(sentence, match, "item")):
            break
        items.append(_said(sentence, match, "item"))
        place = match.end()
        if match["by"].strip(", "):
            return items, place
    return [], at


def _named_relatives(sentence: str, folded: str) -> Iterator[Finding]:
    """Yield the names that follow a relative, such as "my sister Clara", whatever the sentence says."""
    for match in _KIN_APPOSITION.finditer(folded):
        name = _said(sentence, match)
        has_comma = sentence.startswith(",", match.end("kin"))
        is_closed = match["after"] == "," or match.end() >= len(folded.rstrip(" .!?"))
        is_common = sentence[match.start("kin")].islower()
        if name[:1].isupper() and is_common and is_name(name) and (is_closed or not has_comma):
            yield Finding(match.start(), match.end("o"), "I", RELATIVES[match["kin"]], name, "relation")


def _named_pets(sentence: str, folded: str) -> Iterator[Finding]:
    """Yield the names in "a cat called Miso" and "two cats, Miso and Tofu"."""
    for match in _PET_CALLED.finditer(folded):
        name = _said(sentence, match)
        if name[:1].isupper() and match["kin"].split(" ")[-1] in ANIMALS:
            yield Finding(match.start(), match.end("o"), "I", "pet", name, "relation")
    if several := _MANY_CALLED.search(folded):
        names = [name for name in _BETWEEN_NAMES.split(_said(sentence, several, "names")) if name]
        if all(is_name(name) for name in names):
            slot = _PLURAL[several["kin"] or several["kin2"]]
            for name in names:
                yield Finding(several.start(), several.end("names"), "I", slot, name, "relation")
