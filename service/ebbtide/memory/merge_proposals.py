"""Merge proposals: pairs of names that may mean one entity, and statements that say the same.

Similarity proposes, words decide. Two names are never proposed if their words differ in a number, a negation, a
direction, an owner, or in how a person is related to the user. A proposal changes nothing; only a ruling merges
(knowledge model, section 4). Vectors come from the caller.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ebbtide.entity_names import MIN_SHORT_CHARS, entity_key, is_name
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.slot_names import ALIASES, KIN, Range, canonical, slot_of
from ebbtide.memory.statements import DAY_MS
from ebbtide.memory.subjects import unqualified
from ebbtide.memory.values import canonical_value, normalised
from ebbtide.statements import Assertion
from ebbtide.text_caches import text_cache

MIN_SIMILARITY: Final = 0.85
"""Cosine of two names from which they are proposed."""
CERTAIN_SIMILARITY: Final = 0.95
"""Cosine from which `merge_policy=auto` needs neither a shared kind nor a shared neighbour."""
MIN_VECTORS: Final = 16
"""With fewer vectors their mean says little, and names are compared by their words alone."""
MAX_PROPOSALS: Final = 1000
MAX_TOKENS: Final = 64
_ROWS_AT_ONCE: Final = 4096

Difference = Literal["", "kind", "kin", "digits", "negation", "direction", "owner", "name"]
"""In what two names differ so that they cannot be one; empty if nothing excludes it."""
Why = Literal["spelling", "contains", "similar"]
"""Why two names are proposed."""


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as statements describe it."""

    entity: NodeId
    name: str
    kind: Range | Literal[""] = ""
    """The kind of thing; empty if no statement says it."""
    kin: str = ""
    """How the person is related to the user: a slot such as `sister`, or another word; empty if unknown."""
    neighbours: frozenset[NodeId] = frozenset()
    """The entities with which statements connect it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two entities that may be one."""

    first: NodeId
    second: NodeId
    why: Why
    similarity: float
    """The cosine of the vectors of the names; 1 for equal spelling, 0 if unknown."""
    is_automatic: bool
    """Whether `merge_policy=auto` merges them."""


# Differences that exclude that two names are one.

