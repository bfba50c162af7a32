"""Checks of numbers: what holds, and that one wrong digit does not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.privacy import checks

CARDS = ("4111111111111111", "5555555555554444", "378282246310005", "3530111333300000", "6222020000000000018")
CHINESE_ID = "110101199001010015"
IBANS = ("GB82WEST12345698765432", "DE89370400440532013000", "NO9386011117947", "FR1420041010050500013M02606")


def changed(text: str, place: int, by: int) -> str:
    """A text with one digit made another."""
    return f"{text[:place]}{(int(text[place]) + by) % 10}{text[place + 1 :]}"


@pytest.mark.parametrize("number", CARDS)
def test_a_card_number_with_one_wrong_digit_is_none(number: str) -> None:
    """Cards of every network hold; a slip in any digit after the prefix is noticed."""
    assert checks.is_card(number)
    for place in range(6, len(number)):
        assert not any(checks.is_card(changed(number, place, by)) for by in range(1, 10))


def test_a_prefix_or_length_that_no_card_has_is_none() -> None:
    """A check digit alone makes no card: every tenth number has one."""
    assert checks.luhn_holds("1234567890123452")
    assert not checks.is_card("1234567890123452")
    assert checks.luhn_holds("41111111111114")
    assert not checks.is_card("41111111111114")


def test_a_chinese_identity_number_with_one_wrong_digit_is_none() -> None:
    """Every single slip is noticed, and so are days that never were and provinces that do not exist."""
    assert checks.is_chinese_id(CHINESE_ID)
    for place in range(17):
        assert not any(checks.is_chinese_id(changed(CHINESE_ID, place, by)) for by in range(1, 10))
    assert not checks.is_chinese_id("110101199001010016")


@pytest.mark.parametrize(
    ("day", "was"),
    [
        ((2000, 2, 29), True),
        ((1900, 2, 29), False),
        ((1992, 2, 29), True),
        ((1990, 13, 1), False),
        ((1990, 4, 31), False),
        ((1990, 0, 1), False),
        ((1790, 1, 1), False),
        ((1990, 12, 31), True),
    ],
)
def test_days_are_those_of_the_calendar(day: tuple[int, int, int], was: bool) -> None:
    """Leap years, long and short months, and nobody from another age."""
    assert checks.is_day(*day) is was


@given(st.dates(min_value=date(1880, 1, 1), max_value=date(2099, 12, 31)))
def test_every_day_there_was_is_a_day(day: date) -> None:
    """What the calendar of the standard library has, this one has."""
    assert checks.is_day(day.year, day.month, day.day)


@pytest.mark.parametrize("digits", ["000123456", "666123456", "987654321", "123006789", "123450000"])
def test_numbers_never_given_out_are_no_social_security_numbers(digits: str) -> None:
    """Areas 000, 666 and from 900 on, and parts of zeros, belong to nobody."""
    assert not checks.is_social_security_number(digits)
    assert checks.is_social_security_number("219099999")


@pytest.mark.parametrize("account", IBANS)
def test_an_account_number_with_one_wrong_digit_is_none(account: str) -> None:
    """The remainder notices every slip, and a length of another country's is refused."""
    assert checks.is_iban(account)
    assert not checks.is_iban(f"{account}0")
    for place in range(2, len(account)):
        if account[place].isdigit():
            assert not any(checks.is_iban(changed(account, place, by)) for by in range(1, 10))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("192.0.2.1", True),
        ("10.0.0.1", True),
        ("2001:db8::1", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("0.0.0.0", False),
        ("256.1.1.1", False),
        ("1.2.3", False),
        ("1:2:3", False),
    ],
)
def test_an_address_is_somebodys(text: str, told: bool) -> None:
    """Loopback and the unspecified address are everybody's own; what is no address is none."""
    assert checks.is_told_address(text) is told
