"""Numbers that identify a person or an account: payment cards, bank accounts, identity and telephone numbers.

The patterns are tried only where a run of digits begins, and only in stretches with enough digits. A number never
matches inside a longer number, nor inside a hash, where letters separate digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ebbtide.privacy import checks
from ebbtide.privacy.shape import Accept, Bounds, Pattern, alphanumerics, before

_APART = r"(?<!\d)(?<!\d[A-Za-z])"
_OVER = r"(?!\d)(?![A-Za-z]\d)"

_SIGNS = r" ./_|~·•‧・∙。:,-"
"""Characters that people write between the groups of a number."""

_SAME_GAP = r"(?: ?[./_|~·•‧・∙。:,-] ?| )"
"""A separator that must be the same between all groups."""

_GAP = r"(?: ?[./_|~·•‧・∙。-] ?| )"
"""A separator that may differ between groups. Colons and commas also separate numbers, so they are left out."""

_STRETCH = re.compile(rf"[0-9](?:[()+{_SIGNS}]{{0,3}}[0-9]){{6,}}+")
"""At least seven digits: no number here has fewer."""

_RUN = re.compile(r"[0-9]+")


def number_begins(text: str) -> list[int]:
    """Return where a number can begin: at a run of digits, or at the plus or bracket before it."""
    begins: list[int] = []
    for stretch in _STRETCH.finditer(text):
        for run in _RUN.finditer(text, *stretch.span()):
            begin = run.start()
            for earlier in (begin - 2, begin - 1):
                if earlier >= 0 and all(c in "+(" for c in text[earlier:begin]):
                    begins.append(earlier)
            begins.append(begin)
    return begins


def _if(is_valid: Callable[[str], bool]) -> Accept:
    return lambda match: match.span() if is_valid(alphanumerics(match[0])) else None


_OTHER_CUE = re.compile(
    r"(?i)(?:(?<![a-z])(?:(?:order|invoice|ticket|case|tracking|confirmation|booking|reservation|reference|ref|part|"
    r"model|serial|account|version|batch|lot|sku|receipt|claim|reading|sample)(?:[ ](?:number|no|nr|id|code)\.?)?"
    r"|(?:customer|member|membership|policy|item|contract)[ ](?:number|no|id)\.?)(?:[ ](?:is|was))?"
    r"|(?:订单|工单|运单|批次|编号|单号|批号|型号|流水号|参考号|学号|工号"
    r"|(?:发票|会员|合同|快递|零件|账户|客户)(?:编号|号码|号))(?:编号|单号|号码|号)?[是为]?)[\s:#,，]{0,3}$"
)
"""Words directly before a number that make it an order number or the like, whatever it looks like."""

# --- numbers with a check ----------------------------------------------------------------------------------

_CARD = re.compile(
    _APART + r"(?<!\d\.)(?:"
    r"\d{13,19}"
    rf"|\d{{4}}(?P<four>{_SAME_GAP})\d{{4}}(?P=four)\d{{4}}(?P=four)\d{{4}}(?:(?P=four)\d{{1,3}})?(?!\.\d)"
    rf"|\d{{4}}(?P<six>{_SAME_GAP})\d{{6}}(?P=six)\d{{4,5}}(?!\.\d)"
    rf"|\d{{6}}{_GAP}\d{{10,13}}"
    r")" + _OVER
)

_CHINESE_ID = re.compile(
    _APART + rf"[1-8]\d{{5}}(?P<gap>{_SAME_GAP}?)(?:18|19|20)\d{{6}}(?P=gap)\d{{3}}[\dXx]" + _OVER
)

_SSN_CUE = re.compile(r"(?i)ssn|social|社保|社会安全")
_SSN = re.compile(
    _APART + rf"(?<![\d.-][.-])\d{{3}}(?P<gap>{_SAME_GAP}?)\d{{2}}(?P=gap)\d{{4}}(?!-\d)" + _OVER
)


def _social_security(match: re.Match[str]) -> Bounds | None:
    # Without dashes, nine digits can be anything unless the text names them.
    if not _SSN_CUE.search(before(match, 40)) and (
        match["gap"] != "-" or _OTHER_CUE.search(before(match, 32))
    ):
        return None
    return match.span() if checks.is_social_security_number(alphanumerics(match[0])) else None


_IBAN_GAPS = "[ ./_:,-]"
_IBAN = re.compile(
    rf"[A-Za-z]{{2}}[0-9]{{2}}(?<![A-Za-z0-9].{{4}})(?:{_IBAN_GAPS}?[A-Za-z0-9]){{11,30}}", re.DOTALL
)


def _account(match: re.Match[str]) -> Bounds | None:
    """Return the account number at the start of a match: of its country's length, not followed by more of the word."""
    length = checks.iban_length(match[0][:2].upper())
    if not length:
        return None
    text, end = match.string, match.start() + 1
    for _ in range(length - 1):
        end += text[end : end + 1] in _IBAN_GAPS[1:-1]
        end += 1
    following = text[end : end + 1]
    is_over = not (following.isascii() and following.isalnum())
    account = alphanumerics(text[match.start() : end])
    return (match.start(), end) if is_over and checks.is_iban(account) else None


ACCOUNTS = (Pattern("iban", _IBAN, _account),)

