"""Checks that decide whether a number that looks like an identifier can be one.

A shape alone also matches order numbers and timestamps. A check digit, a table of prefixes or a numbering plan rejects
nearly all of those. Every function takes the bare characters, without separators. phonenumbers knows the numbering
plans; it is imported with the first number that needs it, because an idle daemon does not.
"""

from __future__ import annotations

import string
from calendar import monthrange
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from operator import contains

NATIONAL_PLANS = ("CN", "US")
"""Numbering plans whose numbers are recognised without a country code."""

CUED_PLANS = ("GB", "FR", "DE", "JP", "TW")
"""Numbering plans whose numbers, with the leading zero, are recognised after a word such as `phone`."""

_PROVINCES = frozenset(
    (
        *range(11, 16),
        *range(21, 24),
        *range(31, 38),
        *range(41, 47),
        *range(50, 55),
        *range(61, 66),
        71,
        81,
        82,
    )
)
"""The first two digits of Chinese identity numbers (GB/T 2260)."""

_ACCOUNTS = """
    AD:8n+12c AE:19n AL:8n+16c AT:16n AZ:4a+20c BA:16n BE:12n BG:4a+6n+8c BH:4a+14c BI:23n BR:23n+1a+1c
    BY:4c+4n+16c CH:5n+12c CR:18n CY:8n+16c CZ:20n DE:18n DJ:23n DK:14n DO:4c+20n EE:16n EG:25n ES:20n FI:14n
    FK:2a+12n FO:14n FR:10n+11c+2n GB:4a+14n GE:2a+16n GI:4a+15c GL:14n GR:7n+16c GT:24c HN:4a+20n HR:17n HU:24n
    IE:4a+14n IL:19n IQ:4a+15n IS:22n IT:1a+10n+12c JO:4a+4n+18c KW:4a+22c KZ:3n+13c LB:4n+20c LC:4a+24c
    LI:5n+12c LT:16n LU:3n+13c LV:4a+13c LY:21n MC:10n+11c+2n MD:20c ME:18n MK:3n+10c+2n MN:16n MR:23n
    MT:4a+5n+18c MU:4a+19n+3a NI:4a+20n NL:4a+10n NO:11n OM:3n+16c PK:4a+16c PL:24n PS:4a+21c PT:21n QA:4a+21c
    RO:4a+16c RS:18n RU:14n+15c SA:2n+18c SC:4a+20n+3a SD:14n SE:20n SI:15n SK:20n SM:1a+10n+12c SO:19n ST:21n
    SV:4a+20n TL:19n TN:20n TR:6n+16c UA:6n+19c VA:18n VG:4a+16n XK:16n YE:4a+4n+18c
"""
"""By country, the digits (n), letters (a) and alphanumeric characters (c) after the check digits of an IBAN.

From the register of ISO 13616; a test compares it with python-stdnum.
"""

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_uppercase)
_CHARACTERS = {"n": _DIGITS, "a": _LETTERS, "c": _DIGITS | _LETTERS}


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
    if not number.isascii() or int(number[:2]) not in _PROVINCES:
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
    form = _account_forms().get(account[:2], ())
    if len(account) != len(form) or not all(map(contains, form, account)):
        return False
    # ISO 7064, mod 97-10: a letter counts as two digits, from A = 10 on.
    return int("".join(str(int(one, 36)) for one in account[4:] + account[:4])) % 97 == 1


def iban_length(country: str) -> int:
    """Return the number of characters of an account number of a country, 0 where the country has none."""
    return len(_account_forms().get(country, ()))


@cache
def _account_forms() -> dict[str, tuple[frozenset[str], ...]]:
    """Return the characters that are possible in each place of an account number, by country."""
    found = {}
    for country, parts in (entry.split(":") for entry in _ACCOUNTS.split()):
        form = [_LETTERS] * 2 + [_DIGITS] * 2
        for part in parts.split("+"):
            form += [_CHARACTERS[part[-1]]] * int(part[:-1])
        found[country] = tuple(form)
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
