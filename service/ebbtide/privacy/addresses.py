"""Addresses in a network: of e-mail, and of machines.

An e-mail address is found from its sign, the parts on both sides of it; an address of IPv4 looks like a version, so
what stands before it is asked. What is everybody's own (127.0.0.1, ::1) is nobody's address.
"""

from __future__ import annotations

import re

from ebbtide.privacy import checks
from ebbtide.privacy.shape import Pattern, Place, bare, before

_LATIN = "A-Za-z0-9\u00c0-\u024f"
_DOMAIN = re.compile(
    r"(?:@|%40)(?:"
    rf"(?:[{_LATIN}](?:[{_LATIN}-]{{0,61}}[{_LATIN}])?\.){{1,8}}(?:xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{2,24}})(?![A-Za-z0-9])"
    r"|\[(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?i:IPv6:)?[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.[0-9]{1,3}){0,3})\]"
    r")"
)
"""A domain, or the address of a machine in brackets (RFC 5321, section 4.1.3), behind its sign."""

_IN_LOCAL = re.compile(rf"[{_LATIN}\u0300-\u036f._%+'-]")
_SIGNS = "._%+'-"
MOST_QUOTED = 64
"""Characters of a name in quotation marks: as many as a mailbox may have."""
_QUOTED = re.compile(rf'"(?:[^"\\\r\n]|\\.){{1,{MOST_QUOTED}}}"$')


def _mailbox(match: re.Match[str]) -> Place | None:
    """The address around a domain: all that can stand before the sign, but for signs at its beginning.

    A name in quotation marks is taken with them. An escaped sign (`%40`) counts with a name before it only. The scan
    does not go back beyond where the search began: what precedes it belongs to another address or was refused. So
    domains that follow each other directly are taken as one.
    """
    begin, end = match.span()
    while (more := _DOMAIN.match(match.string, end)) is not None:
        end = more.end()
    quoted = _QUOTED.search(before(match, MOST_QUOTED + 2)) if match[0][0] == "@" else None
    if quoted is not None:
        return match.start() - len(quoted[0]), end
    while begin > match.pos and _IN_LOCAL.match(match.string, begin - 1):
        begin -= 1
    while begin < match.start() and match.string[begin] in _SIGNS:
        begin += 1
    return (begin, end) if begin < match.start() else None


_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\d|\.\d)")
_BESIDE_IPV4 = re.compile(r"\d$|\.$|\d-$")
_VERSION_CUE = re.compile(
    r"(?i)(?:(?<![a-z])v|ver(?:sion)?|release|build|windows|chapter|section|appendix|firmware|oid|"
    r"版本号?|版|升级到|更新到|章|节|第)[\s.:是为#]{0,3}$"
)


def _dotted(match: re.Match[str]) -> Place | None:
    if _BESIDE_IPV4.search(before(match, 2)) or _VERSION_CUE.search(before(match, 16)):
        return None
    return match.span() if checks.is_told_address(match[0]) else None


_NOT_LAST_DIGITS = re.compile(r".{0,3}[^0-9A-Fa-f]", re.DOTALL)
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(
    r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z:]|\.\d)"
)
_LEAST_HEX = 4
"""Hexadecimal digits below which two colons in a row are rather a name in a program."""


def _colons(match: re.Match[str]) -> Place | None:
    begin = match.start() - len(_NOT_LAST_DIGITS.sub("", before(match, 4)))
    found = _IPV6.match(match.string, begin)
    if found is None or len(bare(found[0])) < _LEAST_HEX or not any(c.isdigit() for c in found[0]):
        return None
    return found.span() if checks.is_told_address(found[0]) else None


ADDRESSES = (
    Pattern("email", _DOMAIN, _mailbox, ("@", "%40")),
    Pattern("ip", _COLONS, _colons, (":",)),
    Pattern("ip", _IPV4, _dotted),
)
