"""Numbers that stand for a person or an account: bank cards and accounts, identity and telephone numbers.

Their patterns are tried where a run of digits begins, and only in stretches that have digits enough. Each says what may
not stand beside it: a number is not part of a longer one, nor of a hash, where letters stand between digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ebbtide.privacy import checks
from ebbtide.privacy.shape import Accept, Pattern, Place, bare, before, whole

_APART = r"(?<!\d)(?<!\d[A-Za-z])"
_OVER = r"(?!\d)(?![A-Za-z]\d)"

_SIGNS = r" ./_|~·•‧・∙。-"
"""What people put between the groups of a number."""

_GAP = r"(?: ?[./_|~·•‧・∙。-] ?| )"

_STRETCH = re.compile(rf"[0-9](?:[()+{_SIGNS}]{{0,3}}[0-9]){{6,}}+")
"""Seven digits at least: the fewest that any number here has."""

_RUN = re.compile(r"[0-9]+")


def number_begins(text: str) -> list[int]:
    """Where a number can begin: at a run of digits, or at the plus or bracket before it."""
    begins: list[int] = []
    for stretch in _STRETCH.finditer(text):
        for run in _RUN.finditer(text, *stretch.span()):
            begin = run.start()
            for earlier in (begin - 2, begin - 1):
                if earlier >= 0 and all(c in "+(" for c in text[earlier:begin]):
                    begins.append(earlier)
            begins.append(begin)
    return begins


def _where(holds: Callable[[str], bool]) -> Accept:
    return lambda match: match.span() if holds(bare(match[0])) else None


# --- numbers with a check ----------------------------------------------------------------------------------

_CARD = re.compile(
    _APART + r"(?<!\d\.)(?:"
    r"\d{13,19}"
    rf"|\d{{4}}(?P<four>{_GAP})\d{{4}}(?P=four)\d{{4}}(?P=four)\d{{4}}(?:(?P=four)\d{{1,3}})?(?!\.\d)"
    rf"|\d{{4}}(?P<six>{_GAP})\d{{6}}(?P=six)\d{{4,5}}(?!\.\d)"
    rf"|\d{{6}}{_GAP}\d{{10,13}}"
    r")" + _OVER
)

_CHINESE_ID = re.compile(
    _APART + rf"[1-8]\d{{5}}(?P<gap>{_GAP}?)(?:18|19|20)\d{{6}}(?P=gap)\d{{3}}[\dXx]" + _OVER
)

_SSN_CUE = re.compile(r"(?i)ssn|social|社保|社会安全")
_SSN = re.compile(_APART + rf"(?<![\d.-][.-])\d{{3}}(?P<gap>{_GAP}?)\d{{2}}(?P=gap)\d{{4}}(?!-\d)" + _OVER)


def _social_security(match: re.Match[str]) -> Place | None:
    # With dashes the shape speaks for itself; without, nine digits are anything unless the text says what they are.
    if match["gap"] != "-" and not _SSN_CUE.search(before(match, 40)):
        return None
    return match.span() if checks.is_social_security_number(bare(match[0])) else None


_IBAN = re.compile(r"[A-Za-z]{2}[0-9]{2}(?<![A-Za-z0-9].{4})(?:[ ./_-]?[A-Za-z0-9]){11,30}", re.DOTALL)


def _account(match: re.Match[str]) -> Place | None:
    """The account number at the start of a match: as long as its country says, with nothing joined to it."""
    length = checks.IBAN_LENGTHS.get(match[0][:2].upper())
    if length is None:
        return None
    text, end = match.string, match.start() + 1
    for _ in range(length - 1):
        end += text[end : end + 1] in (" ", "-", ".", "/", "_")
        end += 1
    following = text[end : end + 1]
    is_over = not (following.isascii() and following.isalnum())
    return (match.start(), end) if is_over and checks.is_iban(bare(text[match.start() : end])) else None


ACCOUNTS = (Pattern("iban", _IBAN, _account),)

NUMBERS = (
    Pattern("national_id", _CHINESE_ID, _where(checks.is_chinese_id)),
    Pattern("national_id", _SSN, _social_security),
    Pattern("card", _CARD, _where(checks.is_card)),
)

# --- telephone numbers -------------------------------------------------------------------------------------

_PHONE_CUE = re.compile(
    r"(?i)phone|mobile|cell|\btel\b|telephone|call|text|fax|dial|ring|reach|number|whatsapp|"
    r"电话|手机|号码|座机|传真|拨打|致电|联系|热线|微信"
)
_AREA = r"(?:10|2\d|[3-9]\d{2})"
"""Chinese area codes, without the zero that stands before them at home."""

_MOBILE = re.compile(
    _APART + rf"(?<!0\.)(?<!\+)(?:\(?(?:\+|00)86\)?{_GAP}?|86{_GAP}?)?"
    r"1[3-9](?:\d[ -]?\d{4}[ -]?\d{4}"
    rf"|\d(?P<three>{_GAP})\d{{4}}(?P=three)\d{{4}}|\d{{2}}(?P<four>{_GAP})\d{{3}}(?P=four)\d{{4}})"
    + _OVER
    + r"(?![./]\d)"
)

_BRACKETED = re.compile(rf"(?<!\d)\(1[3-9]\d\){_GAP}?\d{{4}}{_GAP}?\d{{4}}" + _OVER)

_SPREAD = re.compile(_APART + rf"1{_GAP}?[3-9](?:{_GAP}?\d){{9}}" + _OVER + r"(?![./]\d)")
"""A mobile number in groups of any size: only after a word that announces one."""

_LANDLINE = re.compile(
    r"(?<![\d.])(?<!\d[A-Za-z-])(?:"
    rf"\(0{_AREA}\){_GAP}?[2-8]\d{{2,3}}{_GAP}?\d{{4}}"
    rf"|\(?(?:\+|00)86\)?{_GAP}?(?:\(0\))?0?{_AREA}{_GAP}?[2-8]\d{{2,3}}{_GAP}?\d{{4}}"
    rf"|0{_AREA}[ -][2-8]\d{{2,3}}[ -]?\d{{4}}|0{_AREA}(?P<area>{_GAP})[2-8]\d{{2,3}}(?P=area)\d{{4}}"
    rf"|[48]00(?P<short>{_GAP})(?:\d{{3}}(?P=short)\d{{4}}|\d{{4}}(?P=short)\d{{3}})"
    r")" + _OVER
)

_AMERICAN = re.compile(
    r"(?<![\d./])(?<!\d[A-Za-z-])(?:\+?1[ ./_·•-]?)?"
    r"(?:\([2-9]\d{2}\)[ ./_·•-]?|[2-9]\d{2}[ ./_·•-])[2-9]\d{2}[ ./_·•-]\d{4}" + _OVER + r"(?![./-]\d)"
)

_INTERNATIONAL = re.compile(
    r"(?<![\dA-Za-z+])(?:\+[1-9]\d{0,2}|00[1-9]\d{0,2}[ -])(?:[ .-]?\(\d{1,4}\))?(?:[ ./_·•-]?\d){6,13}"
    + _OVER
)

_JOINED = re.compile(
    _APART
    + rf"(?<!\.)(?:[2-9]\d{{2}}[2-9]\d{{6}}|0{_AREA}[2-8]\d{{6,7}}|[48]00\d{{7}})"
    + _OVER
    + r"(?!\.\d)"
)


def _cued(match: re.Match[str]) -> Place | None:
    # Ten digits in a row are a telephone number only where the text says so.
    return match.span() if _PHONE_CUE.search(before(match, 24)) else None


PHONES = (
    Pattern("phone", _MOBILE, whole),
    Pattern("phone", _LANDLINE, whole),
    Pattern("phone", _AMERICAN, whole),
    Pattern("phone", _INTERNATIONAL, whole),
    Pattern("phone", _BRACKETED, whole),
    Pattern("phone", _JOINED, _cued),
    Pattern("phone", _SPREAD, _cued),
)
