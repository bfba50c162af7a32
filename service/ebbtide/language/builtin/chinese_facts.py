"""Facts that a Chinese sentence states about its speaker, or about a relative of the speaker.

A sentence is cut into clauses at its punctuation. A clause gives a fact if one form of words matches all of it after
its subject. A clause without a subject continues the one before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from ebbtide.language.builtin.chinese_values import CHECKS, NUMBER, PRONOUN, is_given, is_person
from ebbtide.language.builtin.finding import Finding
from ebbtide.language.builtin.forms import object_of, read_forms
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words


def _any_of(name: str) -> str:
    return "|".join(sorted(ordered_list(name), key=len, reverse=True))


_GUARDS: Final = re.compile("|".join(ordered_list("chinese_fact_guards")))
_CLAUSE: Final = re.compile(r"(?:[^，。！？；：,!?;:（）()…—~～\s]|(?<=[\w.&'])[ .](?=[\w&'])){2,60}")
_ASKING: Final = re.compile(
    r"吗|什么|哪|怎么|咋|为啥|干嘛|几(?![乎年天])|多少|多大|多久|是不是|会不会|有没有|能不能|要不要|可不可以|该不该|如何"
    r"|(?:呢|吧|么)$|(.)不\1|记得不"
)
_TAG: Final = re.compile(r"对吧|是吧|对不对|是不是|没错吧|对吗|是吗|好吗|行吗|可以吗|不是吗|对么")
"""A question at the end that asks whether the sentence is true."""
_WISH: Final = re.compile(
    r"以前|曾经|原来|之前|原先|本来|希望|打算|计划|将来|应该|该|快要|即将|将要|想(?!象)"
)
"""A wish, a plan or the past: the clause states nothing that is true now."""

_WEEK: Final = r"(?:周|个?星期|礼拜)"
_WEEKDAY: Final = "[一二三四五六日天末]"
_DAY: Final = rf"(?:(?:{NUMBER}月)?{NUMBER}[日号])"
_DATE: Final = (
    r"(?P<o>(?:农历|阴历|阳历|公历)?(?:(?:\d{4}|[一二三四五六七八九零〇]{4})年)?(?:\d{1,2}|[一二三四五六七八九十正腊]{1,2})月"
    r"(?:初?(?:\d{1,2}|[一二三四五六七八九十廿]{1,3})[日号]?)?|\d{4}年|\d{4}-\d{1,2}-\d{1,2})"
)
_CLOCK: Final = rf"(?:早上|上午|中午|下午|晚上|傍晚|凌晨|早|晚)?(?:{NUMBER}点(?:半|{NUMBER}分?|整)?)?"
_FUTURE: Final = (
    rf"(?:今晚|今天(?=下午|晚上|傍晚)|明天|后天|大后天|明早|明晚|明年|下下?{_WEEK}{_WEEKDAY}?|下个?月|(?:这|本)?{_WEEK}{_WEEKDAY}|周末"
    rf"|国庆|元旦|春节|中秋|五一|端午|寒假|暑假|月底|年底|{_DAY})(?:到{_DAY})?{_CLOCK}"
)
_PAST: Final = (
    rf"(?:昨天|昨晚|前天|今天|上上?{_WEEK}{_WEEKDAY}?|上个?月|去年(?:夏天|冬天|春天|秋天)?|前年|今早|今天早上"
    rf"|(?:19|20)\d\d年|{NUMBER}(?:天|周|个月|个星期|年)前|半年前|{NUMBER}月份?(?!{NUMBER}|初[一二三四五六七八九十]))"
)
_SINCE: Final = r"(?:(?:从|自)?(?:(?:19|20)\d\d年|去年|前年|今年|上个?月|小学|毕业)(?:开始|起|以来|后|就))"
_ADVERB: Final = rf"{_any_of('chinese_clause_adverbs')}|{_SINCE}"
_PARTS: Final = {
    "NUMBER": NUMBER,
    "DATE": _DATE,
    "FUTURE": _FUTURE,
    "PAST": _PAST,
    "ADVERB": rf"(?:{_ADVERB}){{0,4}}+",
    "WHEN": rf"(?:{_ADVERB}|{_PAST}){{0,4}}+",
    "DEGREE": rf"(?:{_any_of('chinese_degrees')}){{0,3}}+",
    "END": r"(?:的|了|呢|啊|呀|哦|哈|啦|哟|嘞|来着|噢|哎|喔|咯|嘛){0,2}$",
    "SIGH": r"(?:了|呢|啊|呀|哦|哈|啦|哟|嘞|噢|哎|喔|咯|嘛){0,2}$",
    "OFTEN": (
        rf"(?:每天|每日|天天|每晚|每早|每周|每个?月|一天|一日|一周|早中晚|早晚|早上|中午|晚上|睡前|[早晚]?饭[前后]"
        rf"|早餐[前后]|各|{NUMBER}次){{0,4}}+"
    ),
    "DOSE": (
        rf"(?:(?:半|\d{{1,4}}(?:\.\d)?|{NUMBER})"
        r"(?:次|片|粒|颗|毫克|微克|克|毫升|支|针|包|袋|滴|单位|mg|ml)的?){0,2}"
    ),
    "REST": r"(?P<o>.{1,20}?)",
    "SHORT": r"(?P<o>.{1,12}?)",
    "ITS": r"(?:的|他的|她的|其|它的)?",
    "IS": r"(?:是在|是|在|为|叫|：)?",
    "IS_NOW": r"(?:现在|已经|已|刚刚?){0,2}(?:是|(?:[从由].{5,40}?)?(?:改|换|变|更新|更换)(?:成|为|到)了?|改了?|换了)?",
    "PLAN": _any_of("chinese_plan_verbs"),
    "HOBBY": _any_of("chinese_hobbies"),
}
_FORMS: Final = read_forms("chinese_forms", _PARTS, CHECKS)

RELATIVES: Final = dict(line.split(" ") for line in ordered_list("chinese_relatives"))
"""From a word for a relative, a friend or a pet to the slot of the name."""
_RELATIVE: Final = "|".join(sorted(RELATIVES, key=lambda word: (-len(word), word)))
_CALLED: Final = {slot: word for word, slot in reversed(RELATIVES.items())}
"""One word for each slot, so that 我妈 and 我母亲 are one person."""
_SHARED: Final = words(
    "cousin friend colleague child pet uncle aunt maternal_uncle maternal_aunt"
    " 邻居 下属 侄子 侄女 外甥 外甥女 孙子 孙女 室友"
)
"""Slots of whose people a user may have several, so that a fact without a name is not kept."""
_NO_PERSONS: Final = word_list("chinese_no_persons")
_NO_NAME_TAGS: Final = frozenset("dtvbcprmfuyeo")
"""Tags of words that are no names: adverbs, times, verbs and so on."""

_LEAD: Final = re.compile(rf"(?:{_any_of('chinese_leads')})?")
_SELF: Final = re.compile(r"(?:我|本人|俺)(?:们|自己|(?P<home>家))?(?P<of>的)?")
_TIMED_SELF: Final = re.compile(rf"(?:{_PAST}(?:[春夏秋冬]天|初|底)?|现在|目前|如今|最近)(?P<self>我(?!的))")
_KIN: Final = re.compile(rf"(?:我|本人|俺)们?(?:的|家的|家)?(?P<kin>{_RELATIVE})(?:他|她)?(?!们)")
_OWN_KIN: Final = re.compile(rf"(?P<kin>{_RELATIVE})(?=(?:的名字)?(?:叫|名叫))")
"""A relative who is named without an owner, who is the speaker: 我结婚了，老婆叫李娜."""
_NAME_IS_KIN: Final = re.compile(
    rf"(?P<o>[\u4e00-\u9fffA-Za-z]{{2,12}}?)是我(?:的|们家)?(?P<kin>{_RELATIVE})$"
)
_KEPT: Final = re.compile("养[了着]?[^老]")
"""An animal that is kept."""
_BORN: Final = re.compile("出生在")
_LEFT: Final = re.compile("长大|回|搬|移居|来了|来到|去了")
"""Words after a place of birth that the home town is another place."""
_BARE_MONTH: Final = re.compile(rf"{NUMBER}月份?(?:底|初|中旬|{NUMBER}[日号])?就?(?:搬|入职)")
"""A change in a month, without a word that it lies ahead."""
_HAPPENED: Final = re.compile("[了过住]|现在|目前|一直|至今")
"""Words after such a change that it has happened: 我一月搬到奥斯陆，现在住在市中心."""
_NO_SUBJECT: Final = re.compile(
    rf"(?:{_PAST}|刚刚?|终于|已经){{1,2}}(?:从.{{2,8}})?(?:搬家?[到去]|跳槽[到去]|入职)"
)
"""The beginning of a message without a subject, of which the speaker is the subject."""
_CHANGED: Final = frozenset({"residence", "employer"})
"""The slots that such a beginning may fill."""
_MEANT_NOT: Final = re.compile(
    r"(?:(?:抱歉|不好意思|对不起|我?说错了|更正|纠正|口误)[，,：:。 ]{0,2}){1,3}(?:我(?:的意思|说的))?(?:应该)?"
    r"(?P<o>(?:是[^，,。是不]{1,12}[，,]?而?不是|不是[^，,。是不]{1,12}[，,]?(?:而是|是))[^，,。是不]{1,12})$"
    r"|我(?:的意思|说的)(?P<o2>是[^，,。是不]{1,12}[，,]?而?不是[^，,。是不]{1,12})$"
)
"""A correction with both values: 说错了，是莱斯特，不是利兹."""
_CALLED_OFF: Final = re.compile(
    r"(?:我们?|咱们?)?(?:最后|后来|决定|暂时|这次|还是){0,2}不(?:搬家?[到去]|去|飞|回)(?P<o>[^，。了]{2,10})了$"
    r"|(?:我们?|咱们?)?的?(?P<o2>[^，。了我]{2,12}?)(?:被)?(?:取消|泡汤|告吹|黄)了$"
)
"""A plan that will not happen: 不去奥斯陆了."""
_CANCELLED: Final = re.compile(r"(?:我们?|咱们?)?取消了(?P<o>[^，。]{2,12})$")
_PET_NAME: Final = re.compile(
    r"(?:它的?)?(?:(?:名字)?叫做?|名叫|[取起]名叫?)(?P<o>[^人春声唤嚷得起个].{1,12}?)$"
)
"""The name of a pet, after the words for it: 我养了一只狗，叫旺财."""
_PET_CALLED: Final = re.compile(r".{3,16}?(?=名?叫)")
"""The words for a pet before its name in the same clause: 我养了只猫叫吐司."""
_PET: Final = "|".join(word for word, slot in RELATIVES.items() if slot == "pet")
_DIED: Final = re.compile(
    rf"(?:我们?家?的?)?(?:(?P<o>{_PET})|(?:{_PET})?(?P<o2>[^，。我]{{1,6}}?))"
    r"(?:已经|昨天|今天|前天|上周|上个月|去年|不幸){0,2}(?:死|去世|离世|病死)了$"
)
_PARTED: Final = re.compile(
    rf"(?!.{{0,8}}\d年)(?:{_PARTS['WHEN']})(?:[跟和与](?:我的?)?(?:老公|老婆|丈夫|妻子|[男女]朋友|[男女]友|对象|爱人|媳妇|太太|先生|伴侣))?"
    rf"(?:已经)?(?:离婚|分手)了{_PARTS['SIGH']}"
)
"""The end of a partnership without the name of the partner, not one of years ago."""
_ITS: Final = re.compile(r"其|他的|她的|它的")
_NAMED: Final = re.compile(
    r"(?:的名字)?(?:叫|叫做|名叫|是叫|的名字是|的名字叫|名字叫|名字是)(?P<o>.{2,14}?)(?:的|啊|呀|哦|哈)?$"
)
_APPOSED: Final = re.compile(
    r"(?P<o>[\u4e00-\u9fff]{2,3}?)"
    r"(?=在|是|今年|昨天|今天|明天|去|刚|对|要|最|特别|现在|正|还|也|有|会|不|下|来|从|跟|就|已|每|很|住|考|喜欢|都|$)"
)
_FAVOURITE: Final = re.compile(
    r"我?(?:现在|目前|如今)?(?:又)?最(?:喜欢|爱|喜爱)(?:的|看的|吃的|听的)(?P<thing>(?!.{0,4}(?:之一|部分|地方|事|一点|时候|时刻))[^是的]{1,5})是(?P<o>.{1,12}?)(?:了|啊|呀|的)?$"
)
_FAVOURITE_BEFORE: Final = re.compile(r"(?P<o>.{1,10}?)是我最(?:喜欢|爱|喜爱)的(?P<thing>[^之一的]{1,5})$")
_TASK: Final = r"(?P<o>[^，。！？；,!?;\n]{2,40})"
_REMINDER: Final = re.compile(
    r"^(?:.{0,6}[，,])?(?:请|麻烦|记得|帮我|千万|到时候|能不能|可以)?"
    rf"(?:{_FUTURE}|每天{_CLOCK}|每周.?{_CLOCK}|每个月.{{0,3}}|下班后?)?(?:记得|请)?(?:提醒我|叫我|别让我忘了|让我别忘了){_TASK}"
)
_ONLY_TIME: Final = re.compile(rf"(?:{_FUTURE}|每天{_CLOCK})")
_REMINDER_INSIDE: Final = re.compile(rf"[，,]\s?(?:请)?(?:{_FUTURE})?提醒我{_TASK}")
_REMINDER_LINE: Final = re.compile(r"提醒我(?:一下)?[：:]\s?(?P<o>[^。！？；!?;\n]{2,60})")
_REMEMBER: Final = re.compile(rf"^别忘了(?P<o>{_FUTURE}[^，。！？；,!?;\n]{{2,30}})")
_NO_REMINDER: Final = re.compile(
    r"谁能提醒|提醒过|不用提醒|不要提醒|别提醒|叫我(?!起床)|提醒我的|总提醒|老提醒"
)
_BETWEEN_TASKS: Final = re.compile("[、，,]")
_BETWEEN_VALUES: Final = re.compile("[、和与及]")
_POLITE: Final = re.compile(r"(?:好吗|好不好|可以吗|行吗|[啊呀哦哈吧吗]){1,2}$")
_VAGUE_TASK: Final = re.compile(
    r"^(?:为什么|怎么|什么|谁|哪|关于|一下|那|这)|那件事|这件事|那个事|这个事|一下$|一声$|这事|那事"
)
_TODO: Final = re.compile(r"待办(?:事项)?[：:]\s?(?P<o>[^。！？；!?;\n]{2,60})")
_OTHERS: Final = re.compile(r"[你您他她它]|知道|有个|有一个|认识|朋友|同学")
"""Words of a clause after which a clause without a subject may have another subject."""


class _Topic(NamedTuple):
    """The subject that a clause without one continues, and where its words begin."""

    subject: str
    begin: int


_Found = tuple[list[Finding], _Topic | None]
"""The findings of a clause, and the topic that the next one continues."""


def findings(
    sentence: str, is_question: bool, *, is_first: bool = False, people: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield the facts of a sentence. Linear in its length.

    `is_first`: a message begins with it. `people` are the names of persons whom the speaker has named.
    """
    if tasks := _tasks(sentence):
        yield from tasks
        return
    if "提醒" in sentence or _GUARDS.search(sentence):
        return
    if not is_question and (meant := _MEANT_NOT.search(sentence)):
        start, stop = object_of(meant)
        yield Finding(meant.start(), meant.end(), "我", "correction", sentence[start:stop])
        return
    clauses = [match.span() for match in _CLAUSE.finditer(sentence)]
    asked = [_ASKING.search(sentence, *clause) is not None for clause in clauses]
    if not clauses or ((is_question or asked[-1]) and _TAG.fullmatch(sentence[slice(*clauses[-1])])):
        return
    if is_question and not any(asked):
        clauses.pop()
    topic: _Topic | None = None
    is_bare = is_first and bool(clauses) and _NO_SUBJECT.match(sentence, clauses[0][0]) is not None
    if is_bare:
        topic = _Topic("我", clauses[0][0])
    pet: Finding | None = None
    for (begin, end), is_asked in zip(clauses, asked, strict=False):
        if is_asked:
            break
        found, topic = _in_clause(sentence[begin:end], begin, topic, people)
        if pet is not None and not found:
            found = _pet_name(sentence[begin:end], begin, pet)
        pet = next((one for one in found if one.slot == "pet" and not one.is_negated), None)
        if is_bare and begin == clauses[0][0] and any(one.slot not in _CHANGED for one in found):
            break
        for one in found:
            if one.slot == "hometown" and _BORN.search(sentence, begin, end) and _LEFT.search(sentence, end):
                continue
            if (
                one.slot == "appointment"
                and _BARE_MONTH.match(one.object)
                and _HAPPENED.search(sentence, end)
            ):
                continue
            yield one


