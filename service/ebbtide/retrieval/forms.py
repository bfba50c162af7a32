"""Irregular word forms of English: a query with *went* also matches *going* and *gone*.

A stemmer removes endings and does not know go, went, gone. Here all forms of such a word count as one: the query
searches for the first form, and any form matches. The index on disk stays unchanged, because forms are merged at search
time. Words that usually have another meaning (bore, rose, lay, ground, bit) are omitted.
"""

from __future__ import annotations

from ebbtide.retrieval.analysis import term_of

_STEMS = """
aris aros arisen | awak awok awoken | beat beaten | becom becam | begin began begun | bend bent | bleed bled
blow blew blown | break broke broken | breed bred | bring brought | build built | burn burnt | buy bought
catch caught | choos chose chosen | cling clung | come came | creep crept | deal dealt | dig dug | draw drew drawn
dream dreamt | drink drank drunk | drive drove driven | eat ate eaten | fall fell fallen | feed fed | feel felt
fight fought | find found | flee fled | fli flew flown | forbid forbad forbidden | forget forgot forgotten
forgiv forgav forgiven | freez froze frozen | get got gotten | give gave given | go goe went gone | grow grew grown
hang hung | hear heard | hide hid hidden | hold held | keep kept | kneel knelt | know knew known | lead led
learn learnt | leav left | lend lent | lose lost | make made | mean meant | meet met | mistak mistook mistaken
overcom overcam | pay paid | prove proven | ride rode ridden | ring rang rung | run ran | say said | see saw seen
seek sought | sell sold | send sent | sew sewn | shake shook shaken | shine shone | shoot shot | show shown
shrink shrank shrunk | sing sang sung | sink sank sunk | sit sat | sleep slept | slide slid | speak spoke spoken
spell spelt | spend spent | spill spilt | spin spun | stand stood | steal stole stolen | stick stuck | sting stung
strike struck | strive strove striven | swear swore sworn | sweep swept | swell swollen | swim swam swum | swing swung
take took taken | teach taught | tear tore torn | tell told | think thought | throw threw thrown
understand understood | wake woke woken | wear wore worn | weav wove woven | weep wept | win won
withdraw withdrew withdrawn | write wrote written
child children | man men | woman women | person peopl | foot feet | tooth teeth | mous mice | goos gees | wife wive
knife knive | shelf shelv | wolf wolv | thief thiev
"""
"""The stems of each word's forms; the first represents all."""

_GROUPS = tuple(tuple(group.split()) for line in _STEMS.strip().splitlines() for group in line.split("|"))
_FIRST = {stem: group[0] for group in _GROUPS for stem in group}
_TERMS = {term_of(group[0]): tuple(map(term_of, group)) for group in _GROUPS}


def first_form(word: str) -> str:
    """Return the word that represents all forms of a word, which for most is the word itself."""
    return _FIRST.get(word, word)


def terms_of_forms(term: int) -> tuple[int, ...]:
    """Return the terms of all forms of a word, or an empty tuple if it has only one."""
    return _TERMS.get(term, ())
