"""Pages: tokens that say where a listing goes on. Opaque to callers, URL-safe, checked when they come back."""

from __future__ import annotations

import base64
import binascii

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.settings import LimitSettings

DEFAULT_PAGE_SIZE = 100


def check_page_size(page_size: int | None, limits: LimitSettings) -> int:
    """The size asked for, or the default; INVALID_PAGE outside 1-`max_page_size`."""
    size = DEFAULT_PAGE_SIZE if page_size is None else page_size
    if not 1 <= size <= limits.max_page_size:
        raise _invalid("page_size", f"{size} is not allowed; allowed: 1-{limits.max_page_size}")
    return min(size, limits.max_page_size)


def to_token(position: str, listing: str) -> str:
    """A token for the position after which a listing goes on."""
    return base64.urlsafe_b64encode(f"{listing}:{position}".encode()).decode().rstrip("=")


def from_token(token: str, listing: str) -> str:
    """The position behind a token, "" for none; INVALID_PAGE for a token of another listing, or none."""
    if not token:
        return ""
    try:
        padded = token + "=" * (-len(token) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _invalid("page_token", "not a token of this listing") from None
    kind, _, position = text.partition(":")
    if kind != listing or not position:
        raise _invalid("page_token", "not a token of this listing")
    return position


def number_from_token(token: str, listing: str) -> int:
    """The number behind a token, 0 for none."""
    position = from_token(token, listing)
    if position and not (position.isascii() and position.isdigit() and len(position) < 20):
        raise _invalid("page_token", "not a token of this listing")
    return int(position or 0)


def _invalid(field: str, description: str) -> InvalidRequest:
    return InvalidRequest(
        f"{field}: {description}",
        reason="INVALID_PAGE",
        violations=[FieldViolation(field, description)],
    )
