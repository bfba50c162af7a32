"""Checks of numbers: valid numbers are accepted, and numbers with one wrong digit are rejected."""

from __future__ import annotations

import re
from datetime import date
from itertools import product
from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import iban, luhn, numdb
from stdnum.cn import ric
from stdnum.exceptions import ValidationError

from ebbtide.privacy import checks

CARDS = ("4111111111111111", "5555555555554444", "378282246310005", "3530111333300000", "6222020000000000018")
CHINESE_ID = "110101199001010015"
IBANS = ("GB82WEST12345698765432", "DE89370400440532013000", "NO9386011117947", "FR1420041010050500013M02606")


def changed(text: str, place: int, by: int) -> str:
    """Return a text with one digit changed."""
    return f"{text[:place]}{(int(text[place]) + by) % 10}{text[place + 1 :]}"


@pytest.mark.parametrize("number", CARDS)
def test_a_card_number_with_one_wrong_digit_is_rejected(number: str) -> None:
    """Card numbers of every network are accepted; one wrong digit after the prefix is detected."""
    assert checks.is_card(number)
    for place in range(6, len(number)):
        assert not any(checks.is_card(changed(number, place, by)) for by in range(1, 10))


def test_a_prefix_or_length_that_no_network_uses_is_rejected() -> None:
    """A check digit alone does not make a card number: every tenth number has a correct one."""
    assert luhn.is_valid("1234567890123452")
    assert not checks.is_card("1234567890123452")
    assert luhn.is_valid("41111111111114")
    assert not checks.is_card("41111111111114")


def test_a_chinese_identity_number_with_one_wrong_digit_is_rejected() -> None:
    """Every wrong digit is detected, as are impossible dates and unknown provinces."""
    assert checks.is_chinese_id(CHINESE_ID)
    for place in range(17):
        assert not any(checks.is_chinese_id(changed(CHINESE_ID, place, by)) for by in range(1, 10))
    assert not checks.is_chinese_id("110101199001010016")


def born(day: str) -> str:
    """Return an identity number with this date of birth and the correct check character."""
    number = f"110101{day}0010"
    return f"{number[:-1]}{ric.calc_check_digit(number)}"


@pytest.mark.parametrize("day", ["19000229", "19901301", "19900431", "19900001"])
def test_an_impossible_date_is_no_date_of_birth(day: str) -> None:
    """Leap years and the lengths of months count."""
    assert not checks.is_chinese_id(born(day))


@given(st.dates(min_value=date(1880, 1, 1), max_value=date(2099, 12, 31)))
def test_every_day_of_the_calendar_can_be_a_date_of_birth(day: date) -> None:
    """An identity number with any date of the calendar is accepted."""
    assert checks.is_chinese_id(born(day.strftime("%Y%m%d")))


@pytest.mark.parametrize("digits", ["000123456", "666123456", "987654321", "123006789", "123450000"])
def test_numbers_never_given_out_are_no_social_security_numbers(digits: str) -> None:
    """Areas 000, 666 and from 900 on, and parts of zeros, are rejected."""
    assert not checks.is_social_security_number(digits)
    assert checks.is_social_security_number("219099999")


@pytest.mark.parametrize("account", IBANS)
def test_an_account_number_with_one_wrong_digit_is_rejected(account: str) -> None:
    """The remainder detects every wrong digit, and a length of another country is rejected."""
    assert checks.is_iban(account)
    assert not checks.is_iban(f"{account}0")
    for place in range(2, len(account)):
        if account[place].isdigit():
            assert not any(checks.is_iban(changed(account, place, by)) for by in range(1, 10))


def test_accounts_of_every_country_are_checked_as_by_another_implementation() -> None:
    """Every country code has the same length and the same valid characters as in python-stdnum."""
    codes = ["".join(pair) for pair in product(ascii_uppercase, repeat=2)]
    lengths = {code: checks.iban_length(code) for code in codes}
    structures = {code: numdb.get("iban").info(code)[0][1].get("bban", "") for code in codes}
    found = {code: sum(map(int, re.findall(r"(\d+)!", text))) for code, text in structures.items()}
    assert lengths == {code: 4 + length if length else 0 for code, length in found.items()}
    for code, length in lengths.items():
        for letter in ("1", "A", "a"):
            body = "".join(
                int(count) * ("1" if kind == "n" else letter if kind == "c" else "B")
                for count, kind in re.findall(r"(\d+)!([nac])", structures[code])
            )
            account = f"{code}{iban.calc_check_digits(f'{code}00{body}')}{body}" if length else f"{code}00"
            assert checks.is_iban(account) is iban.is_valid(account, check_country=False) is bool(length)
            for place in range(2, len(account)):
                other = f"{account[:place]}Z{account[place + 1 :]}"
                assert checks.is_iban(other) is iban.is_valid(other, check_country=False)


@given(st.text("0123456789", min_size=12, max_size=20))
def test_cards_are_checked_as_by_another_implementation(digits: str) -> None:
    """A number with the check digit of python-stdnum is accepted if and only if a network uses its prefix."""
    valid = digits + luhn.calc_check_digit(digits)
    known = len(valid) in checks._card_lengths(valid)
    assert checks.is_card(valid) is known
    assert not any(checks.is_card(changed(valid, len(digits), by)) for by in range(1, 10))


@given(st.from_regex(r"[0-9]{6}(19|20)[0-9]{9}", fullmatch=True))
def test_identity_numbers_are_checked_as_by_another_implementation(number: str) -> None:
    """A number has the check character of python-stdnum, a province that it knows, and a date."""
    valid = number + ric.calc_check_digit(f"{number}0")
    try:
        is_date = bool(ric.get_birth_date(valid))
    except ValidationError:
        is_date = False
    province = numdb.get("cn/loc").info(number[:2])[0][1]
    assert checks.is_chinese_id(valid) is (is_date and bool(province))


def test_every_province_is_known() -> None:
    """The provinces are those of python-stdnum."""
    for code in map("{:02}".format, range(10, 90)):
        number = f"{code}0101199001010010"[:17]
        valid = number + ric.calc_check_digit(f"{number}0")
        assert checks.is_chinese_id(valid) is bool(numdb.get("cn/loc").info(code)[0][1]), code


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_loopback_and_unspecified_addresses_are_not_personal(text: str, expected: bool) -> None:
    """Loopback, the unspecified address and texts that are not addresses are rejected."""
    assert checks.is_personal_address(text) is expected


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("4915112345678", True),
        ("12025550176", True),
        ("1234567", False),
        ("9991234567", False),
        ("0123456789", False),
    ],
)
def test_an_international_number_has_a_country_code_and_a_possible_length(
    digits: str, expected: bool
) -> None:
    """The country code exists, and the rest has a length that the country uses."""
    assert checks.is_international_phone(digits) is expected


def test_a_national_number_belongs_to_a_numbering_plan() -> None:
    """A number of one country is not one of another country."""
    assert checks.is_national_phone("13800138000")
    assert checks.is_national_phone("2125550143")
    assert not checks.is_national_phone("12345")
    assert checks.is_national_phone("01632960123", checks.CUED_PLANS)
    assert not checks.is_national_phone("01632960123")
