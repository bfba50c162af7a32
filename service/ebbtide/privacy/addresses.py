"""E-mail addresses and IP addresses.

The search for an e-mail address starts at its at sign and extends in both directions. An IPv4 address looks like a
version number, so the text before it decides. Loopback and unspecified addresses identify no one.
"""

from __future__ import annotations

import re

from ebbtide.privacy import checks
from ebbtide.privacy.shape import Bounds, Pattern, alphanumerics, before

_LATIN = "A-Za-z0-9\u00c0-\u024f"
_DOMAIN = re.compile(
    r"(?:@|%40)(?:"
    rf"(?:[{_LATIN}](?:[{_LATIN}-]{{0,61}}[{_LATIN}])?\.){{1,8}}(?:xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{2,24}})(?![A-Za-z0-9])"
    r"|\[(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?i:IPv6:)?[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.[0-9]{1,3}){0,3})\]"
    r")"
)
"""The at sign with a domain, or with an address literal in brackets (RFC 5321, section 4.1.3)."""

_IN_LOCAL = re.compile(rf"[{_LATIN}\u0300-\u036f._%+'-]")
_SIGNS = "._%+'-"
MAX_QUOTED = 64
"""Characters of a quoted local part: the maximum of RFC 5321."""
_QUOTED = re.compile(rf'"(?:[^"\\\r\n]|\\.){{1,{MAX_QUOTED}}}"$')


def _mailbox(match: re.Match[str]) -> Bounds | None:
    """Return the address around a domain: the longest local part, without signs at its beginning.

    A quoted local part is included with its quotes. An escaped sign (`%40`) needs a local part. The scan does not go
    back beyond the start of the search: earlier characters belong to another match or were rejected. Domains that
    follow each other directly count as one.
    """
    begin, end = match.span()
    while (more := _DOMAIN.match(match.string, end)) is not None:
        end = more.end()
    quoted = _QUOTED.search(before(match, MAX_QUOTED + 2)) if match[0][0] == "@" else None
    if quoted is not None:
        return match.start() - len(quoted[0]), end
    while begin > match.pos and _IN_LOCAL.match(match.string, begin - 1):
        begin -= 1
    while begin < match.start() and match.string[begin] in _SIGNS:
        begin += 1
    return (begin, end) if begin < match.start() else None


_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\d|\.\d)")
_AROUND_IPV4 = re.compile(r"\d$|\.$|\d-$")
_VERSION_CUE = re.compile(
    r"(?i)(?:(?<![a-z])v|ver(?:sion)?|release|build|windows|chapter|section|appendix|firmware|oid|"
    r"版本号?|版|升级到|更新到|章|节|第)[\s.:是为#]{0,3}$"
)


def _dotted(match: re.Match[str]) -> Bounds | None:
    if _AROUND_IPV4.search(before(match, 2)) or _VERSION_CUE.search(before(match, 16)):
        return None
    return match.span() if checks.is_personal_address(match[0]) else None


_NOT_LAST_DIGITS = re.compile(r".{0,3}[^0-9A-Fa-f]", re.DOTALL)
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(
    r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z:]|\.\d)"
)
_MIN_HEX = 4
"""With fewer hexadecimal digits, two colons are more likely a name in a program."""


def _colons(match: re.Match[str]) -> Bounds | None:
    begin = match.start() - len(_NOT_LAST_DIGITS.sub("", before(match, 4)))
    found = _IPV6.match(match.string, begin)
    if found is None or len(alphanumerics(found[0])) < _MIN_HEX or not any(c.isdigit() for c in found[0]):
        return None
    return found.span() if checks.is_personal_address(found[0]) else None


ADDRESSES = (
    Pattern("email", _DOMAIN, _mailbox, ("@", "%40")),
    Pattern("ip", _COLONS, _colons, (":",)),
    Pattern("ip", _IPV4, _dotted),
)