def asks_for_reminder(sentence: str) -> bool:
    """Return whether a sentence asks to be reminded of something."""
    return bool(_tasks(sentence))


def _tasks(sentence: str) -> list[Finding]:
    match = _TODO.search(sentence)
    items = _BETWEEN_TASKS.split(match["o"]) if match else []
    if not items and not _NO_REMINDER.search(sentence):
        match = (
            _REMINDER_LINE.search(sentence)
            or _REMINDER.search(sentence)
            or _REMINDER_INSIDE.search(sentence)
            or _REMEMBER.search(sentence)
        )
        items = [_POLITE.sub("", match["o"])] if match else []
    begin = (
        max(sentence.rfind("，", 0, match.start("o")), sentence.rfind(",", 0, match.start("o"))) + 1
        if match
        else 0
    )
    if _ONLY_TIME.fullmatch(sentence, 0, max(0, begin - 1)):
        begin = 0
    return [
        Finding(begin, len(sentence), "我", "reminder", item.strip(), "task", is_planned=True)
        for item in items
        if len(item.strip()) >= 2 and not _VAGUE_TASK.search(item)
    ]


def _in_clause(clause: str, begin: int, topic: _Topic | None, people: Collection[str]) -> _Found:
    lead = _LEAD.match(clause)
    at = lead.end() if lead else 0
    if timed := _TIMED_SELF.match(clause, at):
        at = timed.start("self")
    if at == len(clause):
        return [], topic
    end = begin + len(clause)
    for form, slot in ((_CALLED_OFF, "cancellation"), (_CANCELLED, "cancellation"), (_DIED, "loss")):
        if match := form.match(clause, at):
            said = clause[slice(*object_of(match))]
            return [Finding(begin, end, "我", slot, said, is_negated=slot == "loss")], None
    if match := _NAME_IS_KIN.match(clause, at):
        slot = RELATIVES[match["kin"]]
        if slot == "pet" or not is_person(match["o"]):
            return [], None
        return [Finding(begin, end, "我", slot, match["o"], "relation")], _Topic(match["o"], begin)
    if favourite := _favourite(clause, at, begin, "我"):
        return favourite, None
    if _ITS.match(clause, at):
        return [] if topic is None else _predicates(clause, at, begin, topic), topic
    if kin := _KIN.match(clause, at):
        return _about_relative(clause, begin, kin)
    kin = _OWN_KIN.match(clause, at)
    if kin and (topic is None or topic.subject == "我"):
        return (
            _about_relative(clause, begin, kin) if topic or RELATIVES[kin["kin"]] == "partner" else ([], None)
        )
    subject = _SELF.match(clause, at)
    if subject is not None:
        own = _Topic("我", begin)
        # 家 and 的 may belong to the predicate: 我家住在…, 我的生日是…
        start = next(
            place for place in (subject.start("home"), subject.start("of"), subject.end()) if place >= 0
        )
        found = _predicates(clause, start, begin, own) or _called_pet(clause, start, begin)
        if _PARTED.match(clause, subject.end()) and not _WISH.search(clause):
            found.append(Finding(begin, end, "我", "partner", "", is_negated=True))
        if _KEPT.search(clause) or any(one.slot == "pet" for one in found):
            return found, None  # the next clause may be about the pet
        goes_on = found or (len(clause) <= 8 and not _OTHERS.search(clause))
        return found, own if goes_on else None
    named = max((name for name in people if clause.startswith(name, at)), key=len, default="")
    if len(named) >= 2 and len(named) < len(clause) - at:
        topic = _Topic(named, begin)
        return _predicates(clause, at + len(named), begin, topic), topic
    if topic is None and clause.startswith("坐标", at):
        topic = _Topic("我", begin)
    if topic is None:
        return [], None
    found = _predicates(clause, at, begin, topic)
    return found, topic if found else None