NUMBERS = (
    Pattern("national_id", _CHINESE_ID, _if(checks.is_chinese_id)),
    Pattern("national_id", _SSN, _social_security),
    Pattern("card", _CARD, _if(checks.is_card)),
)

# --- telephone numbers -------------------------------------------------------------------------------------

_PHONE_CUE = re.compile(
    r"(?i)phone|mobile|cell|\btel\b|telephone|call|text|fax|dial|ring|reach|number|whatsapp|"
    r"电话|手机|号码|座机|传真|拨打|致电|联系|热线|微信"
)
_STRONG_CUE = re.compile(
    r"(?i)phone|mobile|\btel\b|call|fax|dial|\bring\b|whatsapp|电话|手机|座机|传真|拨打|致电|热线"
)
MIN_PHONE_DIGITS = 7

_AREA = r"(?:10|2\d|[3-9]\d{2})"
"""Chinese area codes, without the leading zero."""

_MOBILE = re.compile(
    _APART + rf"(?<!0\.)(?<!\+)(?:(?:00)?86{_GAP}?)?"
    rf"(?:\(1[3-9]\d\){_GAP}?\d{{4}}{_GAP}?\d{{4}}"
    r"|1[3-9](?:\d[ -]?\d{4}[ -]?\d{4}"
    rf"|\d(?P<three>{_SAME_GAP})\d{{4}}(?P=three)\d{{4}}|\d{{2}}(?P<four>{_SAME_GAP})\d{{3}}(?P=four)\d{{4}}))"
    + _OVER
    + r"(?![./]\d)"
)

_LANDLINE = re.compile(
    r"(?<![\d.])(?<!\d[A-Za-z-])(?:"
    rf"\(0{_AREA}\){_GAP}?[2-8]\d{{2,3}}{_GAP}?\d{{4}}"
    rf"|0{_AREA}[ -][2-8]\d{{2,3}}[ -]?\d{{4}}|0{_AREA}(?P<area>{_SAME_GAP})[2-8]\d{{2,3}}(?P=area)\d{{4}}"
    rf"|[48]00(?P<short>{_SAME_GAP})(?:\d{{3}}(?P=short)\d{{4}}|\d{{4}}(?P=short)\d{{3}})"
    r")" + _OVER
)

_AMERICAN = re.compile(
    r"(?<![\d./])(?<!\d[A-Za-z-])(?:1[ ./_·•-]?)?"
    r"(?:\([2-9]\d{2}\)[ ./_·•-]?[2-9]\d{2}[ ./_·•-]|[2-9]\d{2}(?P<gap>[ ./_·•:,-])[2-9]\d{2}(?:(?P=gap)|[ .-]))\d{4}"
    + _OVER
    + r"(?![./-]\d)"
)

_INTERNATIONAL = re.compile(
    r"(?<![\dA-Za-z+])(?:\(\+[1-9]\d{0,2}\)|\+[1-9]\d{0,2}|00[1-9]\d{0,2}[ -])"
    rf"(?:{_GAP}?\(\d{{1,4}}\))?(?:{_GAP}?\d){{6,13}}" + _OVER
)

_CUED = re.compile(
    _APART + rf"(?<!\.)(?:\(\d{{1,5}}\){_GAP}?)?\d{{1,12}}+(?:{_GAP}\d++){{0,6}}" + _OVER + r"(?!\.\d)"
)
"""Up to seven groups of any size, recognised only after a word that announces a telephone number.

Only separators divide groups: with optional ones, a long run of digits would have a million divisions.
"""


def _national(match: re.Match[str]) -> Bounds | None:
    if _OTHER_CUE.search(before(match, 32)):
        return None
    return match.span() if checks.is_national_phone(alphanumerics(match[0])) else None


def _international(match: re.Match[str]) -> Bounds | None:
    if _OTHER_CUE.search(before(match, 32)):
        return None
    return _longest(match, lambda digits: checks.is_international_phone(digits.removeprefix("00")), 17)


def _cued(match: re.Match[str]) -> Bounds | None:
    context = before(match, 24)
    if not _PHONE_CUE.search(context) or _OTHER_CUE.search(before(match, 32)):
        return None
    is_strong = _STRONG_CUE.search(context) is not None

    def is_phone(digits: str) -> bool:
        if digits[0] == "0":
            return checks.is_national_phone(digits, ("CN", *checks.CUED_PLANS) if is_strong else ("CN",))
        return checks.is_national_phone(digits, ("CN",) if digits[0] == "1" else checks.NATIONAL_PLANS)

    return _longest(match, is_phone, 12)


def _longest(match: re.Match[str], is_phone: Callable[[str], bool], max_digits: int) -> Bounds | None:
    """Return the longest run of groups from the start of a match that is a telephone number."""
    for run in reversed(list(_RUN.finditer(match[0]))):
        digits = alphanumerics(match[0][: run.end()])
        if len(digits) < MIN_PHONE_DIGITS:
            return None
        if len(digits) <= max_digits and is_phone(digits):
            return match.start(), match.start() + run.end()
    return None


PHONES = (
    Pattern("phone", _INTERNATIONAL, _international),
    Pattern("phone", _MOBILE, _national),
    Pattern("phone", _LANDLINE, _national),
    Pattern("phone", _AMERICAN, _national),
    Pattern("phone", _CUED, _cued),
)
