"""Decide which clauses of a Chinese text depend on which.

Chinese often omits the subject. A clause without its own subject needs the nearest clause before it that has one. A
pronoun needs its antecedent, a consequence its condition, and a fragment its neighbour. In case of doubt a clause needs
the one before it: without that it would say something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.chinese_clauses import (
    PERSONAL,
    SUBJECTS,
    THIRD,
    TIMES,
    Clause,
    clauses_of,
    is_report,
)
from ebbtide.language.builtin.negation import holds_negation
from ebbtide.language.builtin.scripts import is_japanese
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

# Words at the start of a clause, or after its subject, that point at the clause before.
_CONTINUING = word_list("chinese_continuing")
# Such a word points at the sentence before as well.
_RESUMING = words("不然 否则 要不 要不然 也 比如 例如 说 包括")
# The clause before needs a clause with such a word: 你来，我就走; 要么去，要么不去.
_COMPLETING = words("就 便 则 要么 或者 还是 就是")
# A condition needs a clause with such a word as well, and so do two like subjects: 就算你去，我也去.
_CONCEDED = words("也 都")
# Conditions, which every later clause of the sentence needs.
_STRICT = words("如果 要是 假如 假设 倘若 若 若是 只要 只有 除非 即使 就算 哪怕 万一 不管 无论 凡是 一旦")
_HYPOTHETIC = words("连 再 就是 不论 谁 什么 哪 怎么 多少")
# Conditions that may follow their consequence.
_LATE = words("除非 如果 要是 只要 前提")
_CIRCUMSTANCE = re.compile("(?:的话|的时候|之后|以后|之前|以前|期间|(?<!小)时)$")
_INTENTION = re.compile("想|打算|本来|原来|以为|准备|计划|应该|说好")
_CONTRAST = re.compile("但|不过|可是|可(?![以能])|然而|结果|只是|却|谁知|没想到")
# A number of persons whom the clause before names.
_GROUP = re.compile(
    "(?:[这那]|他们|她们|我们)?(?:两个?人|俩人?(?![个天])|三个?人|双方|两口子)(?![份间房床座])"
)
# An intention or belief that turned out otherwise, by itself or before a contrast.
_UNREAL = re.compile("(?:本来|原本)[我你他她]?们?(?:是|还|都)?(?:想|要|打算|计划|准备|说好)|(?<!不)以为")
_THEN = re.compile("[我你他她它]?们?(?:上回|上次|以前|从前|原来|原先|当初|本来)")
_NOW = re.compile("[我你他她它]?们?(?:这回|这次|现在|如今|后来)")
# A form of address, and the standard of a comparison, are no facts of their own.
_ADDRESS = re.compile("[叫喊骂][了过咗]?[我你他她佢][^，。！？“”「」]{0,6}([“「][^，。！？”」]{1,8}[”」])")
_STANDARD = re.compile("(?<![对相好一二三四五六七八九十零])比(?![赛较如方例分重])([^，。！？；、]{1,12})")
_DOUBTED = re.compile("本来|原来|原本|说好")
_DEMONSTRATIVE = re.compile("[这那](?![里儿次天年周月边]|[一两几]?[次天年周月])|此|该")
_DENIED_VERB = re.compile("[我你他她它]?们?(?:不|没|没有)([^是有会能要得])")
_INTRANSITIVE = words("走 来 去 哭 笑 睡 醒 死 病 累 慌 怕 到 回来 回去 请假 吃饭 值班 出发")
_TIMES_DONE = words("一次 一下 一回 一遍 两次 几次")
_PERSON = re.compile("|".join(ordered_list("chinese_person_patterns")))
_CORRECTIONS = words("不 不是 不对 不不 错了 说错了")
_UNFINISHED = words("就 因为 所以 但 但是 把 被 和 跟 而且 如果 要是 并 让 对")
# 你奶奶要在，准得扔了: a condition without its word.
_CERTAIN = re.compile("准得|准会|保准|早就")
# With these verbs another person may be the subject of what follows.
_CAUSING = words("让 叫 请 使 令 派 给 跟 和 有 认识 碰到 遇到 遇见 看见 说 告诉")
_DECIDING = words("决定 打算 准备 计划 采用 选择")
# How many clauses before a clause are read.
_HOSTS, _ANTECEDENTS = 11, 8


def linked_clauses(text: str) -> list[Clause]:
    """Return the clauses of a text in order, with what each of them needs."""
    found = clauses_of(text)
    if not is_japanese(text):
        for index in range(len(found)):
            _link(found, index)
    return found


def _changes(last: Clause, clause: Clause) -> bool:
    """Return whether a clause says that what the one before says of the past has changed: 上回是绿皮，这回是高铁."""
    return _THEN.match(last.said) is not None and _NOW.match(clause.said) is not None


def unsaid_spans(text: str) -> list[tuple[int, int]]:
    """Return the clauses [start, end) that say nothing, or that the text takes back: 包粽子……不是，炊年糕."""
    found = clauses_of(text)
    spans = [(clause.start, clause.end) for clause in found if clause.idle or _UNREAL.search(clause.said)]
    spans += [match.span(1) for match in _ADDRESS.finditer(text)]
    spans += [match.span(1) for match in _STANDARD.finditer(text)]
    for clause, after in pairwise(found):
        contrasted = _changes(clause, after) or (_CONTRAST.match(after.said) and _DOUBTED.search(clause.said))
        if clause.sentence == after.sentence and (after.said in _CORRECTIONS or contrasted):
            spans.append((clause.start, clause.end))
    return spans


def _link(clauses: list[Clause], index: int) -> None:
    """Enter what a clause needs, and what of it the clause before needs."""
    clause = clauses[index]
    before = next((at for at in range(index - 1, max(-1, index - 6), -1) if not clauses[at].idle), -1)
    inside = before >= 0 and clauses[before].sentence == clause.sentence
    if not clause.rest:
        return
    if clause.fragment:
        _link_fragment(clauses, index, before if inside else -1)
    elif not clause.subject or clause.doubtful:
        _link_to_subject(clauses, index)
    if before < 0:
        return
    if any(token.text in THIRD for token in clause.rest[:3]):
        _link_pronoun(clauses, index, before)
    elif _DEMONSTRATIVE.match("".join(token.text for token in clause.rest[:2])):
        clause.needs.add(before)
    # 我妈也去
    owned = (
        clause.subject
        and len(clause.rest) > 1
        and clause.rest[0].text in PERSONAL
        and clause.rest[1].tag == "n"
    )
    start = {token.text for token in clause.tokens[: clause.body + 1 + clause.subject + owned]}
    if start & _CONTINUING and (inside or clause.tokens[0].text in _RESUMING):
        clause.needs.add(before)
    if not inside:
        return
    conditional = any(token.text in _STRICT | _HYPOTHETIC for token in clauses[before].tokens)
    if (
        start & _COMPLETING
        or ((conditional or clause.subject) and start & _CONCEDED)
        or _completes(clauses[before], clause)
    ):
        clauses[before].needs.add(index)
    if _GROUP.match("".join(token.text for token in clause.rest)):
        clause.needs.add(before)
    if _lacks_unit(clauses, index, before):
        clause.needs.add(before)
    if _depends(clauses, index, before):
        clause.needs.add(before)
    if _belong_together(clauses, index, before):
        clause.needs.add(before)
        clauses[before].needs.add(index)
    for at in range(before, max(-1, before - _ANTECEDENTS), -1):
        if clauses[at].sentence == clause.sentence and any(t.text in _STRICT for t in clauses[at].tokens[:5]):
            clause.needs.add(at)
            break


def _completes(last: Clause, clause: Clause) -> bool:
    """Return whether a clause would mislead without the next one: 不是…，是…; 想…，但是…; 因为…，…"""
    first = clause.tokens[0].text
    if first in ("是", "而是") and any(token.text == "不是" for token in last.tokens):
        return True
    if _CONTRAST.match(first) and _INTENTION.search(last.said):
        return True
    if _changes(last, clause):
        return True
    opening = "".join(token.text for token in last.tokens[:4]).lstrip("我你您他她们那")
    return opening.startswith(words_chinese.CONDITIONS) or _CIRCUMSTANCE.search(last.said) is not None


def _lacks_unit(clauses: list[Clause], index: int, before: int) -> bool:
    """Return whether a clause compares a bare number with that of the clause before: 三十八分钟，跑一跑三十五."""
    last, clause = clauses[before].tokens, clauses[index].tokens
    counted = last[-1].tag == "q" or (last[-1].tag in ("num", "mq") and not last[-1].text[-1].isdigit())
    bare = clause[-1].tag == "m" or (clause[-1].tag == "num" and clause[-1].text[-1].isdigit())
    return counted and bare and len(last) > 1


def _depends(clauses: list[Clause], index: int, before: int) -> bool:
    """Return whether a clause describes the one before, gives its reason, or lacks the object that it names."""
    clause = clauses[index]
    if clause.tokens[-1].text == "的" and not any(
        token.text in ("是", "我", "我们") for token in clause.rest
    ):
        return True
    opening = [token.text for token in clause.tokens[:2]]
    return opening[0] in ("因为", "由于") or "则" in opening or _lacks_object(clause.rest)


def _belong_together(clauses: list[Clause], index: int, before: int) -> bool:
    """Return whether neither of two clauses holds without the other."""
    clause, last = clauses[index], clauses[before]
    if (is_report(last) and not holds_negation(last.tokens)) or last.said.endswith("的话"):
        return True
    denied = _DENIED_VERB.match("".join(token.text for token in clause.rest))
    if denied and denied[1] in last.said:
        # 算绝杀，不算数
        return True
    if last.said in _CORRECTIONS or clause.said in _CORRECTIONS:
        # 包粽子……不是，炊年糕
        return True
    ends = index + 1 == len(clauses) or clauses[index + 1].sentence != clause.sentence
    if ends and clause.tokens[0].text in _LATE:
        return True
    return last.tokens[-1].text in _UNFINISHED or _CERTAIN.match(clause.said) is not None


def _lacks_object(tokens: Sequence[Token]) -> bool:
    """Return whether what a verb is about is probably named in the clause before: 我见过一次, 我拿回实验室修."""
    verbs = [token for token in tokens if token.tag == "v"]
    if not verbs or tokens[0].text not in PERSONAL | THIRD:
        return False
    if any(token.text in ("把", "被", "是") or token.text in _INTRANSITIVE for token in tokens):
        return False
    if tokens[-1].tag == "v" and len(tokens[-1].text) == 1 and len(verbs) > 1:
        return True
    objects = ("r", "vn", "a", "s", "t", "m", "mq", "num")
    return not any(
        (token.tag[0] == "n" or token.tag in objects) and token.text not in _TIMES_DONE
        for token in tokens[1:]
    )


def _link_fragment(clauses: list[Clause], index: int, before: int) -> None:
    """Let a clause without a verb need its neighbour. A noun that begins a sentence needs none."""
    if before >= 0:
        clauses[index].needs.add(before)
    elif not clauses[index].subject and len(clauses) > 1:
        clauses[index].needs.add(index + 1 if index + 1 < len(clauses) else index - 1)


def _link_to_subject(clauses: list[Clause], index: int) -> None:
    """Let a clause without a subject need the clause that has it.

    The first clause of a sentence after one about the speaker or the listener is understood without it.
    """
    clause = clauses[index]
    near = range(index - 1, max(-1, index - 1 - _HOSTS), -1)
    host = next((at for at in near if clauses[at].subject and not clauses[at].idle), -1)
    if host < 0:
        return
    inside = clauses[host].sentence == clause.sentence
    leads = clauses[index - 1].sentence != clause.sentence
    if not inside and leads and _is_personal(clauses[host]):
        return
    clause.needs.add(host)
    if inside and _may_borrow(clauses, host, index):
        clause.lender = host


def _is_personal(clause: Clause) -> bool:
    """Return whether the subject of a clause is the speaker or the listener."""
    for token in clause.rest:
        if token.text in PERSONAL | THIRD or (token.tag in SUBJECTS and token.text not in TIMES):
            return token.text in PERSONAL
    return False


def _may_borrow(clauses: list[Clause], host: int, index: int) -> bool:
    """Return whether the subject of one clause is certainly that of a later one: 我们在重构…，最后决定采用…"""
    if any(token.text in _CAUSING for clause in clauses[host:index] for token in clause.tokens):
        return False
    first = clauses[host].rest[0]
    verb = next((token for token in clauses[index].rest if token.tag not in ("d", "t")), None)
    named = first.text in ("我", "我们", "咱们") or first.tag == "nr"
    return named and verb is not None and verb.text in _DECIDING


def _link_pronoun(clauses: list[Clause], index: int, before: int) -> None:
    """Let a clause with a pronoun need the clause that names the person or thing."""
    clause = clauses[index]
    person = any(token.text in ("他", "她") for token in clause.rest[:3])
    for at in range(before, max(-1, before - _ANTECEDENTS), -1):
        if not any(_may_be_meant(token, person) for token in clauses[at].tokens):
            continue
        clause.needs.add(at)
        decides = [token.text for token in clause.rest[1:2] if token.text in _DECIDING]
        if at == index - 1 and clauses[at].sentence == clause.sentence and decides:
            persons = [token for token in clauses[at].tokens if _is_named(token)]
            if clause.rest[0].text in ("他", "她") and persons == [clauses[at].rest[0]]:
                clause.lender = at
        return


def _is_named(token: Token) -> bool:
    return token.tag[:2] == "nr" or token.text in words_chinese.KIN


def _may_be_meant(token: Token, person: bool) -> bool:
    """Return whether a pronoun may mean a noun: 他 and 她 mean persons."""
    if person:
        return _is_named(token) or _PERSON.search(token.text) is not None
    return token.tag[0] == "n" and token.tag != "num"