def _favourite(clause: str, at: int, begin: int, subject: str) -> list[Finding]:
    for form in (_FAVOURITE, _FAVOURITE_BEFORE):
        match = form.match(clause, at)
        if (
            match
            and not PRONOUN.search(match["o"])
            and (form is _FAVOURITE_BEFORE or clause[at] == "我" or subject != "我")
        ):
            slot = f"favourite:{match['thing']}"
            return [Finding(begin, begin + len(clause), subject, slot, match["o"], "preference")]
    return []


def _about_relative(clause: str, begin: int, kin: re.Match[str]) -> _Found:
    slot, at, end = RELATIVES[kin["kin"]], kin.end(), begin + len(clause)
    named = _NAMED.match(clause, at)
    if named and is_given(named["o"]) and (slot == "pet" or _is_noun(named["o"])):
        topic = None if slot == "pet" else _Topic(named["o"], begin)
        return [Finding(begin, end, "我", slot, named["o"], "relation")], topic
    found, subject, is_known = list[Finding](), f"我{_CALLED[slot]}", slot not in _SHARED
    apposed = _APPOSED.match(clause, at)
    if apposed and is_person(apposed["o"]) and _is_word(clause, *apposed.span("o")):
        subject, at, is_known = apposed["o"], apposed.end(), True
        found.append(Finding(begin, begin + at, "我", slot, subject, "relation"))
    if slot == "pet" or not is_known:
        return found, None
    if favourite := _favourite(clause, at, begin, subject):
        return found + favourite, None
    topic = _Topic(subject, begin)
    return found + _predicates(clause, at, begin, topic), topic


