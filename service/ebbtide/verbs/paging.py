"""Pages: the fields of requests for one, and tokens that say where a listing continues.

A token is opaque to callers, URL-safe, and validated on use.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import Field

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.verbs.limits import Between
from ebbtide.verbs.requests import AgentRequest, Request

DEFAULT_PAGE_SIZE = 100
NOT_A_TOKEN = "not a token of this listing; use next_page_token of the page before, or leave it out"


class PageRequest(Request):
    """A request for one page of a listing."""

    page_size: Annotated[int, Between(1, "max_page_size", "INVALID_PAGE")] | None = Field(
        None, description="Most items on the page, 1-1000; default 100."
    )
    page_token: str = Field("", description="`next_page_token` of the page before; empty for the first page.")

    @property
    def size(self) -> int:
        """Most items on the page."""
        return DEFAULT_PAGE_SIZE if self.page_size is None else self.page_size


class AgentPageRequest(PageRequest, AgentRequest):
    """A request for one page of what an agent has."""


def to_token(position: str, listing: str) -> str:
    """Return a token for the position after which a listing continues."""
    return base64.urlsafe_b64encode(f"{listing}:{position}".encode()).decode().rstrip("=")


def from_token(token: str, listing: str) -> str:
    """Return the position in a token, "" without one. INVALID_PAGE if it is not a token of this listing."""
    if not token:
        return ""
    try:
        padded = token + "=" * (-len(token) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _invalid("page_token", NOT_A_TOKEN) from None
    kind, _, position = text.partition(":")
    if kind != listing or not position:
        raise _invalid("page_token", NOT_A_TOKEN)
    return position


def number_from_token(token: str, listing: str) -> int:
    """Return the number in a token, 0 without one."""
    return number_of(from_token(token, listing))


def number_of(position: str) -> int:
    """Return the number that is a position, 0 for the beginning. INVALID_PAGE if it is none."""
    if position and not (position.isascii() and position.isdigit() and len(position) < 20):
        raise _invalid("page_token", NOT_A_TOKEN)
    return int(position or 0)


def _invalid(field: str, description: str) -> InvalidRequest:
    return InvalidRequest(
        f"{field}: {description}",
        reason="INVALID_PAGE",
        violations=[FieldViolation(field, description)],
    )
