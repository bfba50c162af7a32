"""Checks: whether a number that looks like an identifier can be one.

A shape alone finds order numbers and timestamps; a check digit, a table of prefixes or a calendar throws nearly all of
those out again. Every function here takes the bare characters, separators gone, and says yes or no. Nothing here knows
where in a text a number stands.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address

ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
ID_CHECKS = "10X98765432"
"""GB 11643: the weighted sum of the first 17 digits modulo 11 names the last character."""

PROVINCES = frozenset(
    [
        *range(11, 16),
        *range(21, 24),
        *range(31, 38),
        *range(41, 47),
        *range(50, 55),
        *range(61, 66),
        71,
        81,
        82,
        83,
    ]
)
"""The first two digits of a Chinese identity number: the province it was first given in."""

FIRST_BIRTH_YEAR, LAST_BIRTH_YEAR = 1880, 2099

IBAN_LENGTHS = {
    "AD": 24,
    "AE": 23,
    "AL": 28,
    "AT": 20,
    "AZ": 28,
    "BA": 20,
    "BE": 16,
    "BG": 22,
    "BH": 22,
    "BR": 29,
    "BY": 28,
    "CH": 21,
    "CR": 22,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "DO": 28,
    "EE": 20,
    "EG": 29,
    "ES": 24,
    "FI": 18,
    "FO": 18,
    "FR": 27,
    "GB": 22,
    "GE": 22,
    "GI": 23,
    "GL": 18,
    "GR": 27,
    "GT": 28,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IL": 23,
    "IQ": 23,
    "IS": 26,
    "IT": 27,
    "JO": 30,
    "KW": 30,
    "KZ": 20,
    "LB": 28,
    "LC": 32,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "LY": 25,
    "MC": 27,
    "MD": 24,
    "ME": 22,
    "MK": 19,
    "MR": 27,
    "MT": 31,
    "MU": 30,
    "NL": 18,
    "NO": 15,
    "PK": 24,
    "PL": 28,
    "PS": 29,
    "PT": 25,
    "QA": 29,
    "RO": 24,
    "RS": 22,
    "SA": 24,
    "SC": 31,
    "SD": 18,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "ST": 25,
    "SV": 28,
    "TL": 23,
    "TN": 24,
    "TR": 26,
    "UA": 29,
    "VA": 22,
    "VG": 24,
    "XK": 20,
}
"""How many characters an account number has, by country (the SWIFT registry)."""


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    total = sum(map(int, digits[::-2]))
    return (total + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])) % 10 == 0


def is_card(digits: str) -> bool:
    """Whether a payment card can have this number: a network's prefix, its length, and the check digit."""
    return len(digits) in _card_lengths(digits) and luhn_holds(digits)


def _card_lengths(digits: str) -> range | tuple[int, ...]:
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":  # Visa
        return (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720:  # Mastercard
        return (16,)
    if two in (34, 37):  # American Express
        return (15,)
    if two == 36 or two in (38, 39) or 300 <= three <= 305:  # Diners Club
        return range(14, 20)
    if two == 62 or two == 81 or two == 60 or two in (64, 65):  # UnionPay, Discover, RuPay, Maestro
        return range(16, 20)
    if 3528 <= four <= 3589:  # JCB
        return range(16, 20)
    if two == 50 or 56 <= two <= 58 or two in (63, 67, 68, 69) or two in (90, 94, 95, 98, 99):
        return range(16, 20)  # Maestro, and debit cards of Chinese banks from before UnionPay
    return ()


def is_chinese_id(number: str) -> bool:
    """Whether an identity number of 18 characters holds together: province, a day that was, check character."""
    if int(number[:2]) not in PROVINCES or not is_day(
        int(number[6:10]), int(number[10:12]), int(number[12:14])
    ):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, ID_WEIGHTS, strict=False))
    return ID_CHECKS[total % 11] == number[17].upper()


def is_day(year: int, month: int, day: int) -> bool:
    """Whether a person can be born on this day."""
    if not (FIRST_BIRTH_YEAR <= year <= LAST_BIRTH_YEAR and 1 <= month <= 12):
        return False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 29 if month == 2 and is_leap else 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    return 1 <= day <= longest


def is_social_security_number(digits: str) -> bool:
    """Whether nine digits can be a social security number: no part all zeros, no area never given out."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_iban(account: str) -> bool:
    """Whether an account number has its country's length and a remainder of 1 modulo 97 (ISO 13616)."""
    account = account.upper()
    if IBAN_LENGTHS.get(account[:2]) != len(account):
        return False
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1


def is_told_address(text: str) -> bool:
    """Whether a text is an address of somebody: one of IPv4 or IPv6 that is not everybody's own."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or text == "255.255.255.255")