def _called_pet(clause: str, at: int, begin: int) -> list[Finding]:
    """Return a pet and its name of one clause: 我养了只猫叫吐司."""
    called = _PET_CALLED.match(clause, at)
    if called is None:
        return []
    found = _predicates(clause[: called.end()], at, begin, _Topic("我", begin))
    if [one.slot for one in found] != ["pet"] or found[0].is_negated:
        return []
    name = _pet_name(clause[called.end() :], begin + called.end(), found[0])
    return [*found, *name] if name else []


def _pet_name(clause: str, begin: int, pet: Finding) -> list[Finding]:
    """Return the name of a pet in the words after it. Several names would be pets of one quote, and die together."""
    match = _PET_NAME.match(clause)
    name = match["o"] if match else ""
    if not is_given(name) or not _is_noun(name) or _BETWEEN_VALUES.search(name):
        return []
    return [Finding(pet.begin, begin + len(clause), "我", "pet", name, "relation")]


def _is_noun(text: str) -> bool:
    """Whether a text after 叫 is no verb, such as 开会 in 我老板叫开会."""
    return is_person(text) or all(not token.tag.startswith("v") for token in tokenize(text))


def _is_word(clause: str, start: int, end: int) -> bool:
    """Whether a slice begins and ends where words do, and no adverb, time or verb fills it, such as 马上 and 高兴."""
    if clause[start:end] in _NO_PERSONS:
        return False
    tokens = [token for token in tokenize(clause) if start <= token.start < end]
    if not tokens or tokens[0].start != start or tokens[-1].end != end:
        return False
    return tokens[-1].tag[0] not in _NO_NAME_TAGS or (len(tokens) == 2 and tokens[0].text in "小阿老大")


def _predicates(clause: str, at: int, begin: int, topic: _Topic) -> list[Finding]:
    """Return what the first form finds between `at`, the end of the subject, and the end of the clause."""
    if _WISH.search(clause):
        return []
    is_own = topic.subject == "我" and topic.begin == begin
    for form in _FORMS:
        match = None if form.is_own and not is_own else form.pattern.match(clause, at)
        if match is None:
            continue
        said = clause[slice(*object_of(match))].strip()
        is_list = form.is_list and len(said) >= 3 and "的" not in said
        values = [part for part in _BETWEEN_VALUES.split(said) if part] if is_list else [said]
        if values and all(form.check(value) for value in values):
            end = begin + len(clause)
            return [
                Finding(
                    topic.begin,
                    end,
                    topic.subject,
                    form.slot,
                    value,
                    form.kind,
                    form.is_negated,
                    form.is_planned,
                )
                for value in values
            ]
    return []
