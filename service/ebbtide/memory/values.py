"""Values of statements: normalise them, compare them, and find out whether a quote reports a change.

Two values are compared after normalisation: NFKC, case, simplified characters, articles, dates, numerals and units. All
functions read at most MAX_CHARS characters and take linear time.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from ebbtide.han import contains_han
from ebbtide.normalisation import nfkc, simplified
from ebbtide.text_caches import text_cache

MAX_CHARS: Final = 500

Comparison = Literal["same", "refines", "different"]

_OUTER: Final = " \t\r\n\"'“”‘’《》「」『』()[].,;:!?。，、；：！？"
_SPACE: Final = re.compile(r"\s{1,500}")
_ARTICLES: Final = ("a ", "an ", "the ", "my ", "一个", "一名", "一位", "一只", "一条", "一辆", "我的")
_WORDS: Final = {
    word: str(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
}
_DIGITS: Final = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_NUMBER: Final = re.compile(
    r"[零〇一二两三四五六七八九十百]{1,9}(?=[年月日号岁个名位只条米斤公厘千年次]|$)"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MONTH} (?:the )?{_DAY}(?:,? (?P<year>\d{{4}}))?",
        rf"(?:the )?{_DAY} (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?",
        rf"{_MONTH},? (?P<year>\d{{4}})",
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?",
        r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号]?)?",
        r"(?P<year>\d{4})年?",
    )
)
_LENGTH: Final = re.compile(
    r"(\d{1,3}(?:\.\d{1,2})?) ?(cm|centimet(?:er|re)s?|厘米|公分|m|met(?:er|re)s?|米)(\d{1,2})?"
)
_WEIGHT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?) ?(kg|kilos?|kilograms?|公斤|千克|斤)")
_AGE: Final = re.compile(r"(\d{1,3}) ?(?:岁|周岁|years? old|years?)")

_CUES: Final = re.compile(
    r"\b(?:now(?! and then)|nowadays|these days|no longer|any ?more|moved(?! by)|relocated|switched|changed|became"
    r"|become|turned into|left(?![- ](?:hand|side|wing|over|foot|leg|arm|eye|ear|turn))|quit|resigned"
    r"|used to|stopped|joined|started (?:work(?:ing)?|(?:a|my) new job|at|as|eating)|promoted|transferred to|laid off"
    r"|(?:got|found|landed|took) (?:a|an|my|the|this) (?:new |better |different |other )?(?:job|position|role|post)"
    r"|(?:my|(?:have|has|had|got|['’]ve) an?) new (?:job|position|role|employer|company|boss|manager"
    r"|(?:phone |mobile |cell )?number|e-?mail|address|flat|apartment|place|home|house|partner|girlfriend|boyfriend"
    r"|wife|husband|favou?rite)"
    r"|(?:got|was|been|were) (?:hired|fired)|got (?:re)?(?:married|divorced|engaged)"
    r"|(?:i|we|he|she|they|[’']ve|have|has|just|recently|finally) (?:divorced|retired|(?:re)?married(?! (?:to|for)\b))"
    r"|(?:eats?|eating|drinks?|drinking) \w{2,12} again"
    r"|(?:broke|split|broken) up|(?:went|gone|turned) (?:back to |fully |completely )?(?:vegan|vegetarian|veggie"
    r"|pescatarian|keto|halal|kosher|gluten[- ]free|plant[- ]based|freelance|part[- ]time|full[- ]time)(?! for\b)"
    r"|turned (?:\d{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)))\b"
    r"|满[ ]?[\d零一二两三四五六七八九十百]{1,5}[ ]?周?岁"
    r"|(?:又|重新)(?:开始)?[吃喝]|现在|如今|目前|不再|已经不|再也不|搬(?:到|去|家|进|来|回|了)|换(?:了|成|为|到|工作|公司|号)"
    r"|更新(?:为|成|到)|改(?:成|为|叫|名|了|用|吃|喝|做|当|行)|变成|变为|成为了|成了|辞(?:职|了)|离(?:职|婚|开了)|戒了|跳槽|入职"
    r"|升(?:职|为|任|到|成)|晋升|提拔|提升为|当上|转(?:行|到|成|为|正)|(?<![空声])调(?:到|去|往|岗)"
    r"|离开[^，。！？；,.!?;]{1,12}(?:去了|到了|来了|加入)|开始(?:吃|喝|在|做|当|上班)|分手|再婚|[结订]婚了|失业|下岗|被裁|被开除"
    r"|退休了|(?:我|的)新(?:工作|公司|单位|号码|手机号|电话|邮箱|地址|住址|老板|领导|女友|男友|女朋友|男朋友)"
)

_DENIED_CUES: Final = re.compile(
    r"\b(?:g[ai]ve(?:n)? up|giving up|got(?:ten)? rid of|let go of|cut out|went off|gone off|grew out of|outgrew"
    r"|died|passed away|put (?:down|to sleep))\b|(?:死|去世|离世)了"
    r"|(?:不|没|戒)[^，。！？；,.!?;了]{1,16}了(?=[啊呀哦哈啦呢嘛吧的]?(?:[\s，。！？；,.!?;）)]|$))"
)
"""Words of a denial that report a change: "gave up", 不…了."""

_PAST: Final = re.compile(
    r"\b(?:used to|(?<!ve )(?<!s )(?<!always )(?:lived|worked|studied))\b|住过|待过|当过|以前|曾"
)

_DONE: Final = re.compile(
    r"\b(?:moved|relocated|switched|changed|became|turned|left|quit|resigned|stopped|joined|started"
    r"|promoted|divorced)\b|[了过]"
)
_PLAN: Final = re.compile(
    r"\b(?:will|going to|gonna|plan|plans|planning|would)\b|'ll|打算|准备|计划|会|要|将|想"
)

_AHEAD: Final = re.compile(
    r"(?:\bwill|['’]ll)\b(?! (?:always|never|still|not)\b)|\b(?:plan|plans|planning|about) to\b"
    r"|(?<!was )(?<!were )\bgo(?:ing to|nna)\b(?! (?:the|a|an|my|our|school|work|college|university|church|bed)\b)"
    r"|打算|准备(?![好了工])|计划(?=[在于去搬换\d一二三四五六七八九十明下])|即将|将[要于在]|[要会]搬|要换"
)
_CHANGING: Final = (
    r"(?:['’]m|['’]re|['’]s|\bam|\bis|\bare) (?:(?:also|finally|soon|both) ){0,2}(?:moving|relocating|starting|joining"
    r"|leaving|switching|changing|quitting|retiring|graduating|flying|travel(?:l)?ing"
    r"|getting (?:re)?(?:married|divorced))\b"
)
_ARRANGED: Final = (
    r"\b(?:exam|test|interview|appointment|surgery|operation|wedding|flight|deadline|presentation|graduation|move"
    r"|check-?up|defen[cs]e|trip)(?: (?:to|with|at|in|for) [\w.' -]{2,24})? (?:is|starts|begins)\b"
)
_TO_COME: Final = (
    r"(?:(?:in|on|at the end of|this|at|from|early|late|mid|by)[ -](?:the |early |late |mid-?){0,2}"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|spring|summer|autumn|fall|winter"
    r"|\d{1,2}(?:st|nd|rd|th)?\b(?![ ]?(?:am|pm|:))|(?:a|one|two|three|four|five|six|\d{1,2}) (?:day|week|month|year)"
    r"|weekend)|next (?:day|week|month|year|spring|summer|autumn|fall|winter|[a-z]{3,6}day|jan|feb|mar|apr|may|jun|jul"
    r"|aug|sep|oct|nov|dec)|tomorrow|tonight|soon\b)"
)
_NOT_TO_COME: Final = re.compile(
    r"\b(?:last|yesterday|ago|since|was|were|did|every|always|usually|often|on weekends)\b"
)
_UNDER_WAY: Final = re.compile(rf"(?:{_CHANGING}|{_ARRANGED})[^,;.!?\n]{{0,60}}? {_TO_COME}")
"""A change or an appointment at a time, in the present tense: "I'm moving in January", "my exam is on Monday"."""
_HAN_TIME: Final = (
    r"(?:明年|明天|后天|下下?个?(?:月|周|星期|礼拜)|(?<![年从自到是\d一二三四五六七八九十初每])(?:\d{1,2}|[一二三四五六七八九十]{1,3})月份?)"
    r"(?:底|初|中旬|[\d一二三四五六七八九十廿]{1,3}[日号])?"
)
_HAN_UNDER_WAY: Final = re.compile(
    rf"{_HAN_TIME}[^，。！？；,.!?;了过]{{0,4}}?(?:搬家?|移居|入职|跳槽|结婚|毕业|退休|离职|开学|回国|出国|去)"
    r"(?![^，。！？；,.!?;]{0,16}(?:[了过]|时候|以来|的(?=$|[，。！？；,.!?;])))"
    r"|(?:考试|面试|手术|婚礼|答辩|体检|航班)(?:是|在|定在|安排在){1,2}" + _HAN_TIME
)
"""The same in Chinese, without a word of what has happened: 我一月搬到奥斯陆."""


@text_cache(4096)
def normalised(text: str) -> str:
    """Return a text without differences of width, case, script, articles, punctuation around it and numerals."""
    plain = _SPACE.sub(" ", nfkc(text[:MAX_CHARS]).casefold().translate(simplified())).strip(_OUTER)
    for article in _ARTICLES:
        if plain.startswith(article) and len(plain) > len(article):
            plain = plain.removeprefix(article).strip()
            break
    if contains_han(plain):
        plain = _HAN_NUMBER.sub(_in_digits, plain)
    return " ".join(_WORDS.get(word, word) for word in plain.split(" "))


def _in_digits(match: re.Match[str]) -> str:
    """Return a Chinese numeral up to 999 in digits, or digit by digit."""
    said = match.group()
    if "百" not in said and "十" not in said:
        return "".join(str(_DIGITS[digit]) for digit in said) if len(said) != 1 or said != "两" else "2"
    hundreds, has_hundreds, rest = said.partition("百")
    if not has_hundreds:
        hundreds, rest = "", said
    tens, has_tens, ones = rest.partition("十")
    if not has_tens:
        tens, ones = "", rest
    parts = (hundreds, tens, ones.lstrip("零〇"))
    if any(len(part.lstrip("零〇")) > 1 or "百" in part or "十" in part for part in parts):
        return said
    total = 100 * (_DIGITS.get(hundreds, 1) if has_hundreds else 0)
    total += 10 * (_DIGITS.get(tens.lstrip("零〇"), 1) if has_tens else 0)
    return str(total + _DIGITS.get(parts[2], 0))


_EQUAL: Final = {
    other: value
    for value, others in {
        "female": ("woman", "女", "女性", "女的", "女生"),
        "male": ("man", "男", "男性", "男的", "男生"),
        "single": ("unmarried", "not married", "单身", "未婚", "没结婚"),
        "married": ("已婚", "结婚了", "已经结婚"),
        "divorced": ("离异", "离婚", "离婚了", "已离婚"),
        "widowed": ("丧偶",),
        "engaged": ("订婚", "已订婚", "订婚了"),
        "english": ("英语", "英文"),
        "chinese": ("中文", "汉语"),
        "mandarin": ("普通话", "国语"),
        "cantonese": ("粤语", "广东话"),
        "japanese": ("日语", "日文"),
        "korean": ("韩语", "韩文"),
        "french": ("法语", "法文"),
        "german": ("德语", "德文"),
        "spanish": ("西班牙语", "西语"),
        "portuguese": ("葡萄牙语", "葡语"),
        "italian": ("意大利语",),
        "russian": ("俄语", "俄文"),
        "arabic": ("阿拉伯语",),
    }.items()
    for other in others
}
"""Values of closed topics in other words: gender, marital status and languages."""

Date = tuple[int, int, int]
"""Year, month and day; 0 for what is not stated."""


def _date(value: str) -> Date | None:
    """Return a normalised value as a date if it is nothing else."""
    for pattern in _DATES:
        match = pattern.fullmatch(value)
        if match is None:
            continue
        said = {name: text for name, text in match.groupdict().items() if text}
        month = said.get("month", "0")
        number = int(month) if month.isdecimal() else _MONTHS.index(month[:3]) + 1
        day = int(said.get("day", "0"))
        if number <= 12 and day <= 31 and (number or not day):
            return int(said.get("year", "0")), number, day
    return None


def _measured(value: str) -> str:
    """Return a normalised value with lengths in cm, weights in kg and ages without a unit."""
    if match := _LENGTH.fullmatch(value):
        number, unit, rest = match.groups()
        if unit in ("cm", "厘米", "公分") or unit.startswith("centi"):
            return f"{float(number):g}cm"
        parts = (rest or "").ljust(2, "0") if rest else "0"
        return f"{float(number) * 100 + int(parts):g}cm"
    if match := _WEIGHT.fullmatch(value):
        number, unit = match.groups()
        return f"{float(number) * (0.5 if unit == '斤' else 1):g}kg"
    if match := _AGE.fullmatch(value):
        return match.group(1)
    return value


def canonical_value(text: str) -> str:
    """Return a value without differences of spelling and unit. Values with equal results are the same."""
    value = normalised(text)
    return _EQUAL.get(value) or _measured(value)


class Value(NamedTuple):
    """A value, normalised, with the date that it is, if it is one. Values that are the same have equal keys."""

    text: str
    date: Date | None

    @property
    def key(self) -> str | Date:
        """The date, else the text."""
        return self.text if self.date is None else self.date


@text_cache(4096)
def value_of(text: str) -> Value:
    """Return a value of a statement, normalised, lengths in cm, weights in kg and ages without a unit."""
    plain = canonical_value(text)
    return Value(plain, _date(plain))


def compare(first: str, second: str) -> Comparison:
    """Compare two values: `same`, `refines` if one contains the other or is a coarser date, else `different`."""
    return compare_values(value_of(first), value_of(second))


def compare_values(first: Value, second: Value) -> Comparison:
    """Compare two normalised values."""
    a, b = first.text, second.text
    if a == b:
        return "same"
    if first.date is not None and second.date is not None:
        return _compare_dates(first.date, second.date)
    # The common case is that neither occurs in the other one.
    if (b in a and _contains(a, b)) or (a in b and _contains(b, a)):
        return "refines"
    return "different"


def _compare_dates(first: Date, second: Date) -> Comparison:
    """Two dates agree if every part that both state is equal."""
    if first == second:
        return "same"
    shared = [one == other for one, other in zip(first, second, strict=True) if one and other]
    return "refines" if shared and all(shared) else "different"


def _contains(longer: str, shorter: str) -> bool:
    """Return whether a value occurs in another one, as whole words where it has Latin letters or digits."""
    if not shorter or len(shorter) >= len(longer):
        return False
    start = longer.find(shorter)
    while start >= 0:
        end = start + len(shorter)
        if _is_edge(longer, start) and _is_edge(longer, end):
            return True
        start = longer.find(shorter, start + max(1, len(shorter)))
    return False


def _is_edge(text: str, at: int) -> bool:
    """Return whether no Latin word or number continues across a position."""
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    return not (_is_latin(before) and _is_latin(after))


def _is_latin(character: str) -> bool:
    return character.isalnum() and not contains_han(character)


def reports_change(quote: str, *, negated: bool = False) -> bool:
    """Return whether the words of a clause report a change, such as "now", "moved", 现在 or 换成.

    Some words do so only in a denial, such as "gave up" and 不…了.
    """
    plain = nfkc(quote[:MAX_CHARS]).casefold().translate(simplified())
    return _CUES.search(plain) is not None or (negated and _DENIED_CUES.search(plain) is not None)


def tells_of_plan(quote: str) -> bool:
    """Return whether words say what will be: "I will move in May", "I'm moving in May", 我打算搬到奥斯陆.

    A promise for ever is no plan.
    """
    plain = nfkc(quote[:MAX_CHARS]).casefold().translate(simplified())
    return (
        _AHEAD.search(plain) is not None
        or _HAN_UNDER_WAY.search(plain) is not None
        or (_UNDER_WAY.search(plain) is not None and _NOT_TO_COME.search(plain) is None)
    )


def is_done(quote: str) -> bool:
    """Return whether the words of a clause say that a change has happened: "moved", 搬到了, and no word of a plan."""
    plain = nfkc(quote[:MAX_CHARS]).casefold().translate(simplified())
    has_happened = _CUES.search(plain) is not None and _DONE.search(plain) is not None
    return has_happened and _PLAN.search(plain) is None


def tells_of_past(quote: str) -> bool:
    """Return whether the words of a clause say what was true, such as "lived" or 以前, and report no other change."""
    plain = nfkc(quote[:MAX_CHARS]).casefold().translate(simplified())
    return _PAST.search(plain) is not None and _CUES.search(plain.replace("used to", "")) is None
