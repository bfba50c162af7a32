"""Read a Chinese text as clauses, and decide which of them depend on which.

Chinese often omits the subject. A clause without its own subject needs the nearest clause before it that has one. A
pronoun needs its antecedent, a consequence its condition, and a fragment its neighbour. In case of doubt a clause needs
the one before it: a clause without what it needs would say something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.negation import holds_negation
from ebbtide.language.builtin.scripts import HAN, has_word, is_japanese
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.small_talk import is_small_talk
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.word_lists import word_list, words

_COMMA = re.compile("[，；：,;:]+|—+|…+|[.]{3,}")
# In chats a space often separates clauses.
_SPACED = re.compile(rf"[{HAN}]\s+[{HAN}]")
_SPACE = re.compile(
    rf"[，；：,;:]+|—+|…+|[.]{{3,}}|(?<=[{HAN}A-Za-z0-9])\s+(?=[{HAN}])|(?<=[{HAN}])\s+(?=[A-Za-z0-9])"
)
_JAPANESE_COMMA = re.compile("[、，]")
_QUOTED = re.compile(
    r"“[^”]{1,60}”|「[^」]{1,60}」|『[^』]{1,60}』|（[^）]{1,60}）|\([^)]{1,60}\)|《[^》]{1,60}》"
)
_NUMBER_COMMA = re.compile(r"(?<=\d)[,:](?=\d)")

_PREDICATES = words("v vi vd vq vg a ad i l")
_SUBJECTS = words("n nr ns nt nz nw nrt nrfg vn r title an x nrf j word code path url s b zg ng")
_SKIPPED = words("d c t y e o date")
_PERSONAL = words("我 我们 咱 咱们 俺 你 您 你们")
_THIRD = words("他 她 它 他们 她们 它们 其 人家 对方")
_NO_SUBJECT = word_list("chinese_no_subjects")
_TIMES = words_chinese.TIME_FILLERS | words("每天 天天 每晚 每周 每月 每年 那天 这天 哪天 一天")
_ASPECTS = ("了", "过", "着")

# Words at the start of a clause (also after its subject) that point at the clause before.
_CONTINUING = word_list("chinese_continuing")
# Of these, the clause before needs the clause as well: 你来，我就走; 要么去，要么不去.
_COMPLETING = words("就 便 则 也 要么 或者 还是 就是 都")
# Conditions, which every later clause of the sentence needs.
_STRICT = tuple(
    words("如果 要是 假如 假设 倘若 若 若是 只要 只有 除非 即使 就算 哪怕 万一 不管 无论 凡是 一旦")
)
_LATE = ("除非", "如果", "要是", "只要", "前提")
_REPORT_END = re.compile("(?:(?<![不没再])[说道讲问]|表示|回|听说|据说|传说|告诉[我他她]们?)[，：,:\\s]*$")
_HEARSAY = re.compile("(?:听说|据说|传说|据传|好像|可能|也许|大概|应该|估计)[，：,:\\s]*$")
_REPORT_MAX = 7
_CIRCUMSTANCE = re.compile("(?:的话|的时候|之后|以后|之前|以前|期间|(?<!小)时)$")
_INTENTION = re.compile("想|打算|本来|原来|以为|准备|计划|应该|说好")
_CONTRAST = re.compile("但|不过|可是|可|然而|结果|只是|却|谁知|没想到")
_DEMONSTRATIVE = re.compile("[这那](?![里儿次天年周月边]|[一两几]?[次天年周月])|此|该")
_DENIED_VERB = re.compile("[我你他她它]?们?(?:不|没|没有)([^是有会能要得])")
_INTRANSITIVE = words("走 来 去 哭 笑 睡 醒 死 病 累 慌 怕 到 回来 回去 请假 吃饭 值班 出发")
_PERSON_END = re.compile(
    "[人员师生客友娘嫂婆爷叔姨婶舅姑哥姐弟妹爸妈爹导佬孩婴徒工长总嫂他她]$|儿子|嫂子|女儿|媳妇|老板|丈母|闺女|丫头|宝|家伙|医生|保安|护士|司机"
)
_CORRECTIONS = words("不是 不对 不不 错了 说错了")
_CALLED = words_chinese.KIN | words(
    "哥 姐 爸 妈 师兄 师姐 师弟 师妹 老板 老师 各位 大家 宝贝 亲爱的 叔 姨 婶 嫂子 大哥 大姐"
)
# A longer clause has its subject before.
_READ = 30
_BOUNDS = words("时候 之后 以后 之前 以前")
_UNFINISHED = words("就 因为 所以 但 但是 把 被 和 跟 而且 如果 要是 并 让 对")
# 你奶奶要在，准得扔了: a condition without its word.
_CERTAIN = re.compile("准得|准会|保准|早就")
_COMMAND = re.compile("(?:你|这个|这|可)*(?:一定|千万|要|可)*(?:记住|记牢|别忘|不要忘|勿忘)")


@dataclass
class Clause:
    """A clause [start, end) without its closing marks, and what it depends on.

    Whether a `doubtful` clause has its own subject is not certain. An `idle` clause says nothing.
    `needs` are the clauses without which this one is not kept. `lender` is the clause whose subject may replace the
    clauses that this one needs, or -1.
    """

    start: int
    end: int
    sentence: int
    tokens: list[Token]
    body: int = 0
    fragment: bool = False
    subject: bool = False
    doubtful: bool = False
    idle: bool = False
    needs: set[int] = field(default_factory=set)
    lender: int = -1


def chinese_clauses(text: str) -> list[Clause]:
    """Return the clauses of a Chinese or Japanese text in order, with what each of them needs."""
    japanese = is_japanese(text)
    comma = _JAPANESE_COMMA if japanese else _SPACE if _SPACED.search(text) else _COMMA
    found: list[Clause] = []
    tokens = tokenize(text)
    at = 0
    for number, (start, end) in enumerate(sentence_spans(text)):
        for begin, stop in _pieces(text, start, end, comma):
            while at < len(tokens) and tokens[at].start < begin:
                at += 1
            first = at
            while at < len(tokens) and tokens[at].end <= stop:
                at += 1
            own = tokens[first:at]
            if own:
                found.append(Clause(begin, stop, number, own))
    if japanese:
        return found
    for clause in found:
        _describe(clause)
    for index, clause in enumerate(found[:-1]):
        clause.idle = clause.idle or _is_call(text, found, index)
    for index in range(len(found)):
        _link(found, index)
    return found


def _is_call(text: str, clauses: list[Clause], index: int) -> bool:
    """Return whether a clause only calls a person, to whom the next clause speaks: 念初，我打算…"""
    clause, after = clauses[index], clauses[index + 1]
    leads = not index or clauses[index - 1].sentence != clause.sentence
    name = len(clause.tokens) == 1 and (clause.tokens[0].tag[:2] == "nr" or clause.tokens[0].text in _CALLED)
    return (
        leads and name and after.subject and not after.fragment and text.startswith(("，", "！"), clause.end)
    )


def _pieces(text: str, start: int, end: int, comma: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the parts of a sentence between its commas, without marks at their ends."""
    closed = [match.span() for match in _QUOTED.finditer(text, start, end)]
    pieces: list[tuple[int, int]] = []
    at, quote = start, 0
    for match in comma.finditer(text, start, end):
        while quote < len(closed) and closed[quote][1] <= match.start():
            quote += 1
        if quote < len(closed) and closed[quote][0] < match.start():
            continue
        if _NUMBER_COMMA.match(text, match.start()):
            continue
        pieces.append((at, match.start()))
        at = match.end()
    pieces.append((at, end))
    stripped = (_strip(text, *piece) for piece in pieces)
    return [piece for piece in stripped if has_word(text[slice(*piece)])]


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in "，,、；;：:。.！!？?…~～—-"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in "，,、；;：:。.！!？?…~～—"):
        end -= 1
    return start, end