_TOKENS: Final = re.compile(r"\d{1,64}|'s\b|[a-z]{1,64}|[^\W\d_]")
_ROMAN: Final = re.compile(r"[ivx]{1,6}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS: Final = _words(
    "not no non never without anti un isn aren don doesn didn cannot can't 不 没 无 非 未 勿 反"
)
_NEGATIVE_PREFIXES: Final = ("un", "non", "in", "im", "ir", "il", "dis", "anti", "no")
_DIRECTIONS: Final = _words(
    """to from into onto out in off on up down over under above below before after left right
    north south east west northern southern eastern western northeast northwest southeast southwest
    upper lower inner outer front back rear inbound outbound incoming outgoing arrival departure entry exit entrance
    start end begin finish opening closing buy sell bought sold buying selling borrow lend borrowed lent
    sent received send receive won lost win lose import export increase decrease rise fall
    new old junior senior jr sr younger elder major minor first last
    东 西 南 北 上 下 左 右 前 后 内 外 进 出 入 到 离 来 去 买 卖 借 还 收 发 送 升 降 始 终 起 止 正 副 男 女"""
)
_OPPOSITES: Final = _words("大 小 新 旧 老 少 长 短 高 低 多 冷 热 有")
"""Characters that exclude only where the other name has another one in the same place."""
_COUNTED: Final = _words(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december spring summer autumn fall winter second third fourth fifth sixth seventh
    alpha beta gamma delta
    零 〇 一 二 两 三 四 五 六 七 八 九 十 百 千 甲 乙 丙 丁 春 夏 秋 冬"""
)
"""Words that count or order, like digits."""
_OWNERS: Final = _words("'s of 的 之")
_ROLES: Final = _words(
    """friend friends colleague colleagues coworker boss manager neighbour neighbor wife husband spouse partner
    girlfriend boyfriend fiance fiancee stepmother stepfather mother-in-law nephew niece grandson granddaughter
    assistant secretary landlord roommate flatmate classmate"""
)
_HAN_ROLES: Final = _words(
    """叔 伯 舅 姑 姨 婶 嫂 爸 妈 爷 奶 姐 妹 哥 弟 侄 甥 孙 儿子 女儿 孩子 父 母 丈夫 妻子 老公 老婆 太太 下属
    上司 领导 老板 同事 同学 朋友 邻居 房东 室友 秘书 助理 徒弟 师父"""
)
_TITLES: Final = _words(
    "mr mrs ms miss mx sir madam dr doctor prof professor captain judge father sister nurse"
)
_HAN_TITLES: Final = _words(
    """经理 总 总监 主任 老师 教授 医生 护士 律师 局长 处长 院长 校长 董事长 老板 师傅 先生 女士 太太 小姐 同学 工程师
    书记 博士 警官 阿姨 叔叔 教练"""
)
_MUTUAL_ROLES: Final = _words(
    "friend colleague neighbour neighbor classmate roommate flatmate boss manager landlord assistant secretary"
    " 邻居 室友 房东 同学 秘书 助理"
)
"""Roles of which one person may have several."""
_COUSINS: Final = _words("表哥 表弟 表姐 表妹 堂哥 堂弟 堂姐 堂妹")
"""Relatives who differ although one slot has all of them."""
_RELATIVES: Final = frozenset(
    alias
    for alias, slot in ALIASES.items()
    if slot in KIN and not contains_han(alias) and " " not in alias and "_" not in alias
)


@text_cache(4096)
def _tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, each number and each Han character by itself."""
    plain = normalised(name.replace("’", "'"))
    return tuple(_TOKENS.findall(plain)[:MAX_TOKENS])


def _rest(first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what remains of two sequences without what they begin and end with in common."""
    begin = 0
    while begin < min(len(first), len(second)) and first[begin] == second[begin]:
        begin += 1
    end = 0
    while end < min(len(first), len(second)) - begin and first[-1 - end] == second[-1 - end]:
        end += 1
    return first[begin : len(first) - end], second[begin : len(second) - end]


def difference(first: Named, second: Named) -> Difference:
    """Return in what two names differ so that they cannot mean one entity; empty if nothing excludes it."""
    if first.kind and second.kind and first.kind != second.kind:
        return "kind"
    if _kins_differ(first.kin, second.kin):
        return "kin"
    one, other = _tokens(first.name), _tokens(second.name)
    if sorted(filter(str.isdigit, one)) != sorted(filter(str.isdigit, other)):
        return "digits"
    rests = _rest(one, other)
    if any(_counts(rest, beside) for rest, beside in (rests, rests[::-1])):
        return "digits"
    said = {*rests[0], *rests[1]}
    if said & _NEGATIONS or _is_negation_of(*rests) or _is_negation_of(*rests[::-1]):
        return "negation"
    if said & _DIRECTIONS or all(rest and {*rest} & _OPPOSITES for rest in rests):
        return "direction"
    if said & _OWNERS:
        return "owner"
    if _names_kin(*rests):
        return "kin"
    return "name" if _is_longer_given_name(first, second) else ""


def _counts(rest: Sequence[str], beside: Sequence[str]) -> bool:
    """Return whether a rest contains a word that counts, or a letter that is no initial of the other rest."""
    for word in rest:
        if word in _COUNTED:
            return True
        is_letter = len(word) == 1 and word.isascii() and word.isalpha()
        if (is_letter or _ROMAN.fullmatch(word)) and not any(
            len(other) > len(word) and other.startswith(word) for other in beside
        ):
            return True
    return False


def _is_negation_of(rest: Sequence[str], beside: Sequence[str]) -> bool:
    """Return whether a rest is the other one with a negative prefix, as in "unavailable"."""
    return (
        len(rest) == len(beside) == 1
        and len(beside[0]) > 2
        and any(rest[0] == prefix + beside[0] for prefix in _NEGATIVE_PREFIXES)
    )


def _names_kin(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one rest names a relative or role, or both have a title."""
    said = {*one, *other}
    han = ["".join(rest) for rest in (one, other)]
    if said & (_ROLES | (_RELATIVES - _TITLES)) or any(role in rest for rest in han for role in _HAN_ROLES):
        return True
    return all({*rest} & _TITLES for rest in (one, other)) or all(
        any(title in rest for title in _HAN_TITLES) for rest in han
    )


def _is_longer_given_name(first: Named, second: Named) -> bool:
    """Return whether one is a Chinese name of two characters and the other has a third one, as 李明 and 李明华."""
    short, long = sorted((normalised(first.name), normalised(second.name)), key=len)
    return (
        "person" in (first.kind, second.kind)
        and (len(short), len(long)) == (2, 3)
        and all(contains_han(character) for character in long)
        and long.startswith(short)
        and short[0] not in "小阿老"
    )


def _kins_agree(first: str, second: str) -> bool:
    """Return whether two relations to the user are equal, unknown, or one is the general word for the other."""
    one, other = _kin(first), _kin(second)
    if first in _COUSINS and second in _COUSINS:
        return first == second
    return (
        not one
        or not other
        or one == other
        or any(exact in (f"elder_{kin}", f"younger_{kin}") for exact, kin in ((one, other), (other, one)))
    )


def _kins_differ(first: str, second: str) -> bool:
    """Return whether two relations to the user exclude that the persons are one.

    Two roles, such as friend and colleague, may be those of one person. A relative has no other relation.
    """
    return not _kins_agree(first, second) and any(
        kin not in _MUTUAL_ROLES and (kin in KIN or _names_kin(_tokens(kin), ()))
        for kin in (_kin(first), _kin(second))
    )


def _kin(words: str) -> str:
    return canonical(words).replace(" ", "_")


def is_one_by_name(first: Named, second: Named) -> bool:
    """Return whether two mentions are one entity by their names: equal keys, and neither kind nor kin differs."""
    return (
        entity_key(first.name) == entity_key(second.name)
        and not difference(first, second)
        and _kins_agree(first.kin, second.kin)
    )


# Which names are proposed.


def proposed(first: Named, second: Named, similarity: float = 0.0) -> Why | None:
    """Return why two names are proposed as one; None if they are not. `similarity` is the cosine of their vectors."""
    why: Why | None = None
    if normalised(first.name) == normalised(second.name):
        why = "spelling"
    elif _contains(first.name, second.name):
        why = "contains"
    elif similarity >= MIN_SIMILARITY:
        why = "similar"
    return None if why is None or difference(first, second) else why


def may_merge(first: Named, second: Named, similarity: float) -> bool:
    """Return whether `merge_policy=auto` merges two names without a request.

    People are never merged so, nor is a name of which no statement says what it means: it may be a person.
    """
    if "" in (first.kind, second.kind) or "person" in (first.kind, second.kind) or difference(first, second):
        return False
    if similarity >= CERTAIN_SIMILARITY:
        return True
    return similarity >= MIN_SIMILARITY and bool(first.neighbours & second.neighbours)


def _contains(first: str, second: str) -> bool:
    """Return whether the words of one name are a part of those of the other."""
    short, long = sorted((_tokens(first), _tokens(second)), key=len)
    return bool(short) and len(short) < len(long) and short in set(_parts(long))


def _parts(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a name that may be names: two Han characters, or three others, at least."""
    count = min(len(tokens), MAX_TOKENS)
    for begin in range(count):
        for end in range(begin + 1, count + (begin > 0)):
            part = tuple(tokens[begin:end])
            chars = sum(map(len, part))
            if chars >= (MIN_SHORT_CHARS if contains_han(part[0]) else 3):
                yield part


def _centred(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return vectors of length 1 without their mean, zeros where there is none; None if they are too few for a mean."""
    has_vector: NDArray[np.bool_] = (vectors != 0).any(axis=1)
    if has_vector.sum() < MIN_VECTORS:
        return None
    moved: NDArray[np.float32] = np.where(
        has_vector[:, None], vectors - vectors[has_vector].mean(axis=0), np.float32(0)
    )
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    moved /= np.where(lengths > 0, lengths, np.float32(1))
    return moved


class NameSearch:
    """The search for pairs of names that may be one, in steps. At least one name of each pair is new."""

    def __init__(
        self,
        names: Sequence[Named],
        new: Collection[NodeId] | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        """Prepare the search. `vectors` has a row for each name, of zeros where the name has no vector.

        Vectors are compared after their mean is subtracted, since the cosines of some models are all high.
        """
        rows = [row for row, one in enumerate(names) if is_name(one.name, entity_key(one.name))]
        self._names = [names[row] for row in rows]
        self._vectors = None if vectors is None else _centred(vectors[rows])
        self._new = frozenset(one.entity for one in self._names) if new is None else frozenset(new)
        self._by_tokens: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._found: dict[tuple[NodeId, NodeId], Proposal] = {}
        self._steps = self._run()

    def advance(self, is_time_up: Callable[[], bool]) -> bool:
        """Search until the time is up. Return whether the search is complete."""
        return all(not is_time_up() for _ in self._steps)

    @property
    def found(self) -> list[Proposal]:
        """The proposals so far, at most MAX_PROPOSALS, the most similar first."""
        order = sorted(
            self._found.values(),
            key=lambda one: (one.why != "spelling", -one.similarity, one.first, one.second),
        )
        return order[:MAX_PROPOSALS]

    def _run(self) -> Iterator[None]:
        """Yield between pieces of work of a few milliseconds."""
        for place, one in enumerate(self._names):
            self._by_tokens[_tokens(one.name)].append(place)
            if place % 256 == 255:
                yield
        for place, one in enumerate(self._names):
            tokens = _tokens(one.name)
            for part in {*_parts(tokens), tokens}:
                for other in self._by_tokens.get(part, ()):
                    self._consider(place, other, 0.0)
            if place % 32 == 31:
                yield
        yield from self._compare_vectors()

    def _compare_vectors(self) -> Iterator[None]:
        """Compare the vectors of new names with those of all names, a block at a time."""
        if self._vectors is None:
            return
        for place, one in enumerate(self._names):
            if one.entity not in self._new or not self._vectors[place].any():
                continue
            for begin in range(0, len(self._names), _ROWS_AT_ONCE):
                cosines = self._vectors[begin : begin + _ROWS_AT_ONCE] @ self._vectors[place]
                for row in np.flatnonzero(cosines >= MIN_SIMILARITY)[:MAX_PROPOSALS].tolist():
                    self._consider(place, begin + row, float(cosines[row]))
                yield

    def _consider(self, place: int, other: int, similarity: float) -> None:
        """Record a pair if it is proposed, with the higher similarity."""
        if place == other:
            return
        first, second = sorted((self._names[place], self._names[other]), key=lambda one: one.entity)
        if first.entity == second.entity or not {first.entity, second.entity} & self._new:
            return
        key = first.entity, second.entity
        known = self._found.get(key)
        if known is not None and known.similarity >= similarity:
            return
        why = proposed(first, second, similarity)
        if why is not None:
            similarity = 1.0 if why == "spelling" else min(1.0, similarity)
            self._found[key] = Proposal(*key, why, similarity, may_merge(first, second, similarity))


# Names as statements describe them, and statements that say the same.


def described(assertions: Iterable[Assertion], names: dict[NodeId, str]) -> list[Named]:
    """Return the entities of `names` as assertions describe them: what they are, whose relatives, and with whom."""
    kinds: dict[NodeId, set[Range | Literal[""]]] = defaultdict(set)
    kins: dict[NodeId, set[str]] = defaultdict(set)
    neighbours: dict[NodeId, set[NodeId]] = defaultdict(set)
    for one in assertions:
        target, slot = one.object_entity, slot_of(one.slot)
        if not target or one.negated:
            continue
        neighbours[one.subject].add(target)
        neighbours[target].add(one.subject)
        if slot.range in ("person", "organisation", "place", "language"):
            kinds[target].add(slot.range)
        if slot.range == "person":
            kins[target].add(slot.name)
    found = []
    for entity, full_name in names.items():
        name, relation = unqualified(full_name)
        if relation:
            kinds[entity].add("person")
            kins[entity].add(relation)
        kind, kin = _only(kinds[entity], ""), _only(kins[entity], "")
        found.append(Named(entity, name, kind, kin, frozenset(neighbours[entity])))
    return found


_Value = TypeVar("_Value", bound=str)


def _only(values: set[_Value], otherwise: _Value) -> _Value:
    """Return the value if there is exactly one."""
    return next(iter(values)) if len(values) == 1 else otherwise


Fingerprint = tuple[NodeId, str, str, bool]


def fingerprint(assertion: Assertion, root: Callable[[NodeId], NodeId]) -> Fingerprint:
    """Return what a statement says: merged subject, slot, value or merged entity, and whether it denies it."""
    entity = assertion.object_entity
    value = f"n{root(entity)}" if entity else canonical_value(assertion.object)
    return root(assertion.subject), assertion.slot, value, assertion.negated


def same_statements(
    assertions: Iterable[Assertion], root: Callable[[NodeId], NodeId]
) -> list[tuple[NodeId, ...]]:
    """Return groups of statements that say the same. Events are the same if their days are equal or adjacent."""
    by_print: dict[Fingerprint, list[Assertion]] = defaultdict(list)
    for one in assertions:
        by_print[fingerprint(one, root)].append(one)
    groups: list[tuple[NodeId, ...]] = []
    for same in by_print.values():
        for group in _by_day(same):
            statements = dict.fromkeys(one.statement for one in sorted(group, key=lambda one: one.entry))
            if len(statements) > 1:
                groups.append(tuple(statements))
    return groups


def _by_day(assertions: Sequence[Assertion]) -> Iterator[list[Assertion]]:
    """Yield groups: all that are no events, and events within a day of the first of their group."""
    yield [one for one in assertions if one.kind != "event"]
    group: list[Assertion] = []
    for one in sorted(
        (one for one in assertions if one.kind == "event"), key=lambda one: (_day(one), one.entry)
    ):
        if group and _day(one) - _day(group[0]) > 1:
            yield group
            group = []
        group.append(one)
    yield group


def _day(assertion: Assertion) -> int:
    time_ms = assertion.told_at_ms if assertion.since_ms is None else assertion.since_ms
    return time_ms // DAY_MS
