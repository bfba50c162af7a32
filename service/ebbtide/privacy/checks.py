"""Checks that decide whether a number that looks like an identifier can be one.

A shape alone also matches order numbers and timestamps. A check digit, a table of prefixes or a numbering plan rejects
nearly all of those. Every function takes the bare characters, without separators. python-stdnum knows the identity and
account numbers, phonenumbers the numbering plans; both are imported with the first number that needs them, because an
idle daemon does not.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

NATIONAL_PLANS = ("CN", "US")
"""Numbering plans whose numbers are recognised without a country code."""

CUED_PLANS = ("GB", "FR", "DE", "JP", "TW")
"""Numbering plans whose numbers, with the leading zero, are recognised after a word such as `phone`."""

_LENGTH = re.compile(r"(\d{1,3})!")


def is_card(digits: str) -> bool:
    """Return whether a payment card can have this number: a network's prefix, its length, and the check digit."""
    from stdnum import luhn

    return len(digits) in _card_lengths(digits) and luhn.is_valid(digits)


def _card_lengths(digits: str) -> range | tuple[int, ...]:
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":  # Visa
        return (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720:  # Mastercard
        return (16,)
    if two in (34, 37):  # American Express
        return (15,)
    if two in (36, 38, 39) or 300 <= three <= 305:  # Diners Club
        return range(14, 20)
    if two in (60, 62, 64, 65, 81) or 3528 <= four <= 3589:  # UnionPay, Discover, RuPay, Maestro, JCB
        return range(16, 20)
    # Maestro, and debit cards of Chinese banks from before UnionPay
    return range(16, 20) if two in (50, 56, 57, 58, 63, 67, 68, 69, 90, 94, 95, 98, 99) else ()


def is_chinese_id(number: str) -> bool:
    """Return whether an identity number of 18 characters is valid: province, date of birth, check character.

    `ric.validate` is too strict: it rejects a county that is younger than the person, although numbers are assigned
    later than births.
    """
    from stdnum import numdb
    from stdnum.cn import ric
    from stdnum.exceptions import ValidationError

    try:
        ric.get_birth_date(number)
    except ValidationError:
        return False
    province = numdb.get("cn/loc").info(number[:2])[0][1]
    return bool(province) and ric.calc_check_digit(number) == number[17].upper()


def is_social_security_number(digits: str) -> bool:
    """Return whether nine digits can be a US social security number.

    `stdnum.us.ssn` also rejects three published specimens, although a text may present one as a real number.
    """
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_iban(account: str) -> bool:
    """Return whether an account number fits its country's format and its check digits (ISO 13616)."""
    from stdnum import iban

    # The checks per country also reject banks that their registers do not list yet.
    return iban.is_valid(account, check_country=False)


def iban_length(country: str) -> int:
    """Return the number of characters of an account number of a country, 0 where the country has none."""
    from stdnum import numdb

    structure = numdb.get("iban").info(country)[0][1].get("bban", "")
    return 4 + sum(map(int, _LENGTH.findall(structure))) if structure else 0


def is_international_phone(digits: str) -> bool:
    """Return whether digits after `+` are a country code and a number of a length that the country uses."""
    import phonenumbers

    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return False
    reason = phonenumbers.is_possible_number_with_reason(number)
    return bool(reason == phonenumbers.ValidationResult.IS_POSSIBLE)


def is_national_phone(digits: str, plans: tuple[str, ...] = NATIONAL_PLANS) -> bool:
    """Return whether digits, dialled within one of the countries, are a number of its numbering plan."""
    import phonenumbers

    for plan in plans:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(digits, plan)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False


def is_personal_address(text: str) -> bool:
    """Return whether a text is an IPv4 or IPv6 address other than loopback, unspecified and broadcast."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or text == "255.255.255.255")