def _describe(clause: Clause) -> None:
    """Find whether a clause is a fragment, has its own subject, or says nothing."""
    tokens = clause.tokens
    clause.body = opening_of(tokens)
    rest = tokens[clause.body :]
    named = any(token.text in _THIRD or token.tag[:2] == "nr" for token in tokens)
    said = "".join(token.text for token in tokens)
    social = is_small_talk(tokens) and not named and not _is_report(said)
    clause.idle = not rest or social or _COMMAND.match("".join(t.text for t in rest)) is not None
    clause.fragment = not any(_is_predicate(rest, index) for index in range(len(rest)))
    clause.subject = _has_subject(rest) or _has_described_subject(rest)
    clause.doubtful = clause.subject and not _has_subject(rest)


def opening_of(tokens: Sequence[Token]) -> int:
    """Return the number of words at the start of a clause that only connect it: 不过, 对了, 那."""
    index = 0
    while index < len(tokens):
        text = tokens[index].text
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if text in words_chinese.PLAIN_OPENERS or tokens[index].tag == "e":
            index += 1
        elif after is not None and text + after.text in words_chinese.PLAIN_OPENERS:
            index += 2
        elif (
            text in ("那", "可", "就", "而", "但")
            and after is not None
            and (
                after.text in _PERSONAL | _THIRD
                or after.tag in ("c", "d")
                or (after.text + "啊") in "就啊都啊"
            )
        ):
            index += 1
        else:
            break
    return index


