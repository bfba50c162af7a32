"""Attachments: a small file of a message, found by its caption, cited with a region, and read back.

The captions of a message are part of its text: they follow its own words, each on a line. So they are indexed,
embedded, digested, redacted, cited, shortened, withdrawn and erased as words are, and an attachment knows only where
its caption is. The bytes are a chunk of their own (`records.Attachment`); nothing reads them but `get_attachment`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from ebbtide import records
from ebbtide.bounds import (
    MAX_ATTACHMENT_BYTES,
    MAX_ATTACHMENTS,
    MAX_CAPTION_CHARS,
    MAX_COUNT,
    MAX_MIME_CHARS,
    MAX_REGIONS,
)
from ebbtide.errors import no_attachment
from ebbtide.ids import message_number, message_text_id
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.limits import Between, MaxChars, MaxItems, Several
from ebbtide.verbs.reading import ReadingService
from ebbtide.verbs.requests import AgentRequest, Fields, Response, invalid, violation

# --- in requests -----------------------------------------------------------------------------------------

MIME = "a type and a subtype, such as image/png, without parameters"
_TOKEN = frozenset(string.ascii_letters + string.digits + "!#$&-^_.+")
_HEX = frozenset(string.hexdigits)


def _checked_mime(text: str) -> str:
    kind, _, subtype = text.partition("/")
    if not kind or not subtype or not _TOKEN.issuperset(kind + subtype):
        raise invalid(text, MIME)
    return text.lower()


def _decoded(value: Any) -> Any:
    """Return the bytes in base64, as REST sends them; gRPC sends bytes."""
    if not isinstance(value, str):
        return value
    if len(value) > 4 * (MAX_ATTACHMENT_BYTES // 3 + 1):
        raise _too_large(len(value) // 4 * 3)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise violation("INVALID_VALUE", "not base64; allowed: base64 with padding, on one line") from None


def _checked_size(content: bytes) -> bytes:
    if not content:
        raise violation("INVALID_VALUE", f"empty; allowed: 1-{MAX_ATTACHMENT_BYTES} bytes")
    if len(content) > MAX_ATTACHMENT_BYTES:
        raise _too_large(len(content))
    return content


def _too_large(size: int) -> Exception:
    return violation("ATTACHMENT_TOO_LARGE", f"{size} bytes; allowed: at most {MAX_ATTACHMENT_BYTES}")


def _checked_hash(text: str) -> str:
    if len(text) != 64 or not _HEX.issuperset(text):
        raise invalid(text, "64 hexadecimal digits")
    return text.lower()


def _in_unit(number: float) -> float:
    if not 0 <= number <= 1:
        raise invalid(number, "0-1, a share of the width or height")
    return number


def _four(box: list[float]) -> list[float]:
    if len(box) not in (0, 4):
        raise violation("INVALID_VALUE", f"{len(box)} items; allowed: 4: x, y, width, height")
    if any(begin + size > 1 + ROUNDING for begin, size in zip(box[:2], box[2:], strict=True)):
        raise invalid(box, "a box within the picture: x + width and y + height at most 1")
    return box


ROUNDING = 1e-6
"""By how much the edge of a box may be outside the picture: shares are rounded."""


Content = Annotated[
    bytes,
    BeforeValidator(_decoded),
    AfterValidator(_checked_size),
    WithJsonSchema({"type": "string", "format": "byte", "maxLength": 4 * -(-MAX_ATTACHMENT_BYTES // 3)}),
]
Digest = bytes
Caption = Annotated[str, MaxChars(MAX_CAPTION_CHARS)]
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}


class Region(Fields):
    """A part of an attachment: of a page, a picture or a recording, with words for it."""

    page: Annotated[int, Between(1, MAX_COUNT)] | None = Field(None, description="Its page, from 1.")
    box: Annotated[
        list[Annotated[float, AfterValidator(_in_unit), WithJsonSchema(_UNIT)]],
        Several,
        MaxItems(4),
        AfterValidator(_four),
    ] = Field(
        default_factory=list,
        description="x, y, width and height as shares of the picture or page, from its top left corner.",
    )
    begin_ms: Annotated[int, Between(0, MAX_COUNT)] | None = Field(
        None, description="Its begin in a recording, in ms."
    )
    end_ms: Annotated[int, Between(0, MAX_COUNT)] | None = Field(
        None, description="Its end in a recording, in ms."
    )
    caption: Caption = Field("", description="The words that describe it; queries find them.")

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.page is None and not self.box and self.begin_ms is None:
            raise violation("MISSING_FIELD", "required; give page, box or begin_ms", "box")
        if self.end_ms is not None and (self.begin_ms is None or self.end_ms < self.begin_ms):
            raise invalid(self.end_ms, "a time after begin_ms", field="end_ms")
        return self


class Attachment(Fields):
    """A small file that belongs to a message."""

    mime: Annotated[str, MaxChars(MAX_MIME_CHARS), AfterValidator(_checked_mime)] = Field(
        description="Its media type, without parameters.", examples=["image/png"]
    )
    bytes: Content = Field(description="Its content, at most 1 MiB; over REST in base64.")
    sha256: Annotated[str, AfterValidator(_checked_hash)] | None = Field(
        None, description="SHA-256 of the content in hexadecimal; checked if it is given."
    )
    caption: Caption = Field("", description="The words that describe it; queries find them.")
    regions: Annotated[list[Region], Several, MaxItems(MAX_REGIONS)] = Field(
        default_factory=list, description="Parts of it that can be found and cited, at most 64."
    )

    @model_validator(mode="after")
    def _is_what_was_hashed(self) -> Self:
        if self.sha256 not in (None, self.digest.hex()):
            raise invalid(self.sha256, f"{self.digest.hex()}, which is that of bytes", field="sha256")
        return self

    @cached_property
    def digest(self) -> Digest:
        """SHA-256 of its content: the key of its chunk."""
        return hashlib.sha256(self.bytes).digest()

    @property
    def captions(self) -> Iterator[str]:
        """Its caption and those of its regions."""
        yield self.caption
        for region in self.regions:
            yield region.caption

    def described(self, say: Callable[[str], str]) -> Attachment:
        """Return it with every caption replaced by what `say` returns for it."""
        regions = [one.model_copy(update={"caption": say(one.caption)}) for one in self.regions]
        return self.model_copy(update={"caption": say(self.caption), "regions": regions})

    def identity(self) -> dict[str, Any]:
        """Return its fields without its content, which its hash stands for."""
        return {**self.model_dump(exclude={"bytes"}), "sha256": self.digest.hex()}


Attachments = Annotated[list[Attachment], Several, MaxItems(MAX_ATTACHMENTS)]


def with_captions(
    content: str, attachments: Sequence[Attachment]
) -> tuple[str, tuple[records.Attachment, ...]]:
    """Return the text of a message, which its captions follow, and its attachments with the places of theirs."""
    if not attachments:
        return content, ()
    text = [content]
    size = len(content.encode())

    def place(caption: str) -> tuple[int, int]:
        nonlocal size
        if not caption:
            return size, 0
        if size:
            text.append("\n")
            size += 1
        text.append(caption)
        offset, length = size, len(caption.encode())
        size += length
        return offset, length

    found = []
    for one in attachments:
        own = place(one.caption)
        regions = tuple(
            records.Region(
                part.page or 0,
                tuple(part.box),
                -1 if part.begin_ms is None else part.begin_ms,
                -1 if part.end_ms is None else part.end_ms,
                *place(part.caption),
            )
            for part in one.regions
        )
        found.append(records.Attachment(one.mime, one.digest, len(one.bytes), *own, regions))
    return "".join(text), tuple(found)


# --- in responses ----------------------------------------------------------------------------------------


class RegionInfo(Response):
    """A part of an attachment."""

    page: int | None = Field(description="Its page, from 1; null if none was given.")
    box: list[float] = Field(
        description="x, y, width and height as shares of the picture or page; empty if none was given."
    )
    begin_ms: int | None = Field(description="Its begin in a recording, in ms; null if none was given.")
    end_ms: int | None = Field(description="Its end in a recording, in ms; null if none was given.")
    caption: str = Field(description="The words that describe it.")


class AttachmentInfo(Response):
    """An attachment without its content."""

    mime: str = Field(description="Its media type.", examples=["image/png"])
    sha256: str = Field(description="SHA-256 of its content, in hexadecimal.")
    size: int = Field(description="Bytes of its content.")
    caption: str = Field(description="The words that describe it.")
    regions: list[RegionInfo] = Field(description="Parts of it.")


class CitedAttachment(Response):
    """The attachment whose caption a source quotes."""

    message: str = Field(description="Id of its message.", examples=["m1"])
    index: int = Field(description="Its position among the attachments of the message, from 0.")
    mime: str = Field(description="Its media type.", examples=["image/png"])
    region: RegionInfo | None = Field(
        description="The part of it that the caption describes; null for all of it."
    )


class AttachmentContent(Response):
    """An attachment with its content."""

    mime: str = Field(description="Its media type.", examples=["image/png"])
    sha256: str = Field(description="SHA-256 of its content, in hexadecimal.")
    bytes: Content = Field(description="Its content.")


def attachment_infos(record: records.MessageRecord, text: str) -> list[AttachmentInfo]:
    """Return the attachments of a message with this text."""
    raw = text.encode()
    return [
        AttachmentInfo(
            mime=one.mime,
            sha256=one.sha256.hex(),
            size=one.size,
            caption=_slice(raw, one),
            regions=[_region_info(raw, region) for region in one.regions],
        )
        for one in record.attachments
    ]


def cited_attachment(
    record: records.MessageRecord, place: records.AttachmentPlace | None, text: str
) -> CitedAttachment | None:
    """Return the attachment at a place of a message with this text."""
    if place is None:
        return None
    index, part = place
    one = record.attachments[index]
    region = None if part is None else _region_info(text.encode(), one.regions[part])
    return CitedAttachment(message=message_text_id(record.number), index=index, mime=one.mime, region=region)


def _slice(raw: bytes, place: records.Attachment | records.Region) -> str:
    return raw[place.offset : place.offset + place.length].decode()


def _region_info(raw: bytes, region: records.Region) -> RegionInfo:
    return RegionInfo(
        page=region.page or None,
        box=list(region.box),
        begin_ms=None if region.begin_ms < 0 else region.begin_ms,
        end_ms=None if region.end_ms < 0 else region.end_ms,
        caption=_slice(raw, region),
    )


# --- read back -------------------------------------------------------------------------------------------


def _from_path(value: Any) -> Any:
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
    return int(value) if is_number else value


class AttachmentRequest(AgentRequest):
    """Which attachment to read."""

    message: str = Field(description="Id of the message.", examples=["m1"])
    index: Annotated[
        int,
        BeforeValidator(_from_path),
        Between(0, MAX_COUNT),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_COUNT}),
    ] = Field(description="Position of the attachment in the message, from 0.", examples=[0])


async def get_attachment(service: ReadingService, request: AttachmentRequest) -> AttachmentContent:
    """Return an attachment as a file. ATTACHMENT_NOT_FOUND if there is none, or it is deleted or expired."""
    number = message_number(request.message)
    async with service.fleet.using(request.owner) as agent:

        def read(txn: ReadTransaction) -> AttachmentContent:
            record = None if number is None else txn.messages.get(number)
            if record is None or request.index >= len(record.attachments):
                raise no_attachment()
            one = record.attachments[request.index]
            return AttachmentContent(
                mime=one.mime, sha256=one.sha256.hex(), bytes=txn.texts.content(one.sha256)
            )

        return await agent.run(lambda: agent.workspace.store.read(read))
