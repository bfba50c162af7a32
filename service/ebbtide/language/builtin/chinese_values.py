"""Checks of the objects of Chinese forms of words: a place, a profession, a name, a food and so on."""

from __future__ import annotations

import re
from typing import Final

from ebbtide.language.builtin.forms import Check
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

NUMBER: Final = r"(?:\d{1,3}|[一二三四五六七八九十两百零]{1,4})"

_PLACES: Final = word_list("chinese_places")
_PLACE_ENDS: Final = re.compile(
    r".{1,14}(?:市|区|县|镇|省|州|村|路|街|小区|花园|家园|苑|新城|新村|大道|胡同|公寓|岛|\d{1,6}号楼?|号院)"
)
_BEFORE_FIRM: Final = re.compile(r"^(?:一家|一个|一所)(?:做.{1,6}的|小|大|外资|国企|互联网|创业)?")
_BEFORE_JOB: Final = re.compile(r"^(?:一名|一位|一个|名|位|个)")
_LATIN_NAME: Final = re.compile(r"[A-Z][a-z]{1,14}")
_HAN_NAME: Final = re.compile(r"[\u4e00-\u9fff]{2,4}")
_WEEKDAY: Final = re.compile("周[一二三四五六日末]|[上下]周")
_COUNTED: Final = re.compile(rf"^{NUMBER}?[只条匹个头窝]")
_SCHOOL: Final = re.compile(r".{2,12}(?:大学|学院|中学|小学|高中|一中|二中|附中|科大|师大|理工|幼儿园|职校)")
_USUAL: Final = re.compile(r"[了过刚很]|的.$|已经|一般|通常|经常|常|总|每|一直|都")
_NO_PLACE: Final = re.compile(
    r"[我你他她它这那哪]|一起|附近|旁边|宿舍|酒店|医院|里$|边$|楼$|家$|学校|公司|单位|地区|小城市|大城市|一个|城市$"
)
_PROFESSIONS: Final = word_list("chinese_professions")
_TRADES: Final = word_list("chinese_trades")
_TRAITS: Final = re.compile(
    r"^(?:打工|好|坏|老|假|前|真|优秀的?|合格的?|称职的?|未来的?|准)|[你我他她的是不当第找去来看给跟和被让有很太挺最更做叫请等带见了着过那这]"
)
_LANGUAGES: Final = word_list("chinese_languages")
_HEALTH: Final = word_list("chinese_health")
_MEDICINES: Final = word_list("chinese_medicines")
_CARS: Final = word_list("chinese_cars")
_ANIMALS: Final = word_list("chinese_animals")
_SURNAMES: Final = word_list("chinese_surnames") | word_list("chinese_compound_surnames")
PRONOUN: Final = re.compile(r"[我你您他她它咱]|自己|大家|这|那|某|任何|什么|东西|事情|别人|一切|所有")


def _is_place(said: str) -> bool:
    if "的" in said or (_NO_PLACE.search(said) and not _PLACE_ENDS.fullmatch(said)):
        return False
    return (
        said in _PLACES
        or any(said.startswith(place) for place in _prefixes(said))
        or (_PLACE_ENDS.fullmatch(said) is not None and not PRONOUN.search(said))
    )


def _prefixes(said: str) -> list[str]:
    return [said[:size] for size in (2, 3, 4) if said[:size] in _PLACES]


def _is_city(said: str) -> bool:
    """Whether it is a place of the list, or a place within one: 杭州, 山东济南, 湖南省长沙市."""
    if len(said) > 8 or PRONOUN.search(said):
        return False
    rest = said
    for _ in range(3):
        found = next((size for size in (4, 3, 2) if rest[:size] in _PLACES), 0)
        if not found:
            break
        rest = rest[found:].lstrip("省市区县")
    return rest == "" or (rest != said and len(rest) <= 3 and rest.endswith(("市", "区", "县", "镇", "村")))


_NAME_TAGS: Final = words("ns nr nrt nrfg nz")
_HAN_PLACE: Final = re.compile(r"[\u4e00-\u9fff]{2,8}")
_NO_PLACES: Final = word_list("chinese_no_places") | word_list("chinese_firms")
_PRONOUN_OR_INSIDE: Final = re.compile(r"[我你您他她它咱这那某里]")
"""Characters that a known name of a place may contain, such as 那 in 那不勒斯, but that a guess has no place for."""
_NO_PLACE_ENDS: Final = re.compile(
    r"[院店馆所房室校层铺屋厂营舍部组处包宅楼家边]$|附近|^城[东西南北]$|^[小老].{1,2}$|^阿.$"
    r"|^.[叔伯姨姑舅婶爷奶爸妈哥姐弟妹总]$|阿姨|老师"
)


