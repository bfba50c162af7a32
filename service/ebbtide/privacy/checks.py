"""Checks that decide whether a number that looks like an identifier can be one.

A shape alone also matches order numbers and timestamps. A check digit, a table of prefixes or a numbering plan rejects
nearly all of those. Every function takes the bare characters, without separators. phonenumbers knows the numbering
plans; it is imported with the first number that needs it, because an idle daemon does not.
"""

from __future__ import annotations

import re
from calendar import monthrange
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address

NATIONAL_PLANS = ("CN", "US")
"""Numbering plans whose numbers are recognised without a country code."""

CUED_PLANS = ("GB", "FR", "DE", "JP", "TW")
"""Numbering plans whose numbers, with the leading zero, are recognised after a word such as `phone`."""

_PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[12]")
"""The first two digits of Chinese identity numbers (GB/T 2260)."""

_ACCOUNTS = """
    AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BI23n BR23n1a1c BY4c4n16c CH5n12c CR18n CY8n16c
    CZ20n DE18n DJ23n DK14n DO4c20n EE16n EG25n ES20n FI14n FK2a12n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c GL14n
    GR7n16c GT24c HN4a20n HR17n HU24n IE4a14n IL19n IQ4a15n IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c LC4a24c
    LI5n12c LT16n LU3n13c LV4a13c LY21n MC10n11c2n MD20c ME18n MK3n10c2n MN16n MR23n MT4a5n18c MU4a19n3a NI4a20n NL4a10n
    NO11n OM3n16c PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n RU14n15c SA2n18c SC4a20n3a SD14n SE20n SI15n SK20n
    SM1a10n12c SO19n ST21n SV4a20n TL19n TN20n TR6n16c UA6n19c VA18n VG4a16n XK16n YE4a4n18c
"""
"""By country, the digits (n), letters (a) and alphanumeric characters (c) after the check digits of an IBAN.

From the register of ISO 13616; a test compares it with python-stdnum.
"""

_PART = re.compile(r"(\d{1,2})([nac])")
_CHARACTERS = {"n": "[0-9]", "a": "[A-Z]", "c": "[0-9A-Z]"}


def is_card(digits: str) -> bool:
    """Return whether a payment card can have this number: a network's prefix, its length, and the check digit."""
    return digits.isascii() and len(digits) in _card_lengths(digits) and _luhn(digits) == 0


def _luhn(digits: str) -> int:
    """Return the Luhn checksum of digits: 0 if the last one is the check digit."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(number // 10 + number % 10 for number in doubled)) % 10


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

    Counties are not checked: they change, and a number may be assigned long after the birth.
    """
    if not number.isascii() or not _PROVINCE.match(number):
        return False
    year, month, day = int(number[6:10]), int(number[10:12]), int(number[12:14])
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return False
    # ISO 7064, mod 11-2: 13 is 2 modulo 11.
    check = 10 if number[17] in "Xx" else int(number[17])
    return (2 * int(number[:17], 13) + check) % 11 == 1


def is_social_security_number(digits: str) -> bool:
    """Return whether nine digits can be a US social security number.

    Three published specimens are accepted, because a text may present one as a real number.
    """
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_iban(account: str) -> bool:
    """Return whether an account number fits its country's format and its check digits (ISO 13616)."""
    account = account.upper()
    form = _account_forms().get(account[:2])
    if form is None or not form[1].fullmatch(account, 2):
        return False
    # ISO 7064, mod 97-10: a letter counts as two digits, from A = 10 on.
    return int("".join(str(int(one, 36)) for one in account[4:] + account[:4])) % 97 == 1


def iban_length(country: str) -> int:
    """Return the number of characters of an account number of a country, 0 where the country has none."""
    return _account_forms().get(country, (0, None))[0]


@cache
def _account_forms() -> dict[str, tuple[int, re.Pattern[str]]]:
    """Return the length of an account number by country, and a pattern of what follows the country code."""
    found = {}
    for entry in _ACCOUNTS.split():
        parts = _PART.findall(entry[2:])
        pattern = "".join(f"{_CHARACTERS[kind]}{{{count}}}" for count, kind in parts)
        found[entry[:2]] = 4 + sum(int(count) for count, _ in parts), re.compile("[0-9]{2}" + pattern)
    return found


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
