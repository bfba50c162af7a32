"""Words of a plan: a sentence in the present tense about a change or an appointment at a time to come."""

from __future__ import annotations

import pytest

from ebbtide.memory.values import tells_of_plan

PLANS = """
I will move to Oslo in May
I'm moving to Oslo in January
We are relocating to Porto next spring
I'm starting at Acme on Monday
I am getting married in June
She is retiring at the end of the month of May, in two months
I'm leaving Acme in two weeks
My exam is in January
My appointment with the dentist is on 3 March
My flight to Rome is tomorrow
我一月搬到奥斯陆
我下个月搬去上海
我3月15日入职华为
我们六月结婚
我明年毕业
考试在一月
我的手术定在三月五号
"""
OTHERS = """
I moved to Oslo in January
I'm living in Oslo since January
I was moving to Oslo in January
My exam was in January
My birthday is in January
I'm moving boxes
I am leaving work early every Monday
My sister lives in Porto
I'm starting to like jazz
我一月搬到了奥斯陆
我是一月搬到奥斯陆的
我去年一月搬到奥斯陆
我从一月搬到奥斯陆以来很忙
我一月去过奥斯陆
我每年三月去日本
我住在上海
我二十一月嫂
"""


@pytest.mark.parametrize("quote", PLANS.strip().splitlines())
def test_the_present_tense_tells_of_a_plan(quote: str) -> None:
    """A change or an appointment with a time to come is a plan, also without "will" or 打算."""
    assert tells_of_plan(quote)


@pytest.mark.parametrize("quote", OTHERS.strip().splitlines())
def test_the_past_and_habits_are_no_plans(quote: str) -> None:
    """A past change, a habit, and a sentence without a time to come are no plans."""
    assert not tells_of_plan(quote)
