"""Links of a memory are named by the rules of the closed list."""

from __future__ import annotations

import pytest

from ebbtide.entity_names import entity_key
from ebbtide.memory.naming import Locale, entity_link_name, memory_link_names


@pytest.mark.parametrize(
    ("text", "keywords", "entity", "name"),
    [
        ("Clara's cello needs new strings.", ("cello", "Clara"), "Clara", "belongs to"),
        ("Ravi is a member of the chess club.", ("Ravi", "chess club"), "chess club", "belongs to"),
        ("We discussed PostgreSQL with Anke.", ("PostgreSQL", "Anke"), "Anke", "discusses"),
        ("PostgreSQL is fast.", ("PostgreSQL",), "postgresql", "about"),
        ("The oven comes with the Miwe.", ("oven", "Miwe"), "Miwe", "involves"),
        ("I saw Ann in Porto.", ("Porto", "Ann"), "Ann", "mentions"),
        ("Annika left Porto.", ("Porto",), "Ann", "mentions"),
        ("登录模块的数据库迁好了。", ("数据库", "登录模块"), "登录模块", "属于"),
        ("我们昨天讨论了微服务。", ("微服务",), "微服务", "讨论"),
        ("克拉拉在波尔图。", ("克拉拉", "波尔图"), "克拉拉", "关于"),
        ("最后决定采用JWT。", ("方案", "JWT"), "JWT", "涉及"),
        ("我在波尔图看到克拉拉。", ("波尔图", "克拉拉"), "克拉拉", "提到"),
    ],
)
def test_the_first_rule_that_fits_names_the_link(
    text: str, keywords: tuple[str, ...], entity: str, name: str
) -> None:
    """Possession, talk, the first keyword, use and mention give the name, in this order."""
    locale: Locale = "en" if text.isascii() else "zh"
    is_first = entity_key(keywords[0]) == entity_key(entity)
    assert entity_link_name(text, entity, is_first=is_first, locale=locale) == name


def test_memories_are_related_by_their_common_entities() -> None:
    """A common entity that comes first in one memory gives about, another involves, none the order of time."""
    assert memory_link_names({"clara"}, {"cello", "clara"}, "en") == ("about", "about")
    assert memory_link_names({"clara"}, {"cello", "porto"}, "en") == ("involves", "involves")
    assert memory_link_names((), (), "zh") == ("之后", "之前")