def _is_predicate(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word is a verb or an adjective that says something of the subject."""
    token = tokens[index]
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if after is not None and after.text in _ASPECTS:
        return True
    if token.text in ("是", "有", "没", "没有", "不是", "在"):
        return True
    if token.tag == "vn":
        return index > 0 and (after is None or after.tag in ("y", "punct"))
    if token.tag == "a":
        return after is None or after.tag not in ("n", "uj", "nr", "ns", "nz", "ng")
    return token.tag in _PREDICATES


def _has_subject(tokens: Sequence[Token]) -> bool:
    """Return whether a person or thing is named before the first verb, outside a prepositional phrase."""
    governed = False
    bounds = [index for index, token in enumerate(tokens[:_READ]) if token.text in _BOUNDS and index]
    if (
        bounds
        and bounds[-1] + 1 < len(tokens)
        and tokens[0].text not in _PERSONAL
        and not any(token.tag == "p" for token in tokens[: bounds[-1]])
    ):
        # 结账的时候躲厕所
        tokens = tokens[bounds[-1] + 1 :]
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text in words_chinese.PRONOUNS and token.text in _PERSONAL | _THIRD:
            if not governed or tokens[index - 1].tag != "p":
                return True
            continue
        if token.text in _TIMES or token.text in _NO_SUBJECT or token.tag in _SKIPPED:
            continue
        if after is not None and after.tag == "f" and token.tag in ("n", "ns", "nz", "s"):
            # A place: 视频里一直看地板.
            continue
        if token.tag in ("m", "mq", "num"):
            if after is not None and after.tag[0] == "n" and not governed:
                return True
            continue
        if _is_predicate(tokens, index) and token.text != "在":
            return False
        if token.tag == "p" or token.text == "在":
            governed = True
        elif token.tag in _SUBJECTS and not governed:
            return True
    return False


def _has_described_subject(tokens: Sequence[Token]) -> bool:
    """Return whether the subject may follow a relative clause: 卖豆腐的阿姨来了."""
    for index in range(1, min(len(tokens) - 2, _READ)):
        if tokens[index].text == "的" and tokens[index + 1].tag[0] == "n":
            return any(_is_predicate(tokens, at) for at in range(index + 2, len(tokens)))
    return False


def _lacks_object(tokens: Sequence[Token]) -> bool:
    """Return whether what a verb is about is probably named in the clause before: 我见过一次, 我拿回实验室修."""
    verbs = [index for index, token in enumerate(tokens) if token.tag == "v"]
    if not verbs or tokens[0].text not in _PERSONAL | _THIRD:
        return False
    if any(token.text in ("把", "被", "是") or token.text in _INTRANSITIVE for token in tokens):
        return False
    ends_bare = tokens[-1].tag == "v" and len(tokens[-1].text) == 1 and len(verbs) > 1
    return ends_bare or not any(
        token.tag[0] == "n" or token.tag in ("r", "vn", "a", "s", "t") for token in tokens[1:]
    )


def _link(clauses: list[Clause], index: int) -> None:
    """Enter what a clause needs, and what of it the clause before needs."""
    clause = clauses[index]
    before = _before(clauses, index)
    inside = before >= 0 and clauses[before].sentence == clause.sentence
    rest = clause.tokens[clause.body :]
    if not rest:
        return
    if clause.fragment:
        _link_fragment(clauses, index, before if inside else -1)
    elif not clause.subject or clause.doubtful:
        _link_to_subject(clauses, index)
    if before < 0:
        return
    if (
        inside
        and clause.tokens[-1].text == "的"
        and not any(token.text in ("是", "我", "我们") for token in rest)
    ):
        clause.needs.add(before)
    if inside and _lacks_object(rest):
        clause.needs.add(before)
    denied = _DENIED_VERB.match("".join(token.text for token in rest))
    if inside and denied and any(denied[1] in token.text for token in clauses[before].tokens):
        # 算绝杀，不算数: neither holds without the other.
        clause.needs.add(before)
        clauses[before].needs.add(index)
    _link_pronoun(clauses, index, before)
    _link_connective(clauses, index, before, inside)
    _link_condition(clauses, index, before, inside)


def _before(clauses: list[Clause], index: int) -> int:
    """Return the nearest clause before that is not mere small talk, or -1."""
    return next((at for at in range(index - 1, max(-1, index - 6), -1) if not clauses[at].idle), -1)


def _link_fragment(clauses: list[Clause], index: int, before: int) -> None:
    if before >= 0:
        clauses[index].needs.add(before)
    elif not clauses[index].subject and index + 1 < len(clauses):
        clauses[index].needs.add(index + 1)
    elif index and not clauses[index].subject:
        clauses[index].needs.add(index - 1)


def _link_to_subject(clauses: list[Clause], index: int) -> None:
    """Let a clause without a subject need the clause that has it."""
    clause = clauses[index]
    host = next(
        (
            at
            for at in range(index - 1, max(-1, index - 12), -1)
            if clauses[at].subject and not clauses[at].idle
        ),
        -1,
    )
    if host < 0:
        return
    if clauses[host].sentence != clause.sentence and _person_of(clauses[host]) == "first":
        if clauses[index - 1].sentence != clause.sentence:
            return
    clause.needs.add(host)
    if clauses[host].sentence == clause.sentence and _may_borrow(clauses, host, index):
        clause.lender = host


def _person_of(clause: Clause) -> str:
    for token in clause.tokens[clause.body :]:
        if token.text in _PERSONAL:
            return "first"
        if token.text in _THIRD:
            return "third"
        if token.tag in _SUBJECTS and token.text not in _TIMES:
            return "noun"
    return ""


def _may_borrow(clauses: list[Clause], host: int, index: int) -> bool:
    """Return whether the subject of one clause is certainly that of a later one: 我们在重构…，最后决定采用…"""
    if any(token.text in _CAUSING for clause in clauses[host:index] for token in clause.tokens):
        return False
    first = clauses[host].tokens[clauses[host].body]
    rest = clauses[index].tokens[clauses[index].body :]
    verb = next((token for token in rest if token.tag not in ("d", "t")), None)
    named = first.text in ("我", "我们", "咱们") or first.tag == "nr"
    return named and verb is not None and verb.text in _DECIDING_VERBS


_CAUSING = words("让 叫 请 使 令 派 给 跟 和 有 认识 碰到 遇到 遇见 看见 说 告诉")
_DECIDING_VERBS = words("决定 打算 准备 计划 采用 选择")


def _link_pronoun(clauses: list[Clause], index: int, before: int) -> None:
    """Let a clause that begins with a pronoun need the clause that names the person or thing."""
    clause = clauses[index]
    rest = clause.tokens[clause.body :]
    opening = rest[0].text
    if any(token.text in _THIRD for token in rest[:3]):
        person = any(token.text in ("他", "她") for token in rest[:3])
        for at in range(before, max(-1, before - 8), -1):
            if any(_may_be_meant(token, person) for token in clauses[at].tokens):
                clause.needs.add(at)
                first = rest[0].text in ("他", "她")
                if at == index - 1 and first and clauses[at].sentence == clause.sentence and len(rest) > 1:
                    sole = [
                        token
                        for token in clauses[at].tokens
                        if token.tag[:2] == "nr" or token.text in words_chinese.KIN
                    ]
                    lender = clauses[at].tokens[clauses[at].body]
                    if sole == [lender] and rest[1].text in _DECIDING_VERBS:
                        clause.lender = at
                break
    elif _DEMONSTRATIVE.match(opening + (rest[1].text if len(rest) > 1 else "")):
        clause.needs.add(before)


def _may_be_meant(token: Token, person: bool) -> bool:
    """Return whether a pronoun may mean a noun: 他 and 她 mean persons."""
    if person:
        return (
            token.tag[:2] == "nr"
            or token.text in words_chinese.KIN
            or _PERSON_END.search(token.text) is not None
        )
    return token.tag[0] == "n" and token.tag != "num"


def _link_connective(clauses: list[Clause], index: int, before: int, inside: bool) -> None:
    """Link a clause with the one before if a word at its start says so: 就, 才, 也, 否则, 比如."""
    clause = clauses[index]
    start = [token.text for token in clause.tokens[: clause.body + 3]]
    subject = clause.body + (1 if clause.subject else 0)
    near = set(start[: max(1, subject + 1)])
    if inside or start[0] in words("不然 否则 要不 要不然 也 比如 例如 说 包括"):
        if near & _CONTINUING or (len(start) > 1 and "则" in start[:2]):
            clause.needs.add(before)
        if inside and near & _COMPLETING:
            clauses[before].needs.add(index)
    if (
        inside
        and start[0] in ("是", "而是")
        and any(token.text == "不是" for token in clauses[before].tokens)
    ):
        clauses[before].needs.add(index)
    if _CONTRAST.match(start[0]) and inside:
        opening = "".join(token.text for token in clauses[before].tokens)
        if _INTENTION.search(opening):
            clauses[before].needs.add(index)


def _link_condition(clauses: list[Clause], index: int, before: int, inside: bool) -> None:
    """Link a consequence with its condition, and a statement with the words that report it."""
    if not inside:
        return
    clause, last = clauses[index], clauses[before]
    opening = "".join(token.text for token in last.tokens[:4])
    text = "".join(token.text for token in last.tokens)
    if (_is_report(text) and not holds_negation(last.tokens)) or text.endswith("的话"):
        clause.needs.add(before)
        last.needs.add(index)
    if opening.lstrip("我你您他她们那").startswith(words_chinese.CONDITIONS) or _CIRCUMSTANCE.search(text):
        last.needs.add(index)
    if text in _CORRECTIONS or ("".join(token.text for token in clause.tokens) in _CORRECTIONS):
        # 包粽子……不是，炊年糕
        clause.needs.add(before)
        last.needs.add(index)
    strict = next(
        (
            at
            for at in range(before, max(-1, before - 8), -1)
            if clauses[at].sentence == clause.sentence and _is_strict(clauses[at])
        ),
        -1,
    )
    if strict >= 0:
        clause.needs.add(strict)
    if clause.tokens[0].text in _LATE and (
        index + 1 == len(clauses) or clauses[index + 1].sentence != clause.sentence
    ):
        clause.needs.add(before)
        last.needs.add(index)
    if last.tokens[-1].text in _UNFINISHED or _CERTAIN.match(
        "".join(token.text for token in clause.tokens[:3])
    ):
        clause.needs.add(before)
        last.needs.add(index)
    if clause.tokens[0].text in ("因为", "由于"):
        clause.needs.add(before)


def _is_strict(clause: Clause) -> bool:
    return any(token.text in _STRICT for token in clause.tokens[:5])


def _is_report(text: str) -> bool:
    return len(text) <= _REPORT_MAX and (
        _REPORT_END.search(text) is not None or _HEARSAY.search(text) is not None
    )