def _is_named_place(said: str) -> bool:
    """Whether the tagger knows or guesses only names in it, none of a person, firm or building: 波尔图, 张江."""
    return (
        _HAN_PLACE.fullmatch(said) is not None
        and said not in _NO_PLACES
        and not _NO_PLACE_ENDS.search(said)
        and all(
            token.tag in _NAME_TAGS
            and (token.tag in ("ns", "nrt") or not _PRONOUN_OR_INSIDE.search(token.text))
            for token in tokenize(said)
        )
    )


def _is_home(said: str) -> bool:
    """Whether it may follow 住在: also streets and buildings with a name."""
    return _is_place(said) or _is_named_place(said)


def _is_town(said: str) -> bool:
    """Whether it may follow 搬到, which also means rooms and houses."""
    return _is_city(said) or _is_named_place(said)


def _is_origin(said: str) -> bool:
    return _is_city(said) or (
        len(said) >= 3 and len(said) <= 6 and said.endswith(("市", "县", "省")) and not PRONOUN.search(said)
    )


_FIRMS: Final = word_list("chinese_firms")
_FIRM_ENDS: Final = re.compile(rf".{{0,16}}(?:{'|'.join(ordered_list('chinese_firm_ends'))})")
_NO_FIRM: Final = re.compile(
    r"[你我他她]|外面|外地|国外|家里|家$|^家|这|那|网上|线上|路上|楼上|楼下|办公室|夜里|晚上|白天|周末|上海$|一起|同一|附近|旁边|不同|(?<!阿)里$|隔壁|异地|远程|哪"
)


_LATIN: Final = re.compile(r"[A-Z][A-Za-z&. ]{1,14}")


def _is_firm(said: str) -> bool:
    plain = _BEFORE_FIRM.sub("", said)
    if not 2 <= len(plain) <= 18 or _NO_FIRM.search(plain) or _is_city(plain):
        return False
    if said != plain and not _FIRM_ENDS.fullmatch(plain):
        return False
    return plain in _FIRMS or _FIRM_ENDS.fullmatch(plain) is not None or _LATIN.fullmatch(plain) is not None


_TITLES: Final = words("教授 大夫 医生 老师 主任 经理 律师 师傅 总监 会计 护士")


def _is_profession(said: str) -> bool:
    plain = _BEFORE_JOB.sub("", said)
    if plain[:1] in _SURNAMES and plain[1:] in _PROFESSIONS:
        return False  # 王教授 is a person
    if len(plain) == 3 and plain[1:] in _TITLES and plain[0] not in "男女副正牙兽":
        return False
    return (
        len(plain) <= 10
        and not _TRAITS.search(plain)
        and any(
            plain.endswith(plain[-size:]) and plain[-size:] in _PROFESSIONS
            for size in range(2, 8)
            if size <= len(plain)
        )
    )


def _is_trade(said: str) -> bool:
    return said in _TRADES or _is_profession(said)


_NO_NAME: Final = re.compile(r"[我你您他她它了过着的去来要给在不没是外快车醒什么做]|名字|救|滴滴|代驾|\d|_")


def is_person(said: str) -> bool:
    """Whether a text is the name of a person: by its surname, or as a short form such as 小美 and 阿杰."""
    if _LATIN_NAME.fullmatch(said):
        return True
    if _NO_NAME.search(said) or not _HAN_NAME.fullmatch(said):
        return False
    if _WEEKDAY.match(said):
        return False
    if said[:2] in _SURNAMES:
        return len(said) >= 3
    return len(said) <= 3 and (
        said[0] in _SURNAMES or said[0] in "小阿老大" or (len(said) == 2 and said[0] == said[1])
    )


def is_given(said: str) -> bool:
    """Whether a text may be a name after 叫."""
    if _LATIN_NAME.fullmatch(said):
        return True
    return _HAN_NAME.fullmatch(said) is not None and not _NO_NAME.search(said)


def _is_language(said: str) -> bool:
    return said in _LANGUAGES


_JOKES: Final = re.compile(
    r"废话|噪音|早起|早上|起床|做饭|开会|老板|领导|同事|婚姻|相亲|不$|傻|音乐|上班|工作|周一|星期一|人$|学习|考试|贫穷|帅|加班|钱"
)


