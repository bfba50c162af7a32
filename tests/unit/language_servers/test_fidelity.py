"""A shortening by a model on a server says only what the memory says."""

from __future__ import annotations

import pytest

from ebbtide.language.port import BadReply
from ebbtide.language.served.fidelity import check_fidelity

CELLO = "My sister Clara plays the cello in an orchestra in Porto, and she doesn't practise on Sundays."
JWT = "我们在重构用户系统的登录模块，昨天开会讨论了一下午，最后决定采用JWT方案，不再用session了。"


@pytest.mark.parametrize(
    ("content", "present"),
    [
        ("My sister Clara plays the cello in Porto", CELLO),
        ("Clara doesn’t practise on Sundays.", CELLO),
        ("She plays the cello in Porto.", CELLO),
        ("我们决定采用JWT方案，不再用session", JWT),
        ("数据库我们从MySQL 5.7迁到了PostgreSQL 15", "登录模块的数据库我们从MySQL 5.7迁到了PostgreSQL 15。"),
        ("", CELLO),
    ],
)
def test_words_of_the_memory_are_accepted(content: str, present: str) -> None:
    """A shortening in the words of the memory passes, also with a new first word and joined clauses."""
    check_fidelity(content, present)


@pytest.mark.parametrize(
    ("content", "present"),
    [
        ("My sister Clara plays the cello in Lisbon", CELLO),
        ("Bruno, my sister Clara plays the cello in Porto", CELLO),
        ("My sister Clara never plays the cello in Porto", CELLO),
        ("My sister Clara plays the cello in Porto since 2019", CELLO),
        ("我们不决定采用JWT方案，没用session", JWT),
        ("我们在北京决定采用JWT方案，不再用session", JWT),
        ("我们决定采用JWT2方案，不再用session", JWT),
        ("Relatives make music abroad with great regularity", CELLO),
        ("团队选定了令牌登录的新做法", JWT),
    ],
)
def test_additions_are_bad_replies(content: str, present: str) -> None:
    """A name, number, code or negation that the memory lacks, or too many new words, make a reply unusable."""
    with pytest.raises(BadReply):
        check_fidelity(content, present)
