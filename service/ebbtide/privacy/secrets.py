"""Secrets: keys with a recognisable form, and values that a text calls a password or key.

Most sentences about passwords contain none, so a value after `password is` or 密码是 counts only if it looks like one.
A password that is an ordinary word is missed, unless only a colon or 是 precedes it in Chinese.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ebbtide.privacy.shape import Bounds, Pattern, before, value_group, whole

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s\\:,]|-(?!----))*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)

_KEY = re.compile(
    r"(?:AKIA[A-Z0-9]{16}|ASIA[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}|glpat-[A-Za-z0-9_-]{20,64}"
    r"|sk_(?:live|test)_[A-Za-z0-9]{16,128}|rk_(?:live|test)_[A-Za-z0-9]{16,128}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}"
    r"|AIza[A-Za-z0-9_-]{30,40}|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}"
    r"|ebb_[A-Za-z0-9]{4,32}_[A-Za-z0-9_-]{32,128}"
    r")(?![A-Za-z0-9_-])"
)
_TOKEN = re.compile(
    r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}+\.(?=eyJ)[A-Za-z0-9_-]{7,}+\.[A-Za-z0-9_-]{8,}+"
)
_SK = re.compile(r"sk-(?<![A-Za-z0-9_-]sk-)[A-Za-z0-9_-]{20,255}(?![A-Za-z0-9_-])")
_WORD_END = re.compile(r"[A-Za-z0-9_-]$")


def _standalone(match: re.Match[str]) -> Bounds | None:
    return None if _WORD_END.search(before(match, 1)) else match.span()


def _with_digit(match: re.Match[str]) -> Bounds | None:
    return _standalone(match) if any(c.isdigit() for c in match[0]) else None


_CREDENTIALS = re.compile(r"://(?P<value>[^\s/:@?#]{0,128}:[^\s/@]{1,256})@(?=[A-Za-z0-9\[])")

KEYS = (
    Pattern("secret", _PRIVATE_KEY, whole, ("private key",)),
    Pattern(
        "secret",
        _KEY,
        _standalone,
        ("akia", "asia", "gh", "glpat-", "sk_", "rk_", "xox", "xapp-", "aiza", "hf_", "npm_", "ebb_"),
    ),
    Pattern("secret", _TOKEN, _standalone, ("eyj",)),
    Pattern("secret", _SK, _with_digit, ("sk-",)),
    Pattern("secret", _CREDENTIALS, value_group, ("://",)),
)

# --- values that a text calls a secret ---------------------------------------------------------------------

_ENGLISH = re.compile(
    r"(?i:pass|pwd|secret|key|token|credential)(?i:words?|wd|phrase|code|s)?(?![A-Za-z])[\"'`]?"
    r"(?P<by>[^\S\n]{0,3}(?:=>|->|:=|[:=,，])[^\S\n]{0,3}|\s{1,3}(?:is|was)\s{1,3}(?::\s?)?|\s{1,3}(?=[\"'`“‘]))[\"'`“‘]?"
    r"(?P<value>[^\s\"'`“”‘’,;，；。、！？<>(){}\[\]]{4,256})"
)
_BEFORE_CUE = re.compile(r"(?i)(?:^|[^a-z])$|[a-z]_$")
_KEY_OF = re.compile(r"(?i)(?:api|access|private|auth|signing|secret|encryption|master)[ _-]?$")
_CHINESE = re.compile(
    r"(?:密码|口令|密钥|秘钥|令牌|验证码|暗号)(?P<by>\s{0,3}(?:就是|改成|改为|设为|设成|是|为|[:=,，])?\s{0,3})"
    r"[\"'`“‘「]?(?P<value>[!#-&*-+./-9:<-Z^_a-z~@=-]{4,256})"
)
_PLACEHOLDER = re.compile(
    r"(?i)^[*•.x#_-]++$|^(?:\$|%|<|os\.|process\.|env\.|your|my_|some|none$|null$|true$|false$|todo|redacted|changeme$)"
)


_BEARER = re.compile(
    r"(?i:(?<![A-Za-z])bearer\s{1,3}|authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:bearer|basic|token|apikey)\s{1,3})?)"
    r"(?P<value>[A-Za-z0-9_~+/.=-]{16,4096})"
)


def _presented(match: re.Match[str]) -> Bounds | None:
    """Return a credential if it looks random: letters with digits or in mixed case, in one piece."""
    value = match["value"].rstrip(".")
    if not _looks_random(value):
        # No part of the value looks random either. Continue after it, or many cues in a row would be slow.
        return match.end(), match.end()
    is_placeholder = _PLACEHOLDER.search(value) is not None
    return None if is_placeholder else (match.start("value"), match.start("value") + len(value))


def _looks_random(value: str) -> bool:
    if any(c.isdigit() for c in value):
        return any(c.isalpha() for c in value)
    return sum(a.islower() and b.isupper() for a, b in pairwise(value)) >= 3


def _assigned(match: re.Match[str]) -> Bounds | None:
    """Return an assigned value if it looks like a secret, not like a word of the sentence or a placeholder."""
    value = match["value"].rstrip(".)?:")
    if len(value) < 4 or _PLACEHOLDER.search(value) or not _looks_secret(value):
        return None
    # A comma separates clauses more often than a label and its value.
    if match["by"].strip() in (",", "，") and _class_changes(value) < 3:
        return None
    return match.start("value"), match.start("value") + len(value)


def _looks_secret(value: str) -> bool:
    if any(c.isdigit() for c in value):
        return True
    has_symbol = any(not c.isalnum() and c not in "-_'/." for c in value[1:-1])
    return has_symbol or any(a.islower() and b.isupper() for a, b in pairwise(value))


def _class_changes(value: str) -> int:
    """Count how often lower case, upper case, digits and symbols alternate; signs within words do not count."""
    classes = [(c.isdigit(), c.isupper(), c.isalpha()) for c in value if c not in "-_'/."]
    return sum(a != b for a, b in pairwise(classes))


def _in_english(match: re.Match[str]) -> Bounds | None:
    context = before(match, 16)
    is_key = match[0][:3].lower() == "key"
    if not (_KEY_OF.search(context) if is_key else _BEFORE_CUE.search(context)):
        return None
    return _assigned(match)


def _in_chinese(match: re.Match[str]) -> Bounds | None:
    value = match["value"].rstrip(".)?:")
    if match["by"].strip() in (":", "=", "是", "为") and value.isalpha() and value.islower():
        return match.start("value"), match.start("value") + len(value)
    return _assigned(match)


ASSIGNED = (
    Pattern("secret", _BEARER, _presented, ("bearer", "basic", "authorization")),
    Pattern("secret", _ENGLISH, _in_english, ("pass", "pwd", "secret", "key", "token", "credential")),
    Pattern("secret", _CHINESE, _in_chinese, ("密码", "口令", "密钥", "秘钥", "令牌", "验证码", "暗号")),
)