def _is_allergen(said: str) -> bool:
    return len(said) <= 8 and not PRONOUN.search(said) and not _JOKES.search(said)


_NO_FOOD: Final = re.compile(
    r"饭|早餐|午餐|晚餐|夜宵|宵夜|主食|这|那|亏|醋|药|一套|苦|惊|东西|完|饱|下|消|透|准|得|[你我他她了的]|多|素|一口|肉了|什么|别|软|硬|定"
)


def _is_food(said: str) -> bool:
    return len(said) <= 5 and not _NO_FOOD.search(said) and said not in _MEDICINES


def _is_health(said: str) -> bool:
    return said in _HEALTH


def _is_medicine(said: str) -> bool:
    return said in _MEDICINES or any(
        said.endswith(said[-size:]) and said[-size:] in _MEDICINES for size in range(2, 9) if size < len(said)
    )


_NO_LIKED: Final = re.compile(
    r"(?:这|之|一)类|等等?$|什么的$|^(?:的|用|在|是|上|你|他|她|这|那|第|不|了|过|着|死|到|得|一个人|起来|跟|和|把|被|谁|都|也|说|情|护|心|好|因|就|让|看你|听你|人|给|吃饱)"
    r"|[我你您他她它咱]|自己|大家|的$|地$|时候|了|的人|加班|堵车|排队|催婚|相亲|方案|版本|选项|标题|这版|那版|语气|那种|这种|这样|那样|死$|方式|方案|什么|一切|东西|起来|不起|多|$^"
)


def _is_liked(said: str) -> bool:
    return 1 <= len(said) <= 9 and not _NO_LIKED.search(said)


def _is_any(said: str) -> bool:
    return True


def _is_age(said: str) -> bool:
    digits = said.rstrip("周岁")
    return not digits.isdecimal() or 1 <= int(digits) <= 110


def _is_pet(said: str) -> bool:
    kind = _COUNTED.sub("", said)
    return (
        any(
            kind.endswith(animal)
            for animal in (kind[-1:], kind[-2:], kind[-3:], kind[-4:])
            if animal in _ANIMALS
        )
        and len(kind) <= 7
    )


def _is_car(said: str) -> bool:
    return (
        any(said.startswith(make) for make in (said[:2], said[:3], said[:4]) if make in _CARS)
        and len(said) <= 12
    )


def _is_school(said: str) -> bool:
    return _SCHOOL.fullmatch(said) is not None and not PRONOUN.search(said)


def _is_study(said: str) -> bool:
    return 2 <= len(said) <= 8 and not PRONOUN.search(said) and not said.startswith(("在", "怎", "不"))


_VAGUE_ACTS: Final = re.compile(
    r"[你您他她它]|这|那|什么|一下|睡|起床|上班$|下班|笑|死|疯|累|有空|没空|有事|休息$|忙|无聊|开心"
)


def _is_act(said: str) -> bool:
    return 4 <= len(said) <= 30 and not _VAGUE_ACTS.search(said)


def _is_plan(said: str) -> bool:
    return _is_act(said) and _USUAL.search(said) is None


_DONE: Final = re.compile(
    rf"(?:{'|'.join(ordered_list('chinese_done_verbs'))}).{{0,8}}(?:了|过(?![年节冬夜])|的.{{1,2}}$)"
)


def _is_done(said: str) -> bool:
    return _is_act(said) and _DONE.search(said) is not None and "要" not in said and "就" not in said


_DEGREES: Final = words("本科 硕士 博士 大专 专科 高中 初中 中专 研究生 大学")


def _is_schooling(said: str) -> bool:
    return _is_school(said) or said in _DEGREES


CHECKS: Final[dict[str, Check]] = {
    "place": _is_place,
    "city": _is_city,
    "home": _is_home,
    "town": _is_town,
    "origin": _is_origin,
    "firm": _is_firm,
    "profession": _is_profession,
    "trade": _is_trade,
    "person": is_person,
    "given": is_given,
    "language": _is_language,
    "allergen": _is_allergen,
    "food": _is_food,
    "health": _is_health,
    "medicine": _is_medicine,
    "liked": _is_liked,
    "any": _is_any,
    "age": _is_age,
    "pet": _is_pet,
    "car": _is_car,
    "school": _is_school,
    "study": _is_study,
    "act": _is_act,
    "plan": _is_plan,
    "done": _is_done,
    "schooling": _is_schooling,
}
"""The checks that the tables of forms name."""
