"""Forms: words of English that change inside. Who asks when Ann *went* means what she says of *going*, too.

A stemmer takes endings off and knows nothing of go, went, gone. Here all forms of such a word are one: a question
looks for the first of them, and what says any of them says it. The rule guarded here: what is kept on disk stays as
it was said. Forms are put together when they are looked for, so a memory of any age finds them.

Words that are usually something else (bore, rose, lay, ground, bit) are left out, and so are forms that a stop word
covers. Deliberately not here: endings (`analysis.py`), other languages: Chinese words have one form.
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
"""The stems of each word's forms, the one that stands for all of them first."""

_GROUPS = tuple(tuple(group.split()) for line in _STEMS.strip().splitlines() for group in line.split("|"))
_FIRST = {stem: group[0] for group in _GROUPS for stem in group}
_TERMS = {term_of(group[0]): tuple(map(term_of, group)) for group in _GROUPS}


def first_form(word: str) -> str:
    """The word that stands for all forms of one, as words are matched: itself for nearly all."""
    return _FIRST.get(word, word)


def terms_of_forms(term: int) -> tuple[int, ...]:
    """The terms of all forms of the word that this one stands for; none where it stands for itself alone."""
    return _TERMS.get(term, ())
